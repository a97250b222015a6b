"""Which heads matter, on the page What if: each head switched off in turn, in short slices.

A slice runs a few heads and gives the page back, so that others are served and a stop is heard.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.capture import Capture, Stack
from explorer.cores import workers
from explorer.cost import in_time
from explorer.effects import HeadEffect, each_head_off
from explorer.models import ModelError
from explorer.outcomes import Question
from explorer.ui import address, controls, which_heads_view
from explorer.ui import what_if_words as say
from explorer.ui.what_if import KEY, Runs
from explorer.ui.words import plain

KEPT, ASKED = "heads tried", "heads asked for"
SLICE = 0.7
"""Seconds of one slice."""
EVERY = 0.1
"""Seconds between two slices, for others."""
MARGIN = 1.5
"""A head takes so many times a run, with what is between the slices."""
LONGEST = 300.0
"""Seconds; where all heads would take longer, only those of the chosen layer are tried."""
BY_LINK = 30.0
"""Seconds; what would take longer waits for the button, also where a link shows the heads tried."""


@dataclass
class Sweep:
    """Heads that are tried one after the other, and what came of it so far."""

    key: KEY
    total: int
    steps: Iterator[HeadEffect] | None
    """None when it is over."""
    found: list[HeadEffect] = field(default_factory=list)
    seconds: float = 0.0
    """Time spent until now."""
    stopped: bool = False
    begun: bool = False
    """Whether the page has shown it once: the first slice must not hold the page up."""
    at_work: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_over(self) -> bool:
        """Whether no more will come."""
        return self.steps is None

    def go_on(self) -> None:
        """One slice; none beside another: a run of the page may begin before the last one ends."""
        if not self.at_work.acquire(blocking=False):
            return
        start = time.perf_counter()
        try:
            while (steps := self.steps) is not None and time.perf_counter() < start + SLICE:
                effect = next(steps, None)
                if effect is None:
                    self.steps = None
                else:
                    self.found.append(effect)
        finally:
            self.seconds += time.perf_counter() - start + EVERY
            self.at_work.release()


def show(
    runs: Runs,
    stack: Stack,
    question: Question,
    layer: int,
    head: int,
    beside: DeltaGenerator,
) -> None:
    """The button, the progress, and the effects as a heatmap; in words `beside` it."""
    st.subheader("Which heads matter", anchor=False)
    on_top = runs.is_changed and controls.choose_yes(
        "besides",
        "Keep the changes on meanwhile",
        help="Off: each head is tried in the model as it is. On: with your changes at work, as to "
        "see which heads take over.",
    )
    key: KEY = (*runs.key[: -2 if not on_top else None], stack.name, question, on_top)
    layers = _layers(runs, stack, layer)
    key = (*key, layers)
    sweep: Sweep | None = st.session_state.get(KEPT)
    if sweep is not None and sweep.key != key:
        if not sweep.is_over:
            sweep.steps, sweep.stopped = None, True  # its text or question is gone from the page
        sweep = None
    total = sum(stack.layer(number).n_heads for number in layers)
    seconds = max(total * runs.seconds * MARGIN, 1.0)

    def start() -> None:
        steps = _steps(runs, stack, question, layers, on_top)
        st.session_state[KEPT] = Sweep(key, total, steps)
        st.session_state.pop(ASKED, None)

    if _asked(key, sweep is not None):
        if seconds <= BY_LINK:
            start()
            sweep = st.session_state[KEPT]
        else:
            st.info(
                "The link shows what the loss of each head does. That takes long here, so it "
                "waits for the button.",
                icon=":material/link:",
            )
    if sweep is not None and not sweep.is_over:
        st.fragment(_live, run_every=EVERY)(sweep, runs.seconds)
        return
    if sweep is not None:
        which_heads_view.effects(runs, stack, question, sweep, layer, head, beside)
    _offer(start, total, seconds, question, again=sweep is not None)
    if layers != stack.layer_numbers:
        st.caption(
            f"All heads would take more than {in_time(LONGEST)} here, so only those of layer "
            f"{layers[0]} are tried. Choose another layer below."
        )


def _asked(key: KEY, shown: bool) -> bool:
    """Whether a link asks for what is not shown yet; both stand in the address."""
    state = st.session_state
    before = state.get("tried written")
    address.start("tried", False, address.yes("tried"))
    if state["tried"] and state["tried written"] is not before:  # the address has just said so
        state[ASKED] = key
    asked = not shown and state.get(ASKED) == key
    state["tried"] = shown or asked
    address.finish("tried", False)
    return asked


def _layers(runs: Runs, stack: Stack, layer: int) -> tuple[int, ...]:
    """All layers, or the chosen one where all would take too long."""
    count = sum(stack.layer(number).n_heads for number in stack.layer_numbers)
    return stack.layer_numbers if count * runs.seconds <= LONGEST else (layer,)


def _offer(
    start: Callable[[], None], total: int, seconds: float, question: Question, again: bool
) -> None:
    """The button, and what it costs."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Try all heads again" if again else "Switch off each head in turn",
            key="try_heads",
            icon=":material/replay:" if again else ":material/play_arrow:",
            on_click=start,
        )
        texts = " on both texts" if question.kind == "similarity" else ""
        st.caption(f"{total} runs{texts}, about {in_time(seconds)} here. It can be stopped.")


def _steps(
    runs: Runs, stack: Stack, question: Question, layers: tuple[int, ...], on_top: bool
) -> Iterator[HeadEffect]:
    before = runs.after if on_top else runs.before

    def number(now: list[Capture]) -> float:
        return question.number(before, now)

    besides = runs.applied if on_top else None
    captures = list(runs.setting.captures)
    return each_head_off(captures, stack.name, number, besides, layers)


def _live(sweep: Sweep, seconds: float) -> None:
    """How far it is; each look runs a slice of it."""
    try:
        if sweep.begun:  # in a thread of its own: many small steps that share cores stall
            workers().submit(sweep.go_on).result()
        sweep.begun = True
    except (ModelError, ValueError) as error:
        sweep.steps, sweep.stopped = None, True
        st.error(plain(str(error)))
        return
    if sweep.is_over:
        st.rerun(scope="app")
    done = len(sweep.found)
    pace = sweep.seconds / done if done else seconds * MARGIN
    left = in_time(max((sweep.total - done) * pace, 1.0))
    st.progress(done / sweep.total, f"{done} of {sweep.total} heads tried, about {left} left")
    if st.button("Stop", key="stop_heads", icon=":material/stop:"):
        sweep.steps, sweep.stopped = None, True
        st.rerun(scope="app")
    if sweep.found:
        best = _strongest(sweep.found)
        st.caption(f"The strongest so far: L{best.layer}H{best.head}, {say.signed(best.change)}.")


def _strongest(found: list[HeadEffect]) -> HeadEffect:
    return max(found, key=lambda each: abs(each.change) if np.isfinite(each.change) else -1.0)
