"""One query's row before and after softmax: its scores and its weights, a bar for each key."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Theme, ink
from explorer.figures.domain import round_values, value_domain
from explorer.figures.labels import hover_texts, label_pixels, ticks
from explorer.figures.odd import FORBIDDEN, key_entry, row_grounds

Row = npt.NDArray[np.floating]
GAP = 0.06  # share of the width between the two halves
THICKEST = 24  # pixels
BESIDE = 4  # pixels from one label to the next


def before_after(
    scores_row: Row,
    weights_row: Row,
    key_labels: Sequence[str],
    *,
    theme: Theme,
    forbidden: npt.NDArray[np.bool_] | None = None,
    selected: int | None = None,
    width_px: int = 480,
    max_px: int = 420,
) -> go.Figure:
    """Scores on the left, weights from 0 to 1 on the right, key 0 on top; same keys, same order.

    Keys the mask forbids have a grey ground instead of bars; the selected key has the accent.
    """
    (n_k,) = scores_row.shape
    if n_k == 0 or weights_row.shape != (n_k,) or len(key_labels) != n_k:
        raise ValueError(
            f"weights_row, key_labels: {weights_row.shape} and {len(key_labels)} given for {n_k}"
            " scores; as many, at least 1, would work"
        )
    colors = ink(theme)
    barred = np.zeros(n_k, bool) if forbidden is None else forbidden
    scores, weights = (
        np.where(barred, np.nan, row).astype(np.float32) for row in (scores_row, weights_row)
    )
    thickness = min(max(max_px / n_k, 1), THICKEST)
    height = max(thickness * n_k, 48)
    places, texts = ticks(key_labels, height, vertical=True)
    low, high = value_domain(scores, "scores")
    room = 0.4 * (high - low) if thickness >= 14 else 0.0  # for the numbers at the bars' ends
    left = low - room if low < 0 else low, high + room if high > 0 else high
    grounds = row_grounds(barred, colors)
    odd = [key_entry(FORBIDDEN, colors.forbidden, colors.line)] if grounds else []
    fills = [colors.accent if place == selected else colors.bar for place in range(n_k)]
    common: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "y": np.arange(n_k, dtype=np.int32),
        "yaxis": "y2",
        "marker": {"color": fills, "line": {"width": 0}},
        "textposition": "outside",
        "textfont": frame.font(colors),
        "constraintext": "none",
        "cliponaxis": False,
        "showlegend": False,
    }
    numbered = thickness >= 14
    bars = [
        common
        | {
            "x": row,
            "text": [_number(value) for value in row.tolist()] if numbered else None,
            "xaxis": place,
            "hovertemplate": f"Key %{{y}}<br>{name} <b>%{{x:.4f}}</b><extra></extra>",
        }
        for row, place, name in ((scores, "x", "score"), (weights, "x2", "weight"))
    ]
    margin = {
        "l": max(label_pixels(key_labels[place]) for place in places) + 40,
        "r": 12,
        "t": 44,
        "b": 8 + frame.LEGEND_HEIGHT * len(odd),
    }
    plot_width = max(width_px - margin["l"] - margin["r"], 120)
    layout = frame.layout(colors, width=plot_width, height=height, margin=margin)
    layout["legend"]["y"] = -4 / height
    half = (1 - GAP) / 2
    lines: dict[str, Any] = {"side": "top", "fixedrange": True, "showgrid": True}
    lines |= {"gridcolor": colors.line, "zeroline": True, "zerolinecolor": colors.muted}
    few = _apart({0.0, *round_values(low, high)}, plot_width * half / (left[1] - left[0]))
    layout |= {
        "showlegend": bool(odd),
        "shapes": grounds,
        "dragmode": False,
        "bargap": 0.25 if thickness >= 6 else 0,
        "xaxis": frame.axis(colors, "before: score", 1)
        | lines
        | {"range": left, "domain": [0, half], "tickvals": few}
        | {"ticktext": [frame.number(value) for value in few], "tickangle": 0},
        "xaxis2": frame.axis(colors, "after: weight", 1)
        | lines
        | {"range": [0, 1.18], "domain": [1 - half, 1], "tickvals": [0, 0.5, 1]}
        | {"ticktext": ["0", "½", "1"]},
        "yaxis": frame.axis(
            colors, "Key", n_k, down=True, fixedrange=True, tickvals=places, ticktext=texts
        ),
        "yaxis2": frame.hover_axis("y", hover_texts(key_labels, None), down=True),
    }
    return go.Figure(data=[*bars, frame.NOTHING, *odd], layout=layout)


def _apart(values: Set[float], pixels: int | float) -> list[float]:
    """Those whose labels stand apart at so many pixels a unit: 0 first, then the ends."""
    ends = min(values), max(values)
    kept: list[tuple[float, float]] = []
    for value in sorted(values, key=lambda v: (v != 0, v not in ends, -abs(v))):
        wide = label_pixels(frame.number(value))
        if all(abs(value - at) * pixels > (wide + w) / 2 + BESIDE for at, w in kept):
            kept.append((value, wide))
    return sorted(value for value, _ in kept)


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
