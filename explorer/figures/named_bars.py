"""Named numbers as bars lying down, in one series or in two to compare; the first name on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Theme, ink
from explorer.figures.labels import escape, hover_texts, label_pixels, ticks

THICKEST = 14  # pixels of a bar
TALLEST = 620  # pixels of all bars
NUMBERS = 12  # pixels of a bar from which its number is written beside it
ROOM = 1.16  # of the longest bar: for the number at its end


def named_bars(
    labels: Sequence[str],
    series: Mapping[str, Sequence[int | float]],
    *,
    theme: Theme,
    title: str,
    name: str = "",
    raw: Sequence[str] | None = None,
    top: int | float | None = None,
    digits: int = 3,
    width_px: int = 420,
) -> go.Figure:
    """A bar for each label and series, the first label on top.

    `title` is what the bars measure, `name` what the labels are. `top` fixes the axis's end.
    """
    n = len(labels)
    if n == 0 or any(len(values) != n for values in series.values()):
        lengths = [len(values) for values in series.values()]
        raise ValueError(f"series: {lengths} values given for {n} labels; as many, at least 1")
    colors = ink(theme)
    fills = [colors.bar] if len(series) == 1 else [colors.muted, colors.accent]
    thickness = min(max(TALLEST / (n * (len(series) + 0.5)), 2), THICKEST)
    step = thickness * (len(series) + 0.5)
    height = max(step * n, 40)
    finite = [v for values in series.values() for v in values if np.isfinite(v)]
    end = top if top is not None else max(finite, default=0.0) or 1.0
    places, texts = ticks(labels, height, vertical=True)
    bars: list[dict[str, Any]] = [
        {
            "type": "bar",
            "name": each,
            "orientation": "h",
            "x": np.asarray(values, np.float32),
            "y": np.arange(n, dtype=np.int32),
            "yaxis": "y2",
            "marker": {"color": fill, "line": {"width": 0}},
            "texttemplate": f"%{{x:.{digits}f}}" if thickness >= NUMBERS else None,
            "textposition": "outside",
            "textfont": frame.font(colors, 11),
            "cliponaxis": False,
            "hovertemplate": f"%{{y}}<br>{escape(each)} <b>%{{x:.4~g}}</b><extra></extra>",
            "showlegend": len(series) > 1,
        }
        for (each, values), fill in zip(series.items(), fills, strict=True)
    ]
    legend = len(series) > 1
    left = max(label_pixels(labels[place]) for place in places) + (34 if name else 14)
    margin = {"l": left, "r": 12, "t": 44, "b": 34 if legend else 8}
    plot = max(width_px - left - margin["r"], 120)
    layout = frame.layout(colors, width=plot, height=height, margin=margin)
    layout["legend"] |= {"y": -4 / height, "orientation": "h", "traceorder": "normal"}
    layout |= {
        "showlegend": legend,
        "dragmode": False,
        "barmode": "group",
        "bargap": 1 - thickness * len(series) / step,
        "bargroupgap": 0.0,
        "xaxis": frame.axis(colors, escape(title), 1, side="top", fixedrange=True)
        | {
            "range": [0, end * ROOM],
            "tickmode": "auto",
            "nticks": 5,
            "showgrid": True,
            "gridcolor": colors.line,
        },
        "yaxis": frame.axis(
            colors, escape(name), n, down=True, fixedrange=True, tickvals=places, ticktext=texts
        ),
        "yaxis2": frame.hover_axis("y", hover_texts(labels, raw), down=True),
    }
    return go.Figure(data=[*bars, frame.NOTHING], layout=layout)


def named_bars_alt(title: str, labels: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """The bars in words: what they measure, and the longest of each series."""
    parts = []
    for each, values in series.items():
        best = max(range(len(labels)), key=lambda at: values[at])
        parts.append(f"{each}: the most is {values[best]:.3g}, {labels[best]}")
    return f"{title}, {len(labels)} bars. {'; '.join(parts)}."
