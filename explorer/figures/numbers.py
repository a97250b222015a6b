"""Numbers in the cells of a small map, in ink that can be read on each cell's colour."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.figures.colors import Theme, contrast, diverging_colors, from_hex, sequential_colors
from explorer.figures.domain import Kind, Values
from explorer.figures.frame import FONT
from explorer.figures.oklab import Colors

INKS = ("#ffffff", "#000000")  # one of the two reaches 4.5:1 on any colour
SIZE = 11


def cell_numbers(
    shown: Values, kind: Kind, theme: Theme, low: int | float, high: int | float
) -> list[dict[str, Any]]:
    """A text trace for each of the two inks that some cell needs."""
    texts = np.array([[cell_number(value, kind) for value in row] for row in shown.tolist()])
    share = shares(shown, low, high)
    colors = palette(kind, theme, low, high)
    traces = written(texts, np.sqrt(share) if kind == "weights" else share, colors)
    return [trace | {"xaxis": "x2", "yaxis": "y2"} for trace in traces]


def written(
    texts: npt.NDArray[Any], places: npt.NDArray[np.floating], ramp: Colors
) -> list[dict[str, Any]]:
    """A text trace for each ink; `places`, from 0 to 1 in the ramp, are NaN where none stands."""
    white, black = (np.array([contrast(c, from_hex(ink)) for c in ramp]) for ink in INKS)
    known = np.isfinite(places)
    steps = np.where(known, places, 0.0) * (len(ramp) - 1)
    dark = (black > white)[np.rint(steps).astype(int)]
    traces = []
    for flag, color in zip((False, True), INKS, strict=True):
        rows, columns = np.nonzero(known & (dark == flag))
        if len(rows):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "text",
                    "x": columns.tolist(),
                    "y": rows.tolist(),
                    "text": texts[rows, columns].tolist(),
                    "textfont": {"family": FONT, "size": SIZE, "color": color},
                    "hoverinfo": "skip",
                    "showlegend": False,
                }
            )
    return traces


def shares(values: Values, low: int | float, high: int | float) -> Values:
    """Where values lie between `low` and `high`, from 0 to 1; NaN where one is not finite."""
    inside = np.clip((values - low) / (high - low), 0.0, 1.0)
    return np.where(np.isfinite(values), inside, np.nan)


def cell_number(value: int | float, kind: Kind) -> str:
    """Short enough for a phone: weights as .26 and 1.0, others with at most three digits."""
    size = abs(value)
    if kind == "weights":
        return f"{value:.1f}" if size >= 0.995 else f"{value:.2f}".removeprefix("0")
    digits = 2 if size < 0.995 else 1 if size < 9.95 else 0
    text = f"{size:.{digits}f}"
    if digits == 2:
        text = text.removeprefix("0")
    return ("\N{MINUS SIGN}" if value < 0 and text.strip(".0") else "") + text


def palette(kind: Kind, theme: Theme, low: int | float, high: int | float, n: int = 64) -> Colors:
    """`n` colours from `low` to `high`: for weights, in steps of their square root."""
    if kind == "weights":
        return sequential_colors(theme, n)
    wanted = (np.linspace(low, high, n) / max(-low, high) + 1) * 128
    colors: Colors = diverging_colors(theme)[np.rint(wanted).astype(int)]
    return colors
