"""One query's row: how much weight each key gets, in the order of the text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Theme, ink
from explorer.figures.labels import hover_texts, label_pixels, ticks
from explorer.figures.odd import FORBIDDEN, key_entry, row_grounds


def row_bars(
    weights_row: npt.NDArray[np.floating],
    key_labels: Sequence[str],
    *,
    theme: Theme,
    forbidden: npt.NDArray[np.bool_] | None = None,
    raw_key: Sequence[str] | None = None,
    max_value: int | float | None = None,
    width_px: int = 320,
    max_px: int = 620,
) -> go.Figure:
    """One bar a key, key 0 on top; keys the mask forbids have a grey ground instead of a bar."""
    (n_k,) = weights_row.shape
    if n_k == 0 or len(key_labels) != n_k:
        raise ValueError(
            f"key_labels: {len(key_labels)} given for {n_k} weights; as many, at least 1, would"
            " work"
        )
    colors = ink(theme)
    barred = np.zeros(n_k, bool) if forbidden is None else forbidden
    shown = np.where(barred, np.nan, weights_row).astype(np.float32)
    finite = shown[np.isfinite(shown)]
    top = max_value if max_value is not None else float(finite.max()) if finite.size else 1.0
    top = top if top > 0 else 1.0
    thickness = min(max(max_px / n_k, 1), 24)
    height = max(thickness * n_k, 48)
    places, texts = ticks(key_labels, height, vertical=True)
    bars = {
        "type": "bar",
        "showlegend": False,
        "x": shown,
        "y": np.arange(n_k, dtype=np.int32),
        "orientation": "h",
        "yaxis": "y2",
        "marker": {"color": colors.bar, "line": {"width": 0}},
        "hovertemplate": "Key %{y}<br>weight <b>%{x:.4f}</b><extra></extra>",
        "texttemplate": "%{x:.3f}" if thickness >= 14 else None,
        "textposition": "outside",
        "textfont": frame.font(colors),
        "cliponaxis": False,
    }
    grounds = row_grounds(barred, colors)
    odd = [key_entry(FORBIDDEN, colors.forbidden, colors.line)] if grounds else []
    margin = {
        "l": max(label_pixels(key_labels[place]) for place in places) + 40,
        "r": 44,
        "t": 44,
        "b": 8 + frame.LEGEND_HEIGHT * len(odd),
    }
    layout = frame.layout(colors, width=width_px, height=height, margin=margin)
    layout["legend"]["y"] = -4 / height
    layout |= {
        "showlegend": bool(odd),
        "shapes": grounds,
        "dragmode": False,
        "bargap": 0.25 if thickness >= 6 else 0,
        "xaxis": frame.axis(colors, "weight, share of 1", 1, side="top", fixedrange=True)
        | {
            "range": [0, top],
            "tickmode": "auto",
            "nticks": 5,
            "showgrid": True,
            "gridcolor": colors.line,
        },
        "yaxis": frame.axis(
            colors, "Key", n_k, down=True, fixedrange=True, tickvals=places, ticktext=texts
        ),
        "yaxis2": frame.hover_axis("y", hover_texts(key_labels, raw_key), down=True),
    }
    return go.Figure(data=[bars, frame.NOTHING, *odd], layout=layout)
