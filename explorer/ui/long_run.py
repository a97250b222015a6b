"""The pass over all weights of a layer: announced, asked for where it is long, shown, stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from explorer.capture import capture
from explorer.cost import in_bytes, in_count, in_time
from explorer.interface import use_own_attention
from explorer.long_sources import own_heads
from explorer.maps import Overview, overview
from explorer.metrics import WeightedLayer, marks_of
from explorer.models import ModelError, TextError, memory_errors
from explorer.overlapping import capture_pieces
from explorer.piecewise import PiecewiseAttention
from explorer.stacks import PiecewiseStack, Stack
from explorer.tokens import Tokens
from explorer.ui import address, long_kept
from explorer.ui.long_whose import Whose
from explorer.ui.words import plain, small_share

SIZE = 256
"""Bins of the map's longer side."""
AT_ONCE = 4.0
"""Seconds: what is expected to take longer waits for the reader to ask."""
PER_PAIR = 3e-9
"""Seconds a head takes for one weight, until this machine has been measured."""
PER_LAYER = 5
"""A model's own pass costs about so many weights a pair, for each of its layers."""
OVERLAP = 2
"""Overlapping pieces read each token about so often."""
FLOAT = 4
"""Bytes of a weight."""
MOST_TABLES = 2e9
"""Bytes of weights that are taken from a model which gives them in whole tables only."""
ENOUGH = 1e8
"""Weights of a pass from which its time tells how fast this machine is."""
ASKED = "long asked"
WHILE_RUNNING = """<style>[data-testid="stStatusWidget"] button, .st-key-long_compute {
  display: none; }</style>"""
"""Hides Streamlit's own Stop, which leaves a bar that stands, and the button that was pressed."""


class Seen(NamedTuple):
    """A layer over a long text, all its weights seen once."""

    overview: Overview
    tokens: Tokens
    text: str
    notes: tuple[str, ...]
    whose: Whose
    key: tuple[object, ...]


def run(whose: Whose) -> Seen:
    """What one pass over all weights gives. Ends the page where it is yet to be asked for."""
    slot = long_kept.overview_slot(*whose.key)
    line, place, below = st.empty(), st.empty(), st.empty()
    if slot.value is None:
        seconds = _expected(whose)
        line.markdown(
            f"{_amount(whose, len(whose.tokens))} · about {in_time(max(seconds, 0.1))} here"
        )
        if seconds > AT_ONCE:
            below.caption(
                "Every weight is computed once, by blocks: exact, in little memory. What you zoom "
                "into is then computed anew for that part alone."
            )
            if st.session_state.get(ASKED) != whose.key:
                icon = ":material/play_arrow:"
                key = "long_compute"
                place.button("Compute", key, icon=icon, on_click=_ask, args=(whose.key,))
                address.stop()
        try:
            with place.container():
                slot.filled(lambda: _work(whose))
        except (TextError, ModelError) as error:
            place.empty()
            below.error(plain(str(error)), icon=":material/info:")
            address.stop()
        place.empty()
        below.empty()
    found, tokens, notes, took = slot.value  # type: ignore[misc]
    line.markdown(f"{_amount(whose, len(tokens))}, each computed, in {in_time(took)}")
    for note in notes:
        st.caption(plain(note))
    return Seen(found, tokens, whose.text.text, notes, whose, whose.key)


def _amount(whose: Whose, n: int) -> str:
    """How much there is to compute, for n tokens."""
    count = in_count(whose.n_heads * whose.pairs())
    most = "up to " if whose.kind == "model" else ""  # its own masks are not known yet
    heads = whose.n_heads
    tokens = f"**{n:,} token{'s' * (n != 1)}**"
    return f"{tokens} · {heads} head{'s' * (heads != 1)} · {most}{count} weights"


