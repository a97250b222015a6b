"""One number of every head: layers downwards, heads across, numbers in the cells where they fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Ink, Theme, ink, sequential_colors, to_hex
from explorer.figures.domain import round_values, value_domain
from explorer.figures.labels import escape
from explorer.figures.numbers import palette, shares, written
from explorer.figures.odd import Flags, hatching, key_entry
from explorer.figures.oklab import Colors

Numbers = npt.NDArray[np.floating]  # (n_layers, n_heads)

ABSENT, UNKNOWN = "no such head", "not known"
SHORTEST, TALLEST = 20, 40  # pixels of a row
DIGIT, LINE = 6.3, 15  # pixels that a digit and a line take at the numbers' size
STOPS = 64


def heads_heatmap(
    values: Numbers,
    *,
    title: str,
    unit: str,
    theme: Theme,
    absent: Flags | None = None,
    centred: bool = False,
    width_px: int = 408,
) -> go.Figure:
    """A cell for each layer (row) and head (column), layer 0 on top.

    `title` says what a number is and `unit` in what; "" where it has none.
    `absent` marks heads that the model does not have, all of a layer's where it has no attention;
    numbers that are not known (NaN) are hatched. Colours run from 0, or from the lowest number
    where all lie above half of the highest; `centred` ones are signed, with 0 neutral. `width_px`
    is the width of the cells together.
    """
    gone = np.zeros(values.shape, bool) if absent is None else absent
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"values: shape {values.shape} given; (n_layers, n_heads) would work")
    if gone.shape != values.shape:
        raise ValueError(f"absent: shape {gone.shape} given; {values.shape} would work")
    n_layers, n_heads = values.shape
    colors = ink(theme)
    shown = np.where(gone | ~np.isfinite(values), np.nan, values)
    missing = ~gone & np.isnan(shown)
    low, high = value_domain(shown, "difference") if centred else number_domain(shown)
    ramp = palette("difference", theme, low, high) if centred else sequential_colors(theme, STOPS)
    cell = width_px / n_heads
    row = min(max(cell, SHORTEST), TALLEST)
    height = row * n_layers
    traces: list[dict[str, Any]] = []
    if gone.any():
        traces.append(_ground(gone, colors))
    if missing.any():
        traces.append(hatching(missing, UNKNOWN, colors) | {"xaxis": "x", "yaxis": "y"})
    traces.append(_cells(shown, title, unit, ramp, low, high, height, colors, cell))
    traces += _written(shown, ramp, low, high, cell, row)
    keys = [key_entry(ABSENT, colors.absent, colors.line)] if gone.any() else []
    entries = len(keys) + bool(missing.any())
    margin = {
        "l": 52,
        "r": frame.bar_overhang(high),
        "t": 48,
        "b": frame.BAR_HEIGHT + frame.LEGEND_HEIGHT * entries,
    }
    layout = frame.layout(colors, width=width_px, height=height, margin=margin) | {
        "showlegend": bool(entries),
        "dragmode": False,
        **frame.layer_and_head(colors, range(n_layers), n_heads, width_px, height),
    }
    return go.Figure(data=[*traces, *keys], layout=layout)


def heads_heatmap_alt(values: Numbers, title: str, unit: str) -> str:
    """The picture in words: what it shows, its size, its extremes."""
    n_layers, n_heads = values.shape
    what = f"{title} ({unit})" if unit else title
    words = f"{what} of each head: {n_layers} layers down, {n_heads} heads across."
    if not np.isfinite(values).any():
        return f"{words} None has a number."
    parts = []
    for which, number in (("Lowest", np.nanmin(values)), ("highest", np.nanmax(values))):
        layer, head = np.argwhere(values == number)[0]
        parts.append(f"{which} {number:.3g} at L{layer}H{head}".replace("-", "\N{MINUS SIGN}"))
    return f"{words} {', '.join(parts)}. The numbers stand in the table below."


def number_domain(values: Numbers) -> tuple[float, float]:
    """The ends of the colours: 0 unless all numbers lie above half of the highest."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if 0 <= low < high / 2 or low == high:
        low = min(low, 0.0)
    return (low, high) if low < high else (low, low + 1.0)


def cell_texts(values: Numbers, fewer: int = 0) -> npt.NDArray[Any]:
    """Short numbers with the same digits after the point: .26 and 1.0 where all are at most 1.

    `fewer` is how many digits after the point are left out where there is little room.
    """
    finite = np.abs(values[np.isfinite(values)])
    top = float(finite.max()) if finite.size else 0.0
    digits = max(0, (2 if top < 9.995 else 1 if top < 99.95 else 0) - fewer)
    text = [f"{abs(value):.{digits}f}" for value in values.ravel().tolist()]
    if top < 1.005 and digits == 2:
        text = ["1.0" if each == "1.00" else each.replace("0.", ".", 1) for each in text]
    below = (values.ravel() < 0).tolist()
    signed = [
        "\N{MINUS SIGN}" * (minus and bool(each.strip(".0"))) + each
        for minus, each in zip(below, text, strict=True)
    ]
    return np.array(signed).reshape(values.shape)


def _ground(gone: Flags, colors: Ink) -> dict[str, Any]:
    """Cells without a head, in a colour of their own."""
    return {
        "type": "heatmap",
        "z": np.where(gone, 0.0, np.nan).astype(np.float32),
        "colorscale": [[0, colors.absent], [1, colors.absent]],
        "showscale": False,
        "hoverongaps": False,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": f"<b>L%{{y}}H%{{x}}</b><br>{ABSENT}<extra></extra>",
    }


def _cells(
    shown: Numbers,
    title: str,
    unit: str,
    ramp: Colors,
    low: float,
    high: float,
    height: int | float,
    colors: Ink,
    cell: int | float,
) -> dict[str, Any]:
    # Plotly leaves out a tick that rounding puts past the end.
    ticks = [min(value, high - 1e-6 * (high - low)) for value in round_values(low, high)]
    return {
        "type": "heatmap",
        "z": shown.astype(np.float32),
        "zmin": low,
        "zmax": high,
        "colorscale": [
            [place, to_hex(color)]
            for place, color in zip(np.linspace(0, 1, STOPS).tolist(), ramp, strict=True)
        ],
        "colorbar": frame.color_bar(
            colors,
            ", ".join(escape(words) for words in (title, unit) if words),
            plot_height=height,
            length=1.0,
            tickvals=ticks,
        ),
        "hoverongaps": False,
        "xgap": 1 if cell >= 12 else 0,
        "ygap": 1 if cell >= 12 else 0,
        "hovertemplate": f"<b>L%{{y}}H%{{x}}</b><br>{escape(title)} <b>%{{z:.4~g}}</b> "
        f"{escape(unit)}<extra></extra>",
    }


def _written(
    shown: Numbers, ramp: Colors, low: float, high: float, cell: int | float, row: int | float
) -> list[dict[str, Any]]:
    """The numbers, where all of them fit: one trace for each ink that some cell needs."""
    known = np.isfinite(shown)
    fewest = 1 if np.abs(shown[known]).max(initial=0.0) > 1.005 else 0  # a share keeps its two
    for fewer in range(fewest + 1):
        texts = cell_texts(shown, fewer)
        longest = max((len(text) for text in texts[known].tolist()), default=0)
        if longest * DIGIT + 2 <= cell:
            break
    if not longest or longest * DIGIT + 2 > cell or row < LINE:
        return []
    return written(texts, shares(shown, low, high), ramp)
