"""How far hidden states have moved: states downwards, tokens across, the model's input on top."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Theme, ink, sequential_scale
from explorer.figures.domain import Values, round_values
from explorer.figures.labels import hover_texts, label_pixels, ticks
from explorer.figures.odd import Flags, hatching

SHORTEST, TALLEST = 16, 26  # pixels of a row
WIDEST = 46  # pixels of a column
PADDING = "padding"


def drift_map(
    values: Values,
    labels: Sequence[str],
    *,
    theme: Theme,
    padded: Flags | None = None,
    raw: Sequence[str] | None = None,
    width_px: int = 900,
) -> go.Figure:
    """Drift (states, tokens), from 0; row 0 is what enters layer 0, the last what leaves the last.

    The colour is that of the square root, so that small drifts show. Padding is hatched.
    """
    n_states, n = values.shape
    if n == 0 or len(labels) != n:
        raise ValueError(f"labels: {len(labels)} given for {n} tokens; as many would work")
    colors = ink(theme)
    shown = values.astype(np.float32)
    gone = np.zeros(n, bool) if padded is None else padded
    shown[:, gone] = np.nan
    finite = shown[np.isfinite(shown)]
    high = float(finite.max(initial=0.0)) or 1.0
    rows = ["input", *(f"layer {number}" for number in range(n_states - 1))]
    width = min(n * WIDEST, width_px)
    height = n_states * min(max(320 / n_states, SHORTEST), TALLEST)
    places, texts = ticks(labels, width, vertical=False)
    widths = [label_pixels(labels[place]) for place in places]
    row_places, row_texts = ticks(rows, height, vertical=True)
    round_ticks = round_values(0.0, high)
    cells = {
        "type": "heatmap",
        "z": shown,
        "zmin": 0.0,
        "zmax": high,
        "colorscale": sequential_scale(theme),
        "colorbar": frame.color_bar(
            colors,
            "moved, share of its length (√ colour scale)",
            plot_height=height,
            length=min(1.0, 330 / width),
            tickvals=round_ticks,
        ),
        "hoverongaps": False,
        "xgap": 1,
        "ygap": 1,
        "xaxis": "x2",
        "yaxis": "y2",
        "hovertemplate": "%{y}<br>Token %{x}<br>moved by <b>%{z:.4~g}</b> of its length"
        "<extra></extra>",
    }
    traces = [cells, frame.NOTHING]
    if gone.any():
        flags = np.broadcast_to(gone, shown.shape)
        traces.append(hatching(flags, PADDING, colors))
    margin = {
        "l": 66,
        "r": max(
            frame.slanted_overhang(widths, places, width / n, n) + 8, frame.bar_overhang(high)
        ),
        "t": frame.SLANT * max(widths) + 44,
        "b": frame.BAR_HEIGHT,
    }
    layout = frame.layout(colors, width=width, height=height, margin=margin) | {
        "dragmode": False,
        "xaxis": frame.axis(colors, "Token", n, side="top", fixedrange=True)
        | {"tickvals": places, "ticktext": texts, "tickangle": -45},
        "yaxis": frame.axis(
            colors,
            "",
            n_states,
            down=True,
            fixedrange=True,
            scaleanchor=False,
            tickvals=row_places,
            ticktext=row_texts,
        ),
        "xaxis2": frame.hover_axis("x", hover_texts(labels, raw)),
        "yaxis2": frame.hover_axis("y", [f"<b>After {row}</b>" for row in rows], down=True),
    }
    layout["yaxis2"]["ticktext"][0] = "<b>Input of layer 0</b>"
    return go.Figure(data=traces, layout=layout)


def drift_alt(values: Values, labels: Sequence[str]) -> str:
    """The picture in words."""
    if not np.isfinite(values).any() or float(np.nanmax(values)) == 0:
        return f"Drift of {values.shape[1]} tokens: no hidden state has moved."
    row, column = divmod(int(np.nanargmax(values)), values.shape[1])
    where = "the input" if row == 0 else f"layer {row - 1}"
    return (
        f"Drift of {values.shape[1]} tokens down {values.shape[0]} states. The largest, "
        f"{values[row, column]:.3g} of its length, is after {where} at token {column} "
        f"({labels[column]})."
    )
