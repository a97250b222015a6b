"""Which heads matter, on the page What if: each head switched off in turn, in short slices.

A slice runs a few heads and gives the page back, so that others are served and a stop is heard.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.capture import Capture, Stack
from explorer.cost import in_time
from explorer.effects import HeadEffect, each_head_off
from explorer.models import ModelError
from explorer.outcomes import Question
from explorer.streaming import workers
from explorer.ui import controls, which_heads_view
from explorer.ui import what_if_words as say
from explorer.ui.what_if import KEY, Runs
from explorer.ui.words import plain

KEPT = "heads tried"
SLICE = 0.7
"""Seconds of one slice."""
EVERY = 0.1
"""Seconds between two slices, for others."""
MARGIN = 1.5
"""A head takes so many times a run, with what is between the slices."""
LONGEST = 300.0
"""Seconds; where all heads would take longer, only those of the chosen layer are tried."""


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

    @property
    def is_over(self) -> bool:
        """Whether no more will come."""
        return self.steps is None

    def go_on(self) -> None:
        """One slice."""
        start = time.perf_counter()
        while self.steps is not None and time.perf_counter() < start + SLICE:
            effect = next(self.steps, None)
            if effect is None:
                self.steps = None
            else:
                self.found.append(effect)
        self.seconds += time.perf_counter() - start + EVERY


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
    mine = sweep is not None and sweep.key == key
    if sweep is not None and not mine and not sweep.is_over:
        sweep.steps, sweep.stopped = None, True  # its text or question is gone from the page
    if not mine or sweep is None:
        _offer(runs, stack, question, layers, key, on_top)
    elif not sweep.is_over:
        st.fragment(_live, run_every=EVERY)(sweep, runs.seconds)
    else:
        which_heads_view.effects(runs, stack, question, sweep, layer, head, beside)
        _offer(runs, stack, question, layers, key, on_top, again=True)


def _layers(runs: Runs, stack: Stack, layer: int) -> tuple[int, ...]:
    """All layers, or the chosen one where all would take too long."""
    count = sum(stack.layer(number).n_heads for number in stack.layer_numbers)
    return stack.layer_numbers if count * runs.seconds <= LONGEST else (layer,)


def _offer(
    runs: Runs,
    stack: Stack,
    question: Question,
    layers: tuple[int, ...],
    key: KEY,
    on_top: bool,
    again: bool = False,
) -> None:
    total = sum(stack.layer(number).n_heads for number in layers)

    def start() -> None:
        st.session_state[KEPT] = Sweep(key, total, _steps(runs, stack, question, layers, on_top))

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Try all heads again" if again else "Switch off each head in turn",
            key="try_heads",
            icon=":material/replay:" if again else ":material/play_arrow:",
            on_click=start,
        )
        texts = " on both texts" if question.kind == "similarity" else ""
        took = in_time(max(total * runs.seconds * MARGIN, 1.0))
        st.caption(f"{total} runs{texts}, about {took} here. It can be stopped.")
    if layers != stack.layer_numbers:
        st.caption(
            f"All heads would take more than {in_time(LONGEST)} here, so only those of layer "
            f"{layers[0]} are tried. Choose another layer below."
        )


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
