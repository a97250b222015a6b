"""A few heads as small maps in one row or two, with one range of colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame, png
from explorer.figures.colors import Theme, ink, sequential_colors, sequential_scale
from explorer.figures.domain import Values, round_values
from explorer.figures.labels import escape
from explorer.figures.montage import Flags
from explorer.figures.odd import FORBIDDEN, key_entry

GAP, LABEL = 16, 40  # pixels between two maps, and above each for its name and a note
SMALLEST = 110  # pixels: with less for each, they stand in two rows
LARGEST = 180
ENLARGED = 2  # times: the picture of a short map, so that its pixels stay square and sharp


def heads_strip(
    maps: Sequence[Values],
    heads: Sequence[tuple[int, int]],
    notes: Sequence[str],
    *,
    theme: Theme,
    forbidden: Sequence[Flags] | None = None,
    width_px: int = 900,
) -> go.Figure:
    """Small maps, each named and with a note; colour is the square root of the weight.

    A click anywhere in a map is one on its head: (layer, head) is in the point's customdata.
    """
    n = len(maps)
    if n == 0 or len(heads) != n or len(notes) != n:
        raise ValueError(f"heads, notes: {len(heads)} and {len(notes)} given for {n} maps")
    colors = ink(theme)
    columns, side = _places(n, width_px)
    rows = math.ceil(n / columns)
    largest = [float(values[np.isfinite(values)].max(initial=0.0)) for values in maps]
    top = max(largest) or 1.0
    width, height = columns * (side + GAP) - GAP, rows * (side + LABEL) + (rows - 1) * GAP
    traces: list[dict[str, Any]] = []
    corners = []
    for at, values in enumerate(maps):
        left = (at % columns) * (side + GAP)
        above = (at // columns) * (side + LABEL + GAP) + LABEL
        corners.append((left, above))
        barred = None if forbidden is None else forbidden[at]
        traces.append(_picture(values, barred, top, left, above, side, theme))
    middles = [(above + side / 2, left + side / 2) for left, above in corners]
    texts = [
        f"<b>L{layer}H{head}</b><br>{escape(note)}<br>largest weight {most:.3f}"
        for (layer, head), note, most in zip(heads, notes, largest, strict=True)
    ]
    traces.append(frame.unseen_markers(middles, [list(head) for head in heads], texts))
    bar = frame.color_bar(
        colors,
        "weight, share of 1 (√ colour scale)",
        plot_height=height,
        length=min(1.0, 330 / width),
        tickvals=round_values(0.0, top),
    )
    traces.append(frame.color_bar_alone(sequential_scale(theme), 0.0, top, bar))
    some_barred = forbidden is not None and any(flags.any() for flags in forbidden)
    keys = [key_entry(FORBIDDEN, colors.forbidden, colors.line)] if some_barred else []
    margin = {
        "l": 10,
        "r": max(14, frame.bar_overhang(top)),
        "t": 2,
        "b": frame.BAR_HEIGHT + frame.LEGEND_HEIGHT * len(keys),
    }
    hidden = {"visible": False, "fixedrange": True}
    layout = frame.layout(colors, width=width, height=height, margin=margin) | {
        "showlegend": bool(keys),
        "dragmode": False,
        "hoverdistance": -1,
        "xaxis": {"range": [0, width], **hidden},
        "yaxis": {"range": [height, 0], "scaleanchor": False, **hidden},
        "annotations": [
            {
                "text": f"<b>L{layer}H{head}</b><br>{escape(note)}",
                "x": left,
                "y": above,
                "xanchor": "left",
                "yanchor": "bottom",
                "align": "left",
                "showarrow": False,
                "font": frame.font(colors, strong=True),
            }
            for (left, above), (layer, head), note in zip(corners, heads, notes, strict=True)
        ],
        "shapes": [
            {
                "type": "rect",
                "x0": left,
                "x1": left + side,
                "y0": above,
                "y1": above + side,
                "line": {"color": colors.line, "width": 1},
            }
            for left, above in corners
        ],
    }
    return go.Figure(data=[*traces, *keys], layout=layout)


def _places(n: int, width_px: int) -> tuple[int, int]:
    """How many maps stand in a row, and the pixels of each."""
    for columns in (n, math.ceil(n / 2), math.ceil(n / 3), 1):
        side = (width_px + GAP) // columns - GAP
        if side >= SMALLEST or columns == 1:
            return columns, min(max(side, 60), LARGEST)
    raise AssertionError


def _picture(
    values: Values,
    barred: Flags | None,
    top: int | float,
    left: int | float,
    above: int | float,
    side: int | float,
    theme: Theme,
) -> dict[str, Any]:
    codes: npt.NDArray[np.uint8] = png.encode(values, 0.0, top, root=True)
    if barred is not None:
        np.copyto(codes, np.uint8(png.FORBIDDEN), where=np.broadcast_to(barred, codes.shape))
    large = np.repeat(np.repeat(codes, ENLARGED, 0), ENLARGED, 1)
    source = png.palette_png(large, sequential_colors(theme, png.LEVELS), ink(theme))
    rows, columns = large.shape
    return png.spread(source, (rows, columns), width=side, height=side, left=left, top=above)


def strip_alt(heads: Sequence[tuple[int, int]], notes: Sequence[str]) -> str:
    """The small maps in words."""
    named = [f"L{layer}H{head} ({note})" for (layer, head), note in zip(heads, notes, strict=True)]
    return f"Small maps of attention weights with one range of colours: {', '.join(named)}."
