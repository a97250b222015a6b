"""Panels under one another on one axis: how values are distributed, and the weights of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Ink, Theme, from_hex, head_colors, ink
from explorer.figures.labels import escape

BINS = 36
GAP = 0.14  # of the height, between panels
MOST_BARS = 128
"""More weights than this are drawn as one outline."""
LEFT, RIGHT, BELOW = 62, 12, 46


class Panel(NamedTuple):
    """A named set of values, and a note for its corner."""

    name: str
    values: npt.NDArray[np.floating]
    note: str = ""


def distributions(
    panels: Sequence[Panel],
    *,
    x_title: str,
    theme: Theme,
    width: int | float = 470,
    height: int | float = 300,
) -> go.Figure:
    """A histogram a panel, all on one axis, so that their widths compare; its area is 1."""
    traces = []
    for panel, color in zip(panels, head_colors(len(panels), theme), strict=True):
        finite = panel.values[np.isfinite(panel.values)].ravel()
        density, edges = np.histogram(finite, bins=_edges(finite), density=True)
        traces.append(_outline(edges, np.append(density, density[-1]), color))
    ends = np.concatenate([[0.0], *(trace["x"][[0, -1]] for trace in traces)])
    room = 0.02 * float(np.ptp(ends))
    figure = _stacked(panels, traces, x_title, "density", theme, width, height)
    figure.update_xaxes(
        range=[float(ends.min()) - room, float(ends.max()) + room], tickmode="auto", nticks=9
    )
    figure.update_yaxes(rangemode="tozero", tickmode="auto", nticks=4)
    return figure


def _edges(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Bins over all but the outermost values, 1 in 1000 on each side; room for equal ones."""
    low, high = np.quantile(values, [0.001, 0.999]) if values.size else (0.0, 1.0)
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, BINS + 1)


def sorted_weights(
    panels: Sequence[Panel],
    *,
    theme: Theme,
    width: int | float = 470,
    height: int | float = 300,
) -> go.Figure:
    """The weights of one row a panel, the largest first, all from 0 to 1."""
    traces = []
    for panel, color in zip(panels, head_colors(len(panels), theme), strict=True):
        ordered = np.sort(panel.values.astype(np.float64))[::-1]
        places = np.arange(1, len(ordered) + 1, dtype=np.float64)
        if len(ordered) > MOST_BARS:
            outline = np.append(ordered, ordered[-1])
            traces.append(_outline(np.append(places, places[-1] + 1) - 0.5, outline, color))
            continue
        hover = f"{escape(panel.name)}, key %{{x}} by weight<br><b>%{{y:.4~g}}</b><extra></extra>"
        bars = {"type": "bar", "x": places, "y": ordered, "marker": {"color": color}}
        traces.append(bars | {"hovertemplate": hover, "marker_line_width": 0})
    figure = _stacked(panels, traces, "keys, the heaviest first", "weight", theme, width, height)
    n = max(len(panel.values) for panel in panels)
    figure.update_xaxes(range=[0.4, n + 0.6], tickmode="auto", nticks=8, tickformat=",d")
    figure.update_yaxes(range=[0, 1], tickvals=[0, 0.5, 1], ticktext=["0", "½", "1"])
    return figure


def _outline(
    x: npt.NDArray[np.floating], y: npt.NDArray[np.floating], color: str
) -> dict[str, Any]:
    """Steps with the ground below them filled: one path, however many there are."""
    red, green, blue = from_hex(color)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {"color": color, "width": 1.5, "shape": "hv"},
        "fill": "tozeroy",
        "fillcolor": f"rgba({red},{green},{blue},0.55)",
        "hovertemplate": "%{x:.3~g}: <b>%{y:.3~g}</b><extra></extra>",
    }


def _stacked(
    panels: Sequence[Panel],
    traces: Sequence[dict[str, Any]],
    x_title: str,
    y_title: str,
    theme: Theme,
    width: int | float,
    height: int | float,
) -> go.Figure:
    """The traces in panels under one another, the first on top, each with its name and note."""
    colors = ink(theme)
    n = len(panels)
    each = (1 - GAP * (n - 1)) / n
    margin = {"l": LEFT, "r": RIGHT, "t": 24, "b": BELOW}
    plot = max(width - LEFT - RIGHT, 120)
    layout = frame.layout(colors, width=plot, height=height, margin=margin)
    notes = []
    for place, panel in enumerate(panels):
        top = 1 - place * (each + GAP)
        axis = "yaxis" if place == 0 else f"yaxis{place + 1}"
        layout[axis] = _axis(colors, y_title) | {"domain": [max(top - each, 0), top], "anchor": "x"}
        notes.append(_note(colors, f"<b>{escape(panel.name)}</b>", top, "left"))
        notes.append(_note(colors, escape(panel.note), top, "right"))
    layout["xaxis"] = _axis(colors, x_title) | {"anchor": "y" if n == 1 else f"y{n}"}
    layout |= {"annotations": notes, "dragmode": False, "bargap": 0.2}
    placed = [
        trace | {"yaxis": "y" if place == 0 else f"y{place + 1}", "showlegend": False}
        for place, trace in enumerate(traces)
    ]
    return go.Figure(data=placed, layout=layout)


def _axis(colors: Ink, title: str) -> dict[str, Any]:
    grid = {"showgrid": True, "gridcolor": colors.line, "gridwidth": 0.5}
    axis = frame.axis(colors, title, 1, fixedrange=True) | grid
    axis.pop("range")
    return axis


def _note(colors: Ink, text: str, top: int | float, side: str) -> dict[str, Any]:
    return {
        "xref": "paper",
        "yref": "paper",
        "x": 0 if side == "left" else 1,
        "xanchor": side,
        "y": top,
        "yanchor": "bottom",
        "text": text,
        "showarrow": False,
        "font": frame.font(colors, strong=side == "left"),
    }
