"""A matrix with its numbers: tokens downwards, dimensions across, row 0 on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Ink, Theme, diverging_scale, ink
from explorer.figures.domain import Values, value_domain
from explorer.figures.labels import hover_label, hover_texts, label_pixels, tick_stride, ticks
from explorer.figures.numbers import cell_numbers

NUMBER_WIDTH, NUMBER_HEIGHT = 28, 16  # pixels a cell needs for its number
WIDEST_CELL, TALLEST_CELL = 44, 30
SMALLEST_WIDTH, SMALLEST_HEIGHT = 110, 60  # pixels: below this the colour bar does not fit
TICK_ROOM = 34  # pixels between two numbers at the colour bar
NUMBER_LABEL = 20  # pixels along the axis that a dimension's number needs


def matrix(values: Values, **given: Any) -> go.Figure:
    """What `matrix_parts` describes, as a Plotly figure."""
    return go.Figure(**matrix_parts(values, **given))


def matrix_parts(
    values: Values,
    *,
    row_labels: Sequence[str],
    theme: Theme,
    column_labels: Sequence[str] | None = None,
    row_title: str = "Token",
    column_title: str = "Dimension",
    name: str = "value",
    title: str | None = None,
    selected: tuple[int, int] | None = None,
    selected_row: int | None = None,
    blocks: Sequence[int] = (),
    value_range: tuple[float, float] | None = None,
    color_bar: bool = True,
    max_px: int = 320,
    max_height_px: int = 420,
) -> dict[str, Any]:
    """A matrix (rows, columns) as a heatmap centred on 0, with numbers in the cells where they fit.

    Columns are numbered unless they have labels. `selected` frames a cell, `selected_row` a whole
    row; `blocks` are the columns before which a line is drawn (where the next head begins).
    `value_range` fixes the colours, for matrices that are compared. At most `max_px` by
    `max_height_px` pixels of cells. Plotly takes a while to check a figure; where none is needed,
    these are its data and layout alone.
    """
    _check(values, row_labels, column_labels, blocks)
    n_rows, n_columns = values.shape
    numbers = [str(place) for place in range(n_columns)]
    labels = numbers if column_labels is None else list(column_labels)
    colors = ink(theme)
    shown = values.astype(np.float32)
    low, high = value_range if value_range is not None else value_domain(shown, "difference")

    width = float(max(min(max_px, n_columns * WIDEST_CELL), SMALLEST_WIDTH))
    height = float(max(min(max_height_px, n_rows * TALLEST_CELL), SMALLEST_HEIGHT))
    fits = width / n_columns >= NUMBER_WIDTH and height / n_rows >= NUMBER_HEIGHT
    texts = cell_numbers(shown, "difference", theme, low, high) if fits else []

    places, tick_texts = ticks(row_labels, height, vertical=True)
    longest = max(label_pixels(row_labels[place]) for place in places)
    widest = max(NUMBER_LABEL, *(label_pixels(label) + 6 for label in labels))
    stride = tick_stride(n_columns, width, widest)
    columns = list(range(0, n_columns, stride))
    margin = {
        "l": longest + 40,
        "r": frame.bar_overhang(high) if color_bar else 10,
        "t": 48 + (28 if title else 0),
        "b": frame.BAR_HEIGHT if color_bar else 8,
    }
    edge: dict[str, Any] = {"showline": True, "mirror": True, "linecolor": colors.line}
    layout = frame.layout(colors, width=width, height=height, title=title, margin=margin) | {
        "dragmode": False,
        "shapes": _lines(selected, selected_row, blocks, (n_rows, n_columns), colors),
        "xaxis": frame.axis(
            colors,
            column_title,
            n_columns,
            side="top",
            fixedrange=True,
            **edge,
            tickvals=columns,
            ticktext=[hover_label(labels[place], 16) for place in columns],
        ),
        "yaxis": frame.axis(
            colors,
            row_title,
            n_rows,
            down=True,
            fixedrange=True,
            **edge,
            tickvals=places,
            ticktext=tick_texts,
        ),
        "xaxis2": frame.hover_axis(
            "x", numbers if column_labels is None else hover_texts(labels, None)
        ),
        "yaxis2": frame.hover_axis("y", hover_texts(row_labels, None), down=True),
    }
    cells = {
        "type": "heatmap",
        "z": shown,
        "zmin": low,
        "zmax": high,
        "colorscale": diverging_scale(theme, low, high),
        "showscale": color_bar,
        "colorbar": _bar(colors, name, low, high, (width, height)),
        "hovertemplate": f"{hover_label(row_title)} %{{y}}<br>{hover_label(column_title)} %{{x}}"
        f"<br>{hover_label(name)} <b>%{{z:.4f}}</b><extra></extra>",
        "xgap": 1 if width / n_columns >= 12 else 0,
        "ygap": 1 if height / n_rows >= 12 else 0,
        "xaxis": "x2",
        "yaxis": "y2",
    }
    return {"data": [cells, frame.NOTHING, *texts], "layout": layout}


def matrix_alt(name: str, row_labels: Sequence[str], values: Values) -> str:
    """The matrix in words: its shape, its range, and where its largest value lies."""
    rows, columns = values.shape
    row, column = divmod(int(np.argmax(np.nan_to_num(values, nan=-np.inf))), columns)
    return (
        f"{name}: {rows} rows, one a token, and {columns} columns. Values from"
        f" {frame.number(float(np.nanmin(values)))} to {frame.number(float(np.nanmax(values)))};"
        f" the largest is in row {row} ({row_labels[row]}), column {column}."
    )


def _check(
    values: Values,
    row_labels: Sequence[str],
    column_labels: Sequence[str] | None,
    blocks: Sequence[int],
) -> None:
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"values: shape {values.shape} given; (rows, columns), neither 0, works")
    n_rows, n_columns = values.shape
    if len(row_labels) != n_rows:
        raise ValueError(f"row_labels: {len(row_labels)} given; {n_rows} would work")
    if column_labels is not None and len(column_labels) != n_columns:
        raise ValueError(f"column_labels: {len(column_labels)} given; {n_columns} would work")
    if any(not 0 < block < n_columns for block in blocks):
        raise ValueError(f"blocks: {list(blocks)} given; columns 1 to {n_columns - 1} would work")


def _bar(
    colors: Ink, name: str, low: float, high: float, size: tuple[float, float]
) -> dict[str, Any]:
    """The colour bar, with its ends and, where there is room for it, 0 as ticks."""
    width, height = size
    clear = TICK_ROOM * (high - low) / width
    ends = [low, *([0.0] if -low >= clear and high >= clear else []), high]
    return frame.color_bar(
        colors,
        name,
        plot_height=height,
        length=1.0,
        tickvals=ends,
    ) | {"tickangle": 0}


def _lines(
    selected: tuple[int, int] | None,
    selected_row: int | None,
    blocks: Sequence[int],
    shape: tuple[int, int],
    colors: Ink,
) -> list[dict[str, Any]]:
    """The borders of blocks, a thin frame around the chosen row, a thick one around the cell."""
    n_rows, n_columns = shape
    lines = [
        {"type": "line", "x0": block - 0.5, "x1": block - 0.5, "y0": -0.5, "y1": n_rows - 0.5}
        | {"line": {"color": colors.text, "width": 2}}
        for block in blocks
    ]
    frames: list[tuple[int, int, int, int]] = []
    if selected_row is not None:
        frames.append((selected_row, 0, n_columns - 1, 2))
    if selected is not None:
        frames.append((selected[0], selected[1], selected[1], 3))
    for row, first, last, line in frames:
        if not (0 <= row < n_rows and 0 <= first <= last < n_columns):
            raise ValueError(f"selected: row {row}, columns {first}–{last}; below {shape} works")
        lines.append(
            {
                "type": "rect",
                "x0": first - 0.5,
                "x1": last + 0.5,
                "y0": row - 0.5,
                "y1": row + 0.5,
                "line": {"color": colors.accent, "width": line},
            }
        )
    return lines
