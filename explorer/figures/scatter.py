"""All heads of a model as points: one number across, another one up, coloured by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import ColorScale, Ink, Theme, ink, sequential_colors, to_hex
from explorer.figures.labels import escape

Numbers = npt.NDArray[np.floating]
Whole = npt.NDArray[np.integer]
POINT, RING = 10, 20  # pixels
AIR = 0.06  # share of an axis's length that stays free at each end
BELOW = 54  # pixels from the plot to what stands under it: tick texts and the axis's title
FAINTEST = 0.28  # where the colours begin, so that the first layer stands out from the page
MOST_TICKS = 12  # layers named at the colour bar


def heads_scatter(
    x: Numbers,
    y: Numbers,
    *,
    layers: Whole,
    heads: Whole,
    x_title: str,
    y_title: str,
    theme: Theme,
    x_log: bool = False,
    y_log: bool = False,
    selected: tuple[int, int] | None = None,
    identity: str | None = None,
    level: tuple[int | float, str] | None = None,
    width_px: int = 480,
    height_px: int = 380,
) -> go.Figure:
    """One point a head; its customdata is [layer, head], so that a click can tell which.

    Heads without a number, and on a logarithmic axis those at 0 or below, are not drawn.
    `selected` (layer, head) is ringed and named. `identity` names a line y = x. `level` is a value
    of y to draw a line at, and what it is.
    """
    n = len(x)
    sizes = {"y": len(y), "layers": len(layers), "heads": len(heads)}
    for name, size in sizes.items():
        if size != n:
            raise ValueError(f"{name}: {size} given for {n} heads; as many would work")
    colors = ink(theme)
    across, up = _drawable(x, x_log), _drawable(y, y_log)
    kept = np.flatnonzero(np.isfinite(across) & np.isfinite(up))
    across, up = across[kept], up[kept]
    held = [float(level[0])] if level is not None else []
    both = np.concatenate([across, up]) if identity else np.array([])
    x_range = _range(np.concatenate([across, both]), x_log)
    y_range = _range(np.concatenate([up, both, _drawable(np.array(held), y_log)]), y_log)
    margin = {"l": 66, "r": 14, "t": 10, "b": BELOW + frame.BAR_HEIGHT}
    named = [name for name in (identity, level and level[1]) if name]
    margin["b"] += frame.LEGEND_HEIGHT * len(named)
    width = max(width_px - margin["l"] - margin["r"], 160)

    traces: list[dict[str, Any]] = []
    if identity:
        ends = [max(x_range[0], y_range[0]), min(x_range[1], y_range[1])]
        traces.append(_line(ends, ends, identity, colors.muted, "dash", x_log, y_log))
    if level is not None:
        flat = np.log10([level[0]] * 2) if y_log else np.array([level[0]] * 2)
        traces.append(_line(x_range, flat, level[1], colors.accent, "dot", x_log, y_log))
    numbers = sorted(set(layers.tolist()))
    values = [f"{escape(x_title)} <b>%{{x:.3~g}}</b>", f"{escape(y_title)} <b>%{{y:.3~g}}</b>"]
    name = "<b>L%{customdata[0]}H%{customdata[1]}</b>"
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": across,
            "y": up,
            "customdata": np.stack([layers[kept], heads[kept]], -1).tolist(),
            "hovertemplate": "<br>".join([name, *values]) + "<extra></extra>",
            "showlegend": False,
            "marker": {
                "size": POINT,
                "line": {"width": 1, "color": colors.page},
                "color": layers[kept].astype(np.int32),
                **by_layer(numbers, theme, height_px, colors),
            },
        }
    )
    if selected is not None:
        traces += ring(selected, across, up, layers[kept], heads[kept], colors, x_range, x_log)
    layout = frame.layout(colors, width=width, height=height_px, margin=margin)
    layout["legend"] |= {"y": -(BELOW + frame.BAR_HEIGHT - 6) / height_px}
    layout |= {
        "showlegend": bool(named),
        "dragmode": False,
        "xaxis": _axis(colors, x_title, x_range, x_log, width),
        "yaxis": _axis(colors, y_title, y_range, y_log, height_px),
    }
    return go.Figure(data=traces, layout=layout)


def scatter_alt(
    x: Numbers, y: Numbers, layers: Whole, heads: Whole, x_title: str, y_title: str
) -> str:
    """The picture in words: what it shows, and its extremes."""
    words = f"{len(x)} heads as points: {x_title} across, {y_title} up."
    finite = np.flatnonzero(np.isfinite(y))
    if not finite.size:
        return f"{words} None has a number."
    low, high = (finite[int(pick(y[finite]))] for pick in (np.argmin, np.argmax))
    return (
        f"{words} Up, the smallest is {y[low]:.3g} (L{layers[low]}H{heads[low]}), the largest"
        f" {y[high]:.3g} (L{layers[high]}H{heads[high]})."
    )


def _drawable(values: Numbers, log: bool) -> npt.NDArray[np.float64]:
    numbers = np.array(values, dtype=np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    if log:
        numbers[~(numbers > 0)] = np.nan
    return numbers


def _range(values: npt.NDArray[np.float64], log: bool) -> tuple[float, float]:
    """The ends of an axis, in its own units: logarithms where it is logarithmic."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return (0.0, 1.0)
    ends = np.array([finite.min(), finite.max()])
    low, high = np.log10(ends) if log else ends
    air = AIR * (high - low) if high > low else (0.3 if log else max(abs(high) * 0.1, 0.5))
    return float(low - air), float(high + air)