def progressed(label: str) -> Callable[[float], None]:
    """A bar with a Stop button. What it returns takes the share that is done.

    It is called in the page's own thread: drawing the bar ends the run where another is wanted,
    as after a click on Stop.
    """
    st.html(WHILE_RUNNING)
    with st.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, f"{label} …", width="stretch")
        st.button("Stop", key=f"stop {label}", icon=":material/stop:", on_click=_ask, args=(None,))
    shown = time.monotonic()

    def progress(share: float) -> None:
        nonlocal shown
        if time.monotonic() - shown > 0.1:
            shown = time.monotonic()
            bar.progress(min(max(share, 0.0), 1.0), f"{label}: {share:.0%}")

    return progress


def _ask(key: tuple[object, ...] | None) -> None:
    st.session_state[ASKED] = key


def _work(whose: Whose) -> tuple[Overview, Tokens, tuple[str, ...], float]:
    place = st.empty()
    with place.container():
        tokens, record, notes = _source(whose)
    place.empty()
    progress = progressed("All weights")
    started = time.monotonic()
    with memory_errors():
        found = overview(record, SIZE, marks=marks_of(tokens, tokens), progress=progress)
    took = time.monotonic() - started
    weights = record.n_heads * whose.pairs()
    if weights > ENOUGH and whose.kind != "model":
        _speed()[0] = (_speed()[0] + took / weights) / 2  # one pass beside another is slow
    return found, tokens, notes, took


def _source(whose: Whose) -> tuple[Tokens, WeightedLayer, tuple[str, ...]]:
    """The tokens and the layer's record. Raises TextError, ModelError."""
    if whose.kind != "model":
        tokens, record = own_heads(
            whose.loaded,
            whose.text.text,
            kind="layer" if whose.kind == "layer" else "random",
            layer=whose.layer,
            n_heads=whose.n_heads,
            seed=whose.seed,
            mask=whose.mask(),
            progress=progressed("Queries and keys"),
        )
        return tokens, record, ()
    slot = long_kept.run_slot(*whose.model, whose.text.digest)
    stack, notes = slot.filled(lambda: _model_run(whose))
    if whose.layer not in stack.layer_numbers:
        there = ", ".join(map(str, stack.layer_numbers))
        raise ModelError(
            f"Layer {whose.layer} of {whose.loaded.title} has no attention. These have: {there}."
        )
    record = stack.layer(whose.layer)
    if isinstance(record, PiecewiseAttention):
        missing = small_share(float(record.special_weight.mean()))
        notes = (
            f"Each piece has special tokens of its own, such as a start. They get {missing} of a "
            "query's weight on average, and are not in the picture.",
        )
    return stack.query_tokens, record, notes


def _model_run(whose: Whose) -> tuple[Stack | PiecewiseStack, tuple[str, ...]]:
    """The model's own pass over the text: at once where it can, else in overlapping pieces."""
    if not whose.whole:
        label = f"{whose.loaded.title} reads"
        return capture_pieces(whose.loaded, whose.text.text, progress=progressed(label)), ()
    loaded = whose.loaded
    tables = FLOAT * whose.n_heads * whose.pairs() * (loaded.n_layers or 1)
    if tables > MOST_TABLES and not use_own_attention(loaded.model):
        raise ModelError(
            f"{loaded.title} computes attention in its own code, which makes whole tables: for "
            f"this text {in_bytes(tables)}, and at most {in_bytes(MOST_TABLES)} are made here. "
            "Choose a shorter text, another model, or our own random heads."
        )
    st.html(WHILE_RUNNING)
    with st.spinner(f"{loaded.title} reads the text …"):
        found = capture(loaded, whose.text.text)
    return next(iter(found.stacks.values())), found.notes


def _expected(whose: Whose) -> float:
    """Seconds that the pass will take, about."""
    pairs = whose.n_heads * whose.pairs()
    seconds = pairs * _speed()[0]
    if whose.kind == "model":
        known = long_kept.run_slot(*whose.model, whose.text.digest).value is not None
        again = 0 if known else PER_LAYER * (whose.loaded.n_layers or 1)
        seconds *= 1 + again * (1 if whose.whole else OVERLAP)
    return seconds


@st.cache_resource
def _speed() -> list[float]:
    """Seconds for one weight on this machine, by the last pass that was long enough to tell."""
    return [PER_PAIR]
