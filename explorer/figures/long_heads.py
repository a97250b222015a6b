"""All heads of one layer over a long text: small maps in rows, one picture and a marker each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame, png
from explorer.figures.colors import Theme, ink, sequential_colors
from explorer.figures.labels import escape
from explorer.figures.long_axis import color_top
from explorer.figures.odd import FORBIDDEN, Flags, key_entry

EDGE, NAME = 4, 18  # pixels around a small map, and above it for its name
SMALLEST, LARGEST = 64, 120  # pixels of a small map's side

Weights = npt.NDArray[np.floating]  # (n_heads, rows, keys)


def columns_of(n_heads: int, width_px: int) -> int:
    """How many small maps stand side by side: rows as even as they can be."""
    most = max(1, min(n_heads, width_px // (SMALLEST + 2 * EDGE)))
    rows = math.ceil(n_heads / min(most, 6))
    return math.ceil(n_heads / rows)


def long_heads(
    maps: Weights,
    *,
    theme: Theme,
    forbidden: Flags,
    notes: Sequence[str],
    barred_name: str = FORBIDDEN,
    width_px: int = 480,
) -> go.Figure:
    """One small map a head, query 0 on top, each coloured up to its own largest values.

    `forbidden` is (n_heads or 1, rows, keys). `notes` is a line for each head's tooltip. A pixel
    is the largest of its bins. A marker's customdata is its head; head h lies at
    divmod(h, columns_of(n_heads, width_px)).
    """
    n_heads = len(maps)
    if len(notes) != n_heads:
        raise ValueError(f"notes: {len(notes)} given; {n_heads} would work")
    colors = ink(theme)
    across = columns_of(n_heads, width_px)
    down = math.ceil(n_heads / across)
    side = min(width_px // across - 2 * EDGE, LARGEST)
    barred = np.broadcast_to(forbidden, maps.shape)
    codes = png.encode(_shares(maps, barred), 0.0, 1.0, root=True)
    codes[barred & (codes != png.HATCH)] = png.FORBIDDEN
    cell = np.full((n_heads, side + EDGE + NAME, side + 2 * EDGE), png.GAP, np.uint8)
    for head in range(n_heads):
        cell[head, NAME : NAME + side, EDGE : EDGE + side] = _sized(codes[head], side)
    picture = np.full((down * across, *cell.shape[1:]), png.GAP, np.uint8)
    picture[:n_heads] = cell
    height, width = cell.shape[1:]
    rows = picture.reshape(down, across, height, width).transpose(0, 2, 1, 3)
    pixels = down * height, across * width
    uri = png.palette_png(
        np.ascontiguousarray(rows.reshape(pixels)), sequential_colors(theme, png.LEVELS), colors
    )
    places = [divmod(head, across) for head in range(n_heads)]
    texts = [f"<b>Head {head}</b><br>{escape(note)}" for head, note in enumerate(notes)]
    traces = [
        png.spread(uri, pixels, width=across, height=down),
        frame.unseen_markers(places, [[head] for head in range(n_heads)], texts),
    ]
    odd = [key_entry(barred_name, colors.forbidden, colors.line)] if forbidden.any() else []
    hidden = {"visible": False, "fixedrange": True}
    margin = {"l": 0, "r": 0, "t": 0, "b": 34 * bool(odd)}
    layout = frame.layout(colors, width=pixels[1], height=pixels[0], margin=margin) | {
        "dragmode": False,
        "hoverdistance": -1,
        "showlegend": bool(odd),
        "annotations": [
            {
                "x": column - 0.5 + EDGE / width,
                "y": row - 0.5,
                "text": str(head),
                "showarrow": False,
                "xanchor": "left",
                "yanchor": "top",
                "font": frame.font(colors),
                "borderpad": 0,
            }
            for head, (row, column) in enumerate(places)
        ],
        "xaxis": frame.axis(colors, "", across, **hidden),
        "yaxis": frame.axis(colors, "", down, down=True, scaleanchor=False, **hidden),
    }
    layout["legend"]["y"] = -4 / pixels[0]
    return go.Figure(data=[*traces, *odd], layout=layout)


def long_heads_alt(n_heads: int, layer: str) -> str:
    """The picture in words."""
    return (
        f"{n_heads} small maps, one for each head of {layer}: queries run down, keys across, over "
        "the whole text."
    )


def _shares(maps: Weights, barred: Flags) -> Weights:
    """Each value as a share of what the strongest colour of its head stands for."""
    tops = [color_top(own[~off])[0] for own, off in zip(maps, barred, strict=True)]
    return maps / np.array(tops, np.float32)[:, None, None]


def _sized(codes: png.Codes, side: int) -> png.Codes:
    """A map of side × side pixels; where it has more bins, a pixel is the largest of some."""
    rows, keys = codes.shape
    return _stretched(_stretched(codes, side, rows, 0), side, keys, 1)


def _stretched(codes: png.Codes, side: int, n: int, axis: int) -> png.Codes:
    if n <= side:
        return codes.take(np.arange(side) * n // side, axis=axis)
    starts = np.arange(side) * n // side
    # Codes of forbidden bins are larger than any value's, and must not hide one.
    ranked = np.where(codes == png.FORBIDDEN, 0, codes + 1).astype(np.uint8)
    found = np.maximum.reduceat(ranked, starts, axis=axis)
    return np.where(found == 0, png.FORBIDDEN, found - 1).astype(np.uint8)
