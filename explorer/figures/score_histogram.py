"""How a head's scores are spread, beside the bell curve that an assumption expects."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Theme, ink
from explorer.figures.labels import escape

CURVE_POINTS = 161


def score_histogram(
    edges: npt.NDArray[np.floating],
    density: npt.NDArray[np.floating],
    *,
    expected_variance: int | float,
    x_title: str,
    bars_name: str,
    curve_name: str,
    theme: Theme,
    width_px: int = 480,
    height_px: int = 210,
) -> go.Figure:
    """Bars of equal width, and a normal curve about 0 with the variance that is expected."""
    if len(edges) != len(density) + 1:
        raise ValueError(f"edges: {len(edges)} given for {len(density)} bars; one more would work")
    colors = ink(theme)
    spread = float(np.sqrt(expected_variance))
    reach = max(float(abs(edges).max()), 3.5 * spread)
    # Points are close where the curve is, however wide the bars reach.
    x = np.linspace(-min(reach, 4 * spread), min(reach, 4 * spread), CURVE_POINTS)
    curve = np.exp(-((x / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
    margin = {"l": 52, "r": 14, "t": 10, "b": 52 + frame.LEGEND_HEIGHT * 2}
    plot = max(width_px - margin["l"] - margin["r"], 160)
    layout = frame.layout(colors, width=plot, height=height_px, margin=margin)
    layout["legend"] |= {"y": -48 / height_px}
    grid = {"showgrid": True, "gridcolor": colors.line, "gridwidth": 0.5, "tickmode": "auto"}
    layout |= {
        "showlegend": True,
        "dragmode": False,
        "bargap": 0,
        "xaxis": frame.axis(colors, escape(x_title), 2, fixedrange=True)
        | {"range": [-1.02 * reach, 1.02 * reach], "tickmode": "auto", "nticks": 9},
        "yaxis": frame.axis(colors, "density", 2, fixedrange=True)
        | {"range": [0, 1.08 * max(float(density.max()), float(curve.max()))], "nticks": 4}
        | grid,
    }
    bars = {
        "type": "bar",
        "name": escape(bars_name),
        "x": (edges[:-1] + edges[1:]) / 2,
        "y": np.asarray(density),
        "width": float(edges[1] - edges[0]),
        "marker": {"color": colors.bar, "line": {"width": 0}},
        "hovertemplate": "about %{x:.2f}: density <b>%{y:.3f}</b><extra></extra>",
    }
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": escape(curve_name),
        "x": x,
        "y": curve,
        "line": {"color": colors.accent, "width": 2},
        "hoverinfo": "skip",
    }
    return go.Figure(data=[bars, line], layout=layout)
