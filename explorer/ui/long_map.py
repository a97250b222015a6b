"""One head's map of a long text, as far in as the reader is: drag a box or click to go on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.figures.long_axis import Side
from explorer.figures.long_map import long_map, long_map_alt
from explorer.ui import controls, frame, long_place, long_steps, width
from explorer.ui.long_find import Found
from explorer.ui.long_picture import Shown, barred_name, bin_of, picture_of, words
from explorer.ui.long_place import Window
from explorer.ui.long_run import Seen
from explorer.ui.plotly_box import boxes

TOOLS = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "zoom2d", "pan2d", "autoScale2d"],
}
PICTURES = {"largest": "Largest weight", "mean": "Mean weight"}
WHAT = {
    "single": "weight",
    "mean": "weight on the bin's keys, mean of its queries",
    "largest": "largest weight in the bin",
}
WIDER = 1.12
"""The map's column, as a share of half the page, where the page is wide."""
WIDE = 400  # pixels of half the page
LARGEST = 720  # pixels


def choose_picture() -> str:
    """What a bin of the map shows: one of PICTURES."""
    return controls.choose_one("picture", PICTURES, label="A bin shows its", buttons=True)


def show(seen: Seen, head: int, kind: str, trail: Sequence[Window], found: Found) -> Shown:
    """The map of one head in the last window of the trail; marks the places that were found."""
    window = trail[-1]
    picture = picture_of(seen, head, window)
    rows, keys = picture.rows, picture.keys
    single = len(rows) - 1 == rows[-1] - rows[0] and len(keys) - 1 == keys[-1] - keys[0]
    tensor = picture.mean if kind == "mean" else picture.largest
    values: npt.NDArray[np.float32] = tensor[0].float().cpu().numpy()
    shown = Shown(window, picture, values, single)
    pair = long_place.pair()
    in_view = pair is not None and _inside(pair, window)
    figure = long_map(
        values,
        _side(seen, rows, found),
        _side(seen, keys, found),
        theme=frame.theme(),
        what=WHAT["single" if single else kind],
        forbidden=picture.forbidden[0].cpu().numpy(),
        barred_name=barred_name(seen),
        selected=(bin_of(pair[0], rows), bin_of(pair[1], keys)) if pair and in_view else None,
        width_px=min(map_pixels(), LARGEST),
    )
    alt = long_map_alt(f"head {head}", *window, values)
    st.plotly_chart(figure, key="long_map", theme=None, config=TOOLS, alt=alt, width="content")
    boxes(
        "long_map",
        "long_map_box",
        lambda box: long_steps.dragged(box, shown),
        lambda click: long_steps.clicked(click, shown),
    )
    return shown


def places() -> tuple[DeltaGenerator, DeltaGenerator]:
    """A wider place for the map and one beside it, or below it on a phone."""
    if width.column() < WIDE:
        return width.side_by_side()
    return width.side_by_side((WIDER, 2 - WIDER))


def map_pixels() -> int:
    """How wide the map's place is."""
    column = width.column()
    return column if column < WIDE else int(WIDER * column)


def beside_pixels() -> int:
    """How wide the place beside the map is."""
    column = width.column()
    return column if column < WIDE else int((2 - WIDER) * column)


def _side(seen: Seen, edges: Sequence[int], found: Found) -> Side:
    inside = [at for at, _ in found.places if edges[0] <= at < edges[-1]]
    bins = sorted({bin_of(at, edges) for at in inside})
    now = None if found.now is None else found.now[0]
    current = bin_of(now, edges) if now in inside else None
    hover = [words(seen.text, seen.tokens, each) for each in pairwise(edges)]
    return Side(edges, seen.tokens.texts, hover, bins, current)


def _inside(pair: tuple[int, int], window: Window) -> bool:
    return all(start <= at < stop for at, (start, stop) in zip(pair, window, strict=True))
