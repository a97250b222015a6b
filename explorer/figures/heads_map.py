"""Heads as points in a plane: near ones look alike. Both axes have the same length a pixel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Ink, Theme, head_colors, ink, sequential_colors, to_hex
from explorer.figures.domain import round_values
from explorer.figures.heads_heatmap import UNKNOWN, number_domain
from explorer.figures.labels import escape
from explorer.figures.scatter import AIR, BELOW, FAINTEST, POINT, by_layer, ring

Points = npt.NDArray[np.floating]  # (heads, 2)
Numbers = npt.NDArray[np.floating]
Whole = npt.NDArray[np.integer]
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down", "x")
MARGIN = {"l": 58, "r": 20, "t": 10}  # right: half of the colour bar's last number
STOPS = 33


def heads_map(
    points: Points,
    *,
    layers: Whole,
    heads: Whole,
    theme: Theme,
    values: Numbers | None = None,
    values_title: str = "",
    groups: Whole | None = None,
    selected: tuple[int, int] | None = None,
    width_px: int = 480,
    height_px: int = 360,
) -> go.Figure:
    """One point a head; its customdata is [layer, head], so that a click can tell which.

    Coloured by layer, by `values` (a number a head; NaN is drawn hollow), or by `groups`, which
    differ in their signs as well. `selected` (layer, head) is ringed and named.
    """
    n = len(points)
    given: dict[str, Any] = {"layers": layers, "heads": heads, "values": values, "groups": groups}
    for name, array in given.items():
        if array is not None and len(array) != n:
            raise ValueError(f"{name}: {len(array)} given for {n} heads; as many would work")
    colors = ink(theme)
    width = max(width_px - MARGIN["l"] - MARGIN["r"], 160)
    x_range, y_range = _equal_ranges(points, width, height_px)
    below, entries = frame.BAR_HEIGHT, 0
    if groups is not None:
        names = group_names(groups)
        traces = _in_groups(points, layers, heads, groups, names, theme, colors)
        below, entries = 0, len(names)
    elif values is not None:
        traces = _by_value(points, layers, heads, values, values_title, theme, height_px, colors)
        entries = len(traces) - 1
    else:
        numbers = sorted(set(layers.tolist()))
        shade = by_layer(numbers, theme, height_px, colors)
        color = {"color": layers.astype(np.int32)}
        traces = [_points(points, layers, heads, "", colors, color | shade)]
    if selected is not None:
        x, y = (points[:, at].astype(np.float64) for at in (0, 1))
        traces += ring(selected, x, y, layers, heads, colors, x_range, False)
    margin = MARGIN | {"b": BELOW + below + frame.LEGEND_HEIGHT * entries}
    layout = frame.layout(colors, width=width, height=height_px, margin=margin)
    layout["legend"] |= {"y": -(BELOW + below - 6) / height_px}
    layout |= {
        "showlegend": bool(entries),
        "dragmode": False,
        "xaxis": _axis(colors, "first axis of the map", x_range, width),
        "yaxis": _axis(colors, "second axis", y_range, height_px),
    }
    return go.Figure(data=traces, layout=layout)


def heads_map_alt(count: int, shown: float, colored_by: str) -> str:
    """The map in words, for those who cannot see it."""
    return (
        f"A map of {count} heads, a point each, coloured by {colored_by}: heads that spread their "
        f"weights alike stand near each other. It shows {100 * shown:.0f} % of the squared "
        "distances. The nearest and farthest heads of the chosen one are named beside it."
    )


def group_names(groups: Whole) -> Mapping[int, str]:
    """What each group is called: counted from 1, with its size."""
    counts = {int(group): int((groups == group).sum()) for group in np.unique(groups)}
    return {
        group: f"group {group + 1}: {count} head{'s' * (count != 1)}"
        for group, count in counts.items()
    }


def _points(
    points: Points,
    layers: Whole,
    heads: Whole,
    about: str,
    colors: Ink,
    marker: Mapping[str, Any],
    **more: Any,
) -> dict[str, Any]:
    hover = "<b>L%{customdata[0]}H%{customdata[1]}</b>" + (f"<br>{about}" if about else "")
    return {
        "type": "scatter",
        "mode": "markers",
        "x": points[:, 0].astype(np.float32),
        "y": points[:, 1].astype(np.float32),
        "customdata": np.stack([layers, heads], -1).tolist(),
        "hovertemplate": f"{hover}<extra></extra>",
        "showlegend": False,
        "marker": {"size": POINT, "line": {"width": 1, "color": colors.page}, **marker},
        **more,
    }


def _in_groups(
    points: Points,
    layers: Whole,
    heads: Whole,
    groups: Whole,
    names: Mapping[int, str],
    theme: Theme,
    colors: Ink,
) -> list[dict[str, Any]]:
    """A trace for each group, with a colour and a sign of its own."""
    hues = head_colors(len(names), theme)
    traces = []
    for at, (group, name) in enumerate(names.items()):
        of = groups == group
        marker = {"color": hues[at], "symbol": SYMBOLS[at % len(SYMBOLS)], "size": POINT + 1}
        more = {"name": name, "showlegend": True}
        traces.append(_points(points[of], layers[of], heads[of], name, colors, marker, **more))
    return traces


def _by_value(
    points: Points,
    layers: Whole,
    heads: Whole,
    values: Numbers,
    title: str,
    theme: Theme,
    height: int,
    colors: Ink,
) -> list[dict[str, Any]]:
    """Heads in the colour of their number, and hollow those without."""
    known = np.isfinite(values)
    low, high = number_domain(values)
    ticks = round_values(low, high)
    ramp = sequential_colors(theme, 256)[
        np.linspace(round(255 * FAINTEST), 255, STOPS).astype(int)  # the lowest seen on the page
    ]
    scale = [[n / (STOPS - 1), to_hex(color)] for n, color in enumerate(ramp)]
    bar = frame.color_bar(
        colors,
        escape(title),
        plot_height=height,
        length=1.0,
        tickvals=ticks,
    )
    bar["y"] = -BELOW / height
    marker = {
        "color": values[known].astype(np.float32),
        "colorscale": scale,
        "cmin": low,
        "cmax": high,
        "showscale": True,
        "colorbar": bar,
    }
    about = f"{escape(title)} <b>%{{marker.color:.3~g}}</b>"
    traces = [_points(points[known], layers[known], heads[known], about, colors, marker)]
    if not known.all():
        hollow = {"symbol": "circle-open", "color": colors.muted, "line": {"width": 2}}
        of, more = ~known, {"name": UNKNOWN, "showlegend": True}
        traces.append(_points(points[of], layers[of], heads[of], UNKNOWN, colors, hollow, **more))
    return traces


def _equal_ranges(
    points: Points, width: int | float, height: int | float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of both axes: all points with air around, a unit as long on one as on the other."""
    low, high = points.min(0), points.max(0)
    middle = (low + high) / 2
    pixels = np.array([width, height])
    unit = float(((high - low) / pixels).max()) * (1 + 2 * AIR)  # a pixel, in the map's distance
    half = (unit if unit > 0 else 1.0 / float(pixels.min())) * pixels / 2
    (left, bottom), (right, top) = (middle - half).tolist(), (middle + half).tolist()
    return (left, right), (bottom, top)


def _axis(
    colors: Ink, title: str, ends: tuple[float, float], pixels: int | float
) -> dict[str, Any]:
    return frame.axis(colors, title, 2, fixedrange=True) | {
        "range": list(ends),
        "tickmode": "auto",
        "nticks": max(3, int(pixels // 60)),
        "showgrid": True,
        "gridcolor": colors.line,
        "gridwidth": 0.5,
        "zeroline": False,
    }
