"""Cells that hold no value: drawn so that none can be taken for a small one, and named."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.figures.colors import Ink
from explorer.figures.frame import NOTHING

Flags = npt.NDArray[np.bool_]
Trace = dict[str, Any]

FORBIDDEN = "forbidden by the mask"
PADDING = "padding, not a query"


def odd_cells(barred: Flags, padded: Flags, missing: Flags, ink: Ink, drawn: bool) -> list[Trace]:
    """What names them in the legend and, where not `drawn` into a picture already, hatches them."""
    traces = []
    if barred.any():
        traces.append(key_entry(FORBIDDEN, ink.forbidden, ink.line))
    for where, name in (
        (np.broadcast_to(padded[:, None], barred.shape), PADDING),
        (missing, not_finite(int(missing.sum()))),
    ):
        if where.any():
            entry = key_entry(name, ink.hatch, ink.line)
            traces.append(entry if drawn else hatching(where, name, ink))
    return traces


def key_entry(name: str, color: str, line: str) -> Trace:
    """A legend entry for a colour that is not on the colour bar."""
    return {
        **NOTHING,
        "name": name,
        "marker": {
            "symbol": "square",
            "size": 12,
            "color": color,
            "line": {"color": line, "width": 1},
        },
        "showlegend": True,
    }


def hatching(where: Flags, name: str, ink: Ink) -> Trace:
    """Hatched rectangles over the cells of `where`, one for each run of cells in a row."""
    x: list[float | None] = []
    y: list[float | None] = []
    for row in np.flatnonzero(where.any(axis=1)).tolist():
        for start, stop in runs(where[row]):
            left, right, top, bottom = start - 0.5, stop - 0.5, row - 0.5, row + 0.5
            x += [left, right, right, left, left, None]
            y += [top, top, bottom, bottom, top, None]
    return {
        "type": "scatter",
        "x": x[:-1],
        "y": y[:-1],
        "mode": "lines",
        "name": name,
        "line": {"width": 0, "color": ink.hatch},
        "fill": "toself",
        "fillcolor": ink.hatch,
        "fillpattern": {
            "shape": "/",
            "bgcolor": ink.padded,
            "fgcolor": ink.hatch,
            "size": 7,
            "solidity": 0.2,
            "fillmode": "replace",
        },
        "xaxis": "x2",  # where the cells are: axes that overlay others are drawn above them
        "yaxis": "y2",
        "hoverinfo": "skip",
        "showlegend": True,
    }


def row_grounds(barred: Flags, ink: Ink) -> list[dict[str, Any]]:
    """A ground across a bar chart, in the colour of forbidden cells, for each run of its rows."""
    return [
        {
            "type": "rect",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": start - 0.5,
            "y1": stop - 0.5,
            "fillcolor": ink.forbidden,
            "opacity": 0.6,
            "line": {"width": 0},
            "layer": "below",
        }
        for start, stop in runs(barred)
    ]


def not_finite(cells: int) -> str:
    """How many cells hold NaN or an infinity."""
    return f"not a finite number: {cells} cell{'s' * (cells != 1)}"


def runs(flags: Flags) -> list[tuple[int, int]]:
    """Start and stop of each unbroken run of True."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def no_value(barred: Flags, padded: Flags, missing: Flags, ink: Ink) -> list[Trace]:
    """A ground in the colour of forbidden cells, and the tooltip of every cell without value."""
    reasons = [
        name
        for where, name in ((barred, "forbidden"), (padded, "padding"), (missing, "not finite"))
        if where.any()
    ]
    if not reasons:
        return []
    return [
        {
            "type": "heatmap",
            "z": np.zeros(barred.shape, np.uint8),
            "colorscale": [[0, ink.forbidden], [1, ink.forbidden]],
            "showscale": False,
            "xaxis": "x2",
            "yaxis": "y2",
            "hovertemplate": "Query %{y}<br>Key %{x}<br>no value: "
            + " or ".join(reasons)
            + "<extra></extra>",
        }
    ]
