"""A part of one head's map of a long text: bins of many tokens, down to single ones.

Drawn in bins: bin b of the rows lies at y = b. Ticks stand at round positions in the text, with the
word that is there. What a bin holds is named by one text a row and one a column, never one a cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures import long_axis as axis
from explorer.figures.colors import Ink, Theme, ink, sequential_scale
from explorer.figures.domain import Values, round_values
from explorer.figures.labels import tick_label
from explorer.figures.long_axis import Side
from explorer.figures.odd import FORBIDDEN, Flags, Trace, hatching, key_entry, not_finite

MARKS = {"size": 9, "line": {"width": 0}}


def long_map(
    values: Values,
    queries: Side,
    keys: Side,
    *,
    theme: Theme,
    what: str,
    forbidden: Flags | None = None,
    barred_name: str = FORBIDDEN,
    selected: tuple[int, int] | None = None,
    width_px: int = 520,
) -> go.Figure:
    """The picture of `values` (rows, keys) with a tooltip of both sides' words.

    `what` names a bin's value for the colour bar. Colour follows the square root of the value, up
    to the largest here or, where a few lie far above the rest, to what most have. `forbidden` bins
    hold no value; `barred_name` says why. `selected` is a bin to frame. `width_px` holds the whole
    figure. A drag draws a box; what it means is the caller's.
    """
    if values.shape != (queries.n, keys.n) or 0 in values.shape:
        raise ValueError(
            f"values: shape {values.shape} given; ({queries.n}, {keys.n}), neither 0, would work"
        )
    colors = ink(theme)
    barred = np.zeros(values.shape, bool) if forbidden is None else forbidden
    shown = values.astype(np.float32)
    missing = ~np.isfinite(shown) & ~barred
    shown[barred] = np.nan
    top, clipped = axis.color_top(shown)
    side, sizes = axis.sizes(queries, keys, width_px)
    places = round_values(0.0, top)
    bar = frame.color_bar(
        colors,
        f"{what} (√ colour scale)",
        plot_height=side,
        length=1.0,
        tickvals=places,
        ticktext=[*map(frame.number, places[:-1]), "≥ " * clipped + frame.number(top)],
    )
    traces: list[Trace] = [_heatmap(shown, theme, top, what, bar), frame.NOTHING]
    odd: list[Trace] = []
    if barred.any():
        traces.insert(0, _ground(barred, barred_name, colors))  # what lies above answers first
        odd.append(key_entry(barred_name, colors.forbidden, colors.line))
    if missing.any():
        odd.append(hatching(missing, not_finite(int(missing.sum())), colors))
    if queries.found or keys.found:
        traces += [_marks(queries, colors, down=True), _marks(keys, colors, down=False)]
    columns = axis.label_columns(width_px)
    layout = _layout(colors, queries, keys, side, sizes, columns, len(odd)) | {
        "shapes": [
            *_lines(queries, keys, colors),
            *([] if selected is None else [_frame(selected, colors)]),
        ],
    }
    return go.Figure(data=[*traces, *odd], layout=layout)


def long_map_alt(name: str, rows: tuple[int, int], keys: tuple[int, int], values: Values) -> str:
    """The picture in words: whose it is, what part, where its largest value lies."""
    finite = np.nan_to_num(values)
    row, key = np.unravel_index(int(finite.argmax()), finite.shape)
    return (
        f"Attention of {name}: queries {rows[0]:,} to {rows[1] - 1:,} down, keys {keys[0]:,} to "
        f"{keys[1] - 1:,} across, in {values.shape[0]} by {values.shape[1]} bins. The strongest "
        f"bin is row {row + 1}, column {key + 1}, with {finite.max():.3g}."
    )


def _heatmap(shown: Values, theme: Theme, top: float, what: str, bar: dict[str, Any]) -> Trace:
    return {
        "type": "heatmap",
        "z": shown,
        "zmin": 0.0,
        "zmax": top,
        "colorscale": sequential_scale(theme),
        "colorbar": bar,
        "hoverongaps": False,
        "hovertemplate": f"Query %{{y}}<br>Key %{{x}}<br>{what} <b>%{{z:.4~g}}</b><extra></extra>",
        "xaxis": "x2",
        "yaxis": "y2",
    }


def _ground(barred: Flags, name: str, colors: Ink) -> Trace:
    """What shows and answers where bins hold no value."""
    return {
        "type": "heatmap",
        "z": np.zeros(barred.shape, np.uint8),
        "colorscale": [[0, colors.forbidden], [1, colors.forbidden]],
        "showscale": False,
        "hovertemplate": f"Query %{{y}}<br>Key %{{x}}<br>no value: {name}<extra></extra>",
        "xaxis": "x2",
        "yaxis": "y2",
    }


def _marks(side: Side, colors: Ink, down: bool) -> dict[str, Any]:
    """Small arrows at the edge of the map, a bin each, where the word that was found stands."""
    along = list(side.found)
    across = [-0.5] * len(along)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": across if down else along,
        "y": along if down else across,
        "marker": MARKS
        | {"color": colors.accent, "symbol": "triangle-right" if down else "triangle-down"},
        "cliponaxis": False,
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _lines(queries: Side, keys: Side, colors: Ink) -> list[dict[str, Any]]:
    """A line along the row and the column of the place that is looked at."""
    line = {"type": "line", "line": {"color": colors.accent, "width": 1.5}}
    lines = []
    if queries.current is not None:
        at = queries.current
        lines.append({**line, "x0": -0.5, "x1": keys.n - 0.5, "y0": at, "y1": at})
    if keys.current is not None:
        at = keys.current
        lines.append({**line, "x0": at, "x1": at, "y0": -0.5, "y1": queries.n - 0.5})
    return lines


def _frame(cell: tuple[int, int], colors: Ink) -> dict[str, Any]:
    row, key = cell
    edges = {"x0": key - 0.5, "x1": key + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return {"type": "rect", **edges, "line": {"color": colors.accent, "width": 3}}


def _layout(
    colors: Ink,
    queries: Side,
    keys: Side,
    pixels: int,
    sizes: dict[str, float],
    columns: int,
    legend_lines: int,
) -> dict[str, Any]:
    margin = {**sizes, "b": frame.BAR_HEIGHT + frame.LEGEND_HEIGHT * legend_lines}
    down_at, down_texts = axis.ticks(queries, pixels)
    across_at, across_texts = axis.ticks(keys, pixels)
    edge: dict[str, Any] = {"showline": True, "mirror": True, "linecolor": colors.line}
    still = {"fixedrange": True}
    across = {
        "tickvals": across_at,
        "ticktext": [tick_label(text, columns) for text in across_texts],
        "tickangle": -45,
        "side": "top",
    }
    down = {
        "tickvals": down_at,
        "ticktext": [tick_label(text, columns) for text in down_texts],
        "scaleanchor": False,
    }
    return frame.layout(colors, width=pixels, height=pixels, margin=margin) | {
        "showlegend": legend_lines > 0,
        "dragmode": "select",
        "selectdirection": "d",  # both sides at once, however small the box
        "xaxis": frame.axis(colors, "Key (column)", keys.n) | edge | across | still,
        "yaxis": frame.axis(colors, "Query (row)", queries.n, down=True) | edge | down | still,
        "xaxis2": frame.hover_axis("x", axis.hovers(keys)) | still,
        "yaxis2": frame.hover_axis("y", axis.hovers(queries), down=True) | still,
    }
