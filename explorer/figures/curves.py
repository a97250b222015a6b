"""Lines over log–log axes: how quantities grow with another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Theme, head_colors, ink

SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x")


def growth(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x_title: str,
    y_title: str,
    theme: Theme,
    x_ticks: Mapping[float, str],
    y_ticks: Mapping[float, str],
    height: int = 340,
    width: int = 470,
) -> go.Figure:
    """A line for each named series of points (x, y), both axes logarithmic.

    Series differ in colour and in symbol. Ticks are given as value: text; their extremes and the
    points fix the axes' ranges.
    """
    colors = ink(theme)
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": list(x),
            "y": list(y),
            "line": {"color": color, "width": 2},
            "marker": {"color": color, "size": 8, "symbol": symbol},
            "hovertemplate": f"{name}<br>%{{x:,}}: <b>%{{y:.3s}}</b><extra></extra>",
        }
        for (name, (x, y)), color, symbol in zip(
            series.items(), head_colors(len(series), theme), SYMBOLS, strict=False
        )
    ]
    margin = {"l": 78, "r": 12, "t": 12, "b": 60 + frame.LEGEND_HEIGHT * len(series)}
    layout = frame.layout(colors, width=width, height=height, margin=margin)
    legend = {**layout["legend"], "orientation": "v", "y": -62 / height}
    axes = {"type": "log", "autorange": True, "range": None, "showgrid": True}
    axes |= {"gridcolor": colors.line, "gridwidth": 0.5, "automargin": False}
    return go.Figure(
        data=traces,
        layout=layout
        | {
            "showlegend": True,
            "legend": legend,
            "xaxis": frame.axis(colors, x_title, 2) | axes | _ticks(x_ticks),
            "yaxis": frame.axis(colors, y_title, 2) | axes | _ticks(y_ticks),
        },
    )


def _ticks(ticks: Mapping[float, str]) -> dict[str, Any]:
    return {"tickvals": list(ticks), "ticktext": list(ticks.values())}
