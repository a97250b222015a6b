"""Lines over an axis, with bands or bars of what is uncertain, linear or logarithmic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Ink, Theme, from_hex, head_colors, ink
from explorer.figures.labels import escape, label_pixels

Numbers = Sequence[int | float] | npt.NDArray[Any]
Range = tuple[int | float, int | float]
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x")
BAND = 0.22  # opacity
LEGEND_SAMPLE = 46  # pixels a legend's entry takes besides its text


class Line(NamedTuple):
    """A named series of points; nan is a gap, and so is 0 or less on a logarithmic axis."""

    name: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    """With `high`: a band about the line, or bars at its points where `bars` is set."""
    high: Numbers | None = None
    dash: str | None = None
    """"dot", "dash" … as Plotly names them; none is a solid line."""
    markers: bool = False
    color: str | None = None
    """#rrggbb; by itself each line has a hue of its own."""
    bars: bool = False
    line: bool = True
    """Without it only the points show."""


def lines(
    series: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    theme: Theme,
    x_log: bool = False,
    y_log: bool = False,
    width: int | float = 470,
    height: int | float = 340,
    x_ticks: Mapping[Any, str] | None = None,
    y_ticks: Mapping[Any, str] | None = None,
    x_range: Range | None = None,
    y_range: Range | None = None,
    hover: str = "%{y:.3~g}",
    title: str | None = None,
) -> go.Figure:
    """The lines, with a legend below where there are two or more; `width` holds the whole figure.

    Ticks are value: text. Ranges are in the data's units, and fit the data by themselves.
    `hover` is how a value reads in its tooltip.
    """
    colors = ink(theme)
    hues = head_colors(len(series), theme)
    traces: list[dict[str, Any]] = []
    for place, (line, hue) in enumerate(zip(series, hues, strict=True)):
        shown = line.color or hue
        if line.low is not None and line.high is not None and not line.bars:
            traces.append(_band(line.x, line.low, line.high, shown, y_log))
        traces.append(_trace(line, shown, SYMBOLS[place % len(SYMBOLS)], hover, y_log))
    wide = y_ticks and max(label_pixels(text) for text in y_ticks.values())
    left = max(52, round(wide) + 34) if wide else 64
    right = 14
    plot = max(width - left - right, 120)
    entry, rows = _legend(series, plot)
    top = 12 + (26 if title else 0)
    margin = {"l": left, "r": right, "t": top, "b": 52 + frame.LEGEND_HEIGHT * rows}
    layout = frame.layout(colors, width=plot, height=height, margin=margin, title=title)
    across = _axis(colors, x_title, x_log, x_ticks, x_range)
    up = _axis(colors, y_title, y_log, y_ticks, y_range)
    layout["legend"] |= {"orientation": "h", "entrywidth": entry, "y": -50 / height}
    layout |= {"showlegend": rows > 0, "dragmode": False, "xaxis": across, "yaxis": up}
    return go.Figure(data=traces or [frame.NOTHING], layout=layout)


def _trace(line: Line, color: str, symbol: str, hover: str, y_log: bool) -> dict[str, Any]:
    mode = "+".join(["lines"] * line.line + ["markers"] * (line.markers or not line.line))
    y = _numbers(line.y, y_log)
    name = escape(line.name)
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": mode,
        "name": name,
        "x": np.asarray(line.x, dtype=np.float64),
        "y": y,
        "line": {"color": color, "width": 2, "dash": line.dash or "solid"},
        "marker": {"color": color, "size": 7, "symbol": symbol},
        "hovertemplate": f"{name}<br>%{{x:,}}: <b>{hover}</b><extra></extra>",
    }
    if line.bars and line.low is not None and line.high is not None:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": np.asarray(line.high, dtype=np.float64) - y,
            "arrayminus": y - np.asarray(line.low, dtype=np.float64),
            "color": color,
            "thickness": 1.5,
            "width": 4,
        }
    return trace


def _band(
    x_values: Numbers, low_values: Numbers, high_values: Numbers, color: str, y_log: bool
) -> dict[str, Any]:
    """The ground between low and high; on a logarithmic axis it ends where low is 0 or less."""
    x = np.asarray(x_values, dtype=np.float64)
    low, high = _numbers(low_values, y_log), _numbers(high_values, y_log)
    there = np.isfinite(low) & np.isfinite(high)
    red, green, blue = from_hex(color)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": np.concatenate([x[there], x[there][::-1]]),
        "y": np.concatenate([low[there], high[there][::-1]]),
        "fill": "toself",
        "fillcolor": f"rgba({red},{green},{blue},{BAND})",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _numbers(values: Numbers, log: bool) -> npt.NDArray[np.float64]:
    numbers = np.array(values, dtype=np.float64)
    if log:
        numbers[numbers <= 0] = np.nan
    return numbers


def _axis(
    colors: Ink, title: str, log: bool, ticks: Mapping[Any, str] | None, within: Range | None
) -> dict[str, Any]:
    axis = frame.axis(colors, title, 2, fixedrange=True) | {
        "type": "log" if log else "linear",
        "showgrid": True,
        "gridcolor": colors.line,
        "gridwidth": 0.5,
        "autorange": within is None,
        "range": None if within is None else [float(end) for end in within],
    }
    if log and within is not None:
        axis["range"] = [float(np.log10(end)) for end in within]
    if ticks is None:
        return axis | {"tickmode": "auto", "nticks": 7, "exponentformat": "power"}
    return axis | {"tickvals": list(ticks), "ticktext": [escape(text) for text in ticks.values()]}


def _legend(series: Sequence[Line], room: int | float) -> tuple[int, int]:
    """Pixels of one entry's text, and how many rows of entries that makes."""
    if len(series) < 2:
        return 0, 0
    entry = round(max(6.6 * len(line.name) for line in series)) + 6
    in_a_row = max(1, int(room // (entry + LEGEND_SAMPLE)))
    return entry, -(-len(series) // in_a_row)