def _axis(
    colors: Ink, title: str, ends: tuple[float, float], log: bool, pixels: int | float
) -> dict[str, Any]:
    shown = frame.axis(colors, escape(title), 2, fixedrange=True) | {
        "type": "log" if log else "linear",
        "range": list(ends),
        "showgrid": True,
        "gridcolor": colors.line,
        "gridwidth": 0.5,
    }
    if not log:
        return shown | {"tickmode": "auto", "nticks": max(3, int(pixels // 45))}
    values = log_ticks(*ends)
    return shown | {"tickvals": values, "ticktext": [frame.number(value) for value in values]}


def log_ticks(low: int | float, high: int | float) -> list[float]:
    """Round values between two logarithms: 1, 2 and 5 in each decade, or powers of ten alone."""
    factors: Mapping[bool, tuple[int, ...]] = {True: (1, 2, 5), False: (1,)}
    step = max(1, round((high - low) / 6))
    decades = range(int(np.floor(low)), int(np.ceil(high)) + 1, step)
    values = [f * 10.0**decade for decade in decades for f in factors[high - low < 2.5]]
    return [value for value in values if low <= np.log10(value) <= high]


def _line(
    x: Sequence[float] | npt.NDArray[np.float64],
    y: Sequence[float] | npt.NDArray[np.float64],
    name: str,
    color: str,
    dash: str,
    x_log: bool,
    y_log: bool,
) -> dict[str, Any]:
    """A straight line between two ends, given in the axes' own units."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": np.power(10.0, x) if x_log else np.array(x),
        "y": np.power(10.0, y) if y_log else np.array(y),
        "name": escape(name),
        "line": {"color": color, "width": 2, "dash": dash},
        "hoverinfo": "skip",
        "showlegend": True,
    }


def by_layer(numbers: Sequence[int], theme: Theme, height: int, colors: Ink) -> dict[str, Any]:
    """A band of one colour for each layer, and the bar below that names them."""
    first, last = (numbers[0], numbers[-1]) if numbers else (0, 0)
    count = last - first + 1
    ramp = sequential_colors(theme, 256)
    faint = round(255 * FAINTEST)
    bands = ramp[np.linspace(faint, 255, count).astype(int)] if count > 1 else ramp[[170]]
    scale: ColorScale = []
    for place, color in enumerate(bands):
        scale += [[place / count, to_hex(color)], [(place + 1) / count, to_hex(color)]]
    stride = -(-count // MOST_TICKS)
    ticks = list(range(first, last + 1, stride))
    bar = frame.color_bar(
        colors,
        "layer",
        plot_height=height,
        length=1.0,
        tickvals=ticks,
        ticktext=[str(number) for number in ticks],
    )
    bar["y"] = -BELOW / height
    return {
        "colorscale": scale,
        "cmin": first - 0.5,
        "cmax": last + 0.5,
        "showscale": True,
        "colorbar": bar,
    }


def ring(
    selected: tuple[int, int],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    layers: Whole,
    heads: Whole,
    colors: Ink,
    x_range: tuple[float, float],
    x_log: bool,
) -> list[dict[str, Any]]:
    """A ring around the selected head and its name beside it; nothing where it is not drawn."""
    at = np.flatnonzero((layers == selected[0]) & (heads == selected[1]))
    if not at.size:
        return []
    place = float(np.log10(x[at[0]])) if x_log else float(x[at[0]])
    right = place > x_range[0] + 0.8 * (x_range[1] - x_range[0])
    return [
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": x[at],
            "y": y[at],
            "text": [f"<b>L{selected[0]}H{selected[1]}</b>  "] * len(at)
            if right
            else [f"  <b>L{selected[0]}H{selected[1]}</b>"] * len(at),
            "textposition": "middle left" if right else "middle right",
            "textfont": frame.font(colors, frame.TITLE_SIZE, strong=True)
            | {"shadow": ", ".join([f"0 0 3px {colors.page}"] * 4)},  # apart from points below
            "cliponaxis": False,
            "hoverinfo": "skip",
            "showlegend": False,
            "marker": {
                "size": RING,
                "symbol": "circle-open",
                "color": colors.accent,
                "line": {"width": 3, "color": colors.accent},
            },
        }
    ]
