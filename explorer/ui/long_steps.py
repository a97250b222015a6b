"""Moving over a long text's map: a dragged box, a click, buttons and numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from explorer.ui import long_place
from explorer.ui.long_picture import Shown
from explorer.ui.long_place import Span, Window
from explorer.ui.plotly_box import Box
from explorer.ui.plotly_click import Click

CLOSER = 4
"""A step in makes each side so many times shorter."""
SHORTEST = 12
"""Tokens: no step in goes below so many on a side."""


def show(shown: Shown, trail: Sequence[Window]) -> None:
    """The way in and out by keyboard: to the strongest bin, out again, or to given positions."""
    n_q, n_k = trail[0].rows[1], trail[0].keys[1]
    with st.container(horizontal=True, gap="small"):
        st.button(
            f"In on the strongest, ×{CLOSER}",
            icon=":material/zoom_in:",
            on_click=_to_strongest,
            args=(shown,),
            help="Goes to the bin with the largest value; at single tokens it chooses that pair.",
        )
        st.button(
            "Out",
            icon=":material/zoom_out:",
            on_click=long_place.back_to,
            args=(len(trail) - 2,),
            disabled=len(trail) < 2,
        )
        with st.popover("Positions", icon=":material/straighten:"):
            _positions(shown.window, n_q, n_k)


def _positions(window: Window, n_q: int, n_k: int) -> None:
    """Both sides of the window as numbers."""
    state = st.session_state
    if state.get("positions of") != window:
        state["positions of"] = window
        for name, (start, stop) in (("rows", window.rows), ("keys", window.keys)):
            state[f"{name}_from"], state[f"{name}_to"] = start, stop - 1
    for name, title, n in (("rows", "Queries", n_q), ("keys", "Keys", n_k)):
        left, right = st.columns(2)
        left.number_input(f"{title} from", 0, n - 1, key=f"{name}_from")
        right.number_input("to", 0, n - 1, key=f"{name}_to")
    st.button("Show this part", on_click=_to_positions, key="show_positions")


def _to_positions() -> None:
    sides = []
    for name in ("rows", "keys"):
        first, last = (int(st.session_state[f"{name}_{end}"]) for end in ("from", "to"))
        sides.append((min(first, last), max(first, last) + 1))
    long_place.enter(Window(*sides))


def dragged(box: Box, shown: Shown) -> None:
    """Zooms to the bins that a box touches; a box within one bin is a click on it."""
    rows, keys = (
        _touched(side, edges)
        for side, edges in ((box.y, shown.picture.rows), (box.x, shown.picture.keys))
    )
    long_place.enter(Window(rows, keys))


def _touched(side: tuple[float, float], edges: Sequence[int]) -> Span:
    last = len(edges) - 2
    first, stop = (min(max(round(at), 0), last) for at in side)
    return edges[first], edges[stop + 1]


def clicked(click: Click, shown: Shown) -> None:
    """A click chooses the pair where bins are single tokens, and goes closer where not."""
    n_rows, n_keys = shown.values.shape
    if 0 <= click.y < n_rows and 0 <= click.x < n_keys:
        if shown.single:
            long_place.choose_pair(shown.picture.rows[click.y], shown.picture.keys[click.x])
        else:
            _closer(click.y, click.x, shown)


def _to_strongest(shown: Shown) -> None:
    row, key = divmod(int(np.nan_to_num(shown.values).argmax()), shown.values.shape[1])
    if shown.single:
        long_place.choose_pair(shown.picture.rows[row], shown.picture.keys[key])
    _closer(row, key, shown)


def _closer(row: int, key: int, shown: Shown) -> None:
    """A step in, to a bin's surroundings."""
    sides = []
    for at, edges in ((row, shown.picture.rows), (key, shown.picture.keys)):
        start, stop = edges[0], edges[-1]
        length = max((stop - start) // CLOSER, min(SHORTEST, stop - start))
        middle = (edges[at] + edges[at + 1]) // 2
        first, last = long_place.around(middle - start, length, stop - start)
        sides.append((start + first, start + last))
    long_place.enter(Window(*sides))
