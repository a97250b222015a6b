"""One head in full: queries downwards, keys across, query 0 on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame, png
from explorer.figures.colors import (
    Ink,
    Theme,
    diverging_scale,
    ink,
    sequential_scale,
)
from explorer.figures.domain import UNITS, Kind, Values, round_values, value_domain
from explorer.figures.labels import hover_label, hover_texts, label_pixels, ticks
from explorer.figures.numbers import cell_numbers, palette
from explorer.figures.odd import Flags, no_value, odd_cells

SMALLEST_PLOT = 140  # pixels: below this the colour bar and the axis titles do not fit
LARGEST_CELL = 56  # pixels
NUMBERS_UP_TO = 12  # tokens: past this numbers are a clutter
NUMBER_WIDTH = 21  # pixels a cell needs for its number
EXTRAS_UP_TO = 128  # tokens: past this the tooltip shows the value alone
ZOOM_FROM = 32  # tokens: past this a drag zooms in
LETTER, LINE = 4.9, 15  # pixels that the colour bar's title takes across, and a line of it down
BESIDE = 16  # pixels that the title may reach out on either side of the plot
HEATMAP_UP_TO = 512  # tokens: past this a palette picture, whose tooltip has positions alone


def head_map(
    values: Values,
    *,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    kind: Kind,
    theme: Theme,
    forbidden: Flags | None = None,
    padded_queries: Flags | None = None,
    raw_query: Sequence[str] | None = None,
    raw_key: Sequence[str] | None = None,
    extra: Mapping[str, Values] | None = None,
    selected: tuple[int, int] | None = None,
    title: str | None = None,
    unit: str | None = None,
    value_range: tuple[int | float, int | float] | None = None,
    show_numbers: bool | Literal["auto"] = "auto",
    max_px: int = 620,
) -> go.Figure:
    """A heatmap of one head's weights, scores, dots or a difference, with its tokens.

    Weights run from 0 to the largest shown, coloured by their square root; everything else is
    centred on 0. `value_range` fixes the range, for pictures that are compared. Forbidden cells
    hold no value of kind "weights"; padded rows and NaN are hatched. `extra` adds named arrays to
    the tooltip, up to 128 tokens. `unit` says what a cell holds, a comma, and in what unit, where
    that is not the kind's own.
    """
    _check(values, query_labels, key_labels, forbidden, padded_queries, extra or {})
    n_q, n_k = values.shape
    colors = ink(theme)
    barred = np.zeros(values.shape, bool) if forbidden is None else forbidden
    padded = np.zeros(n_q, bool) if padded_queries is None else padded_queries
    missing = ~np.isfinite(values) & ~barred & ~padded[:, None]
    shown = values.astype(np.float32)
    shown[barred | missing | padded[:, None]] = np.nan
    low, high = value_range if value_range is not None else value_domain(shown, kind)
    if not low < high:
        raise ValueError(f"value_range: {value_range} given; a low below a high would work")
    scale = sequential_scale(theme) if kind == "weights" else diverging_scale(theme, low, high)

    cell = min(max_px / max(n_q, n_k), LARGEST_CELL)
    width, height = max(n_k * cell, SMALLEST_PLOT), max(n_q * cell, SMALLEST_PLOT)
    unit = unit or UNITS[kind]
    bar = _bar(colors, _bar_title(kind, unit, width), low, high, height)
    as_picture = max(n_q, n_k) > HEATMAP_UP_TO
    if as_picture:
        traces = [
            _picture(shown, barred, missing | padded[:, None], kind, theme, low, high),
            frame.color_bar_alone(scale, low, high, bar),
        ]
    else:
        span = {"zmin": low, "zmax": high, "colorscale": scale, "colorbar": bar}
        traces = [
            *no_value(barred, padded, missing, colors),  # below: what lies above answers first
            _heatmap(shown, unit.partition(",")[0], extra or {}, cell) | span,
            frame.NOTHING,
        ]
    if show_numbers == "auto":
        show_numbers = max(n_q, n_k) <= NUMBERS_UP_TO and width / n_k >= NUMBER_WIDTH
    if show_numbers:
        traces += cell_numbers(shown, kind, theme, low, high)
    odd = odd_cells(barred, padded, missing, colors, drawn=as_picture)
    layout = _layout(colors, width, height, query_labels, key_labels, title, len(odd), high) | {
        "dragmode": "zoom" if max(n_q, n_k) > ZOOM_FROM else False,
        "shapes": [] if selected is None else _highlight(selected, n_q, n_k, colors),
        "xaxis2": frame.hover_axis("x", hover_texts(key_labels, raw_key)),
        "yaxis2": frame.hover_axis("y", hover_texts(query_labels, raw_query), down=True),
    }
    if "<br>" in bar["title"]["text"]:
        layout["height"] += LINE
        layout["margin"]["b"] += LINE
        layout["legend"]["y"] -= LINE / height
    return go.Figure(data=[*traces, *odd], layout=layout)


def _layout(
    ink: Ink,
    width: int | float,
    height: int | float,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    title: str | None,
    legend_lines: int,
    high: int | float,
) -> dict[str, Any]:
    """Margins that hold the longest label shown, and the two axes."""
    n_q, n_k = len(query_labels), len(key_labels)
    key_places, key_texts = ticks(key_labels, width, vertical=False)
    query_places, query_texts = ticks(query_labels, height, vertical=True)
    key_widths = [label_pixels(key_labels[place]) for place in key_places]
    reach = frame.slanted_overhang(key_widths, key_places, width / n_k, n_k)
    margin = {
        "l": max(label_pixels(query_labels[place]) for place in query_places) + 40,
        "r": max(reach + 12, frame.bar_overhang(high)),
        "t": frame.SLANT * max(key_widths) + 44 + (28 if title else 0),
        "b": frame.BAR_HEIGHT + frame.LEGEND_HEIGHT * legend_lines,
    }
    edge: dict[str, Any] = {"showline": True, "mirror": True, "linecolor": ink.line}
    across = {"tickvals": key_places, "ticktext": key_texts, "tickangle": -45, "side": "top"}
    down = {"tickvals": query_places, "ticktext": query_texts, "scaleanchor": False}
    return frame.layout(ink, width=width, height=height, title=title, margin=margin) | {
        "showlegend": legend_lines > 0,
        "xaxis": frame.axis(ink, "Key (column)", n_k) | edge | across | _bounds(n_k),
        "yaxis": frame.axis(ink, "Query (row)", n_q, down=True) | edge | down | _bounds(n_q),
    }


def _bounds(n: int) -> dict[str, Any]:
    """How far an axis can be moved, and whether it can at all."""
    return {"minallowed": -0.5, "maxallowed": n - 0.5, "fixedrange": n <= ZOOM_FROM}


def _check(
    values: Values,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    forbidden: Flags | None,
    padded_queries: Flags | None,
    extra: Mapping[str, Values],
) -> None:
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"values: shape {values.shape} given; (n_q, n_k), neither 0, would work")
    n_q, n_k = values.shape
    if (len(query_labels), len(key_labels)) != (n_q, n_k):
        raise ValueError(
            f"query_labels, key_labels: {len(query_labels)} and {len(key_labels)} given;"
            f" {n_q} and {n_k} would work"
        )
    arrays: dict[str, tuple[npt.NDArray[Any] | None, tuple[int, ...]]] = {
        "forbidden": (forbidden, (n_q, n_k)),
        "padded_queries": (padded_queries, (n_q,)),
    }
    for name, array in extra.items():
        arrays[f"extra[{name!r}]"] = (array, (n_q, n_k))
    for name, (given, shape) in arrays.items():
        if given is not None and given.shape != shape:
            raise ValueError(f"{name}: shape {given.shape} given; {shape} would work")


def _heatmap(
    shown: Values,
    name: str,
    extra: Mapping[str, Values],
    cell: int | float,
) -> dict[str, Any]:
    lines = [f"{name} <b>%{{z:.4f}}</b>"]
    customdata = None
    if extra and max(shown.shape) <= EXTRAS_UP_TO:
        customdata = np.stack([array.astype(np.float32) for array in extra.values()], axis=-1)
        lines += [
            f"{hover_label(name)} %{{customdata[{place}]:.4f}}" for place, name in enumerate(extra)
        ]
    gap = 1 if cell >= 12 else 0
    return {
        "type": "heatmap",
        "z": shown,
        "customdata": customdata,
        "hovertemplate": _template(lines),
        "hoverongaps": False,
        "xaxis": "x2",
        "yaxis": "y2",
        "xgap": gap,
        "ygap": gap,
    }


def _template(lines: Sequence[str]) -> str:
    return "<br>".join(["Query %{y}", "Key %{x}", *lines]) + "<extra></extra>"


def _picture(
    shown: Values,
    barred: Flags,
    hatch: Flags,
    kind: Kind,
    theme: Theme,
    low: int | float,
    high: int | float,
) -> dict[str, Any]:
    codes = png.encode(shown, low, high, root=kind == "weights")
    codes[barred] = png.FORBIDDEN
    png.hatched(codes, hatch)
    source = png.palette_png(codes, palette(kind, theme, low, high, png.LEVELS), ink(theme))
    return {
        "type": "image",
        "source": source,
        "hovertemplate": _template([]),  # a picture's %{x} is a number, whatever the axis' texts
        "xaxis": "x2",
        "yaxis": "y2",
    }


def _bar_title(kind: Kind, unit: str, width: int | float) -> str:
    """What the colours are, in two lines where one is wider than the map."""
    title = unit + (" (√ colour scale)" if kind == "weights" else "")
    fits = len(title) * LETTER <= width + 2 * BESIDE
    return title if fits else title.replace(", ", ",<br>", 1)


def _bar(
    colors: Ink, title: str, low: int | float, high: int | float, height: int | float
) -> dict[str, Any]:
    """The colour bar, with its ends and round values between as ticks."""
    tickvals = round_values(low, high)
    return frame.color_bar(
        colors,
        title,
        plot_height=height,
        length=1.0,
        tickvals=tickvals,
    )


def _box(
    top: int | float, bottom: int | float, left: int | float, right: int | float
) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": left - 0.5,
        "x1": right + 0.5,
        "y0": top - 0.5,
        "y1": bottom + 0.5,
    }


def _highlight(cell: tuple[int, int], n_q: int, n_k: int, ink: Ink) -> list[dict[str, Any]]:
    """A thin frame around the row and the column, a thick one around the cell."""
    row, column = cell
    if not (0 <= row < n_q and 0 <= column < n_k):
        raise ValueError(f"selected: {cell} given; below ({n_q}, {n_k}) would work")
    boxes = (_box(row, row, 0, n_k - 1), _box(0, n_q - 1, column, column))
    thin, thick = ({"line": {"color": ink.accent, "width": width}} for width in (1, 3))
    return [*(box | thin for box in boxes), _box(row, row, column, column) | thick]
