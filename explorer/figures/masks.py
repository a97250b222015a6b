"""A mask and what it does: four maps of one size, to be read from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from explorer.figures.colors import Theme, ink
from explorer.figures.domain import Values, value_domain
from explorer.figures.frame import LEGEND_HEIGHT, SLANT
from explorer.figures.heatmap import SMALLEST_PLOT, head_map
from explorer.figures.labels import label_pixels
from explorer.figures.odd import FORBIDDEN, PADDING, Flags, hatching, key_entry

MAY_USE = "may be used"
BESIDE = 20  # pixels at the right, for half of the colour bar's last number


class MaskMaps(NamedTuple):
    """The mask, and scores and weights before and after it."""

    mask: go.Figure
    scores: go.Figure
    masked_scores: go.Figure
    weights: go.Figure


def mask_maps(
    allowed: Flags,
    scores: Values,
    weights: Values,
    *,
    labels: Sequence[str],
    theme: Theme,
    padded: Flags | None = None,
    raw: Sequence[str] | None = None,
    selected: tuple[int, int] | None = None,
    width_px: int = 260,
) -> MaskMaps:
    """Four maps of the same tokens, each `width_px` wide where labels leave room for cells.

    Both maps of scores share a range. `selected` is a cell to outline in the mask.
    """
    live = np.ones(len(labels), bool) if padded is None else ~padded
    common: dict[str, Any] = {
        "query_labels": labels,
        "key_labels": labels,
        "raw_query": raw,
        "raw_key": raw,
        "theme": theme,
        "padded_queries": padded,
        "max_px": width_px,
    }
    span: dict[str, Any] = {
        "kind": "scores",
        "value_range": value_domain(scores[live], "scores"),
    }
    before = head_map(scores, **common, **span, title="2 · Scores")
    margin = before.layout.margin
    plot = before.layout.width - margin.l - margin.r
    # Margins follow the labels: what is too much is taken from the cells, and a little more, as
    # smaller cells let slanted labels reach further.
    if before.layout.width > width_px and plot > SMALLEST_PLOT:
        common["max_px"] = max(width_px - margin.l - margin.r - 4, SMALLEST_PLOT)
        before = head_map(scores, **common, **span, title="2 · Scores")
    upright = before.layout.width > width_px
    maps = MaskMaps(
        _mask_map(allowed, before, padded=padded, selected=selected, theme=theme),
        before,
        head_map(scores, **common, **span, forbidden=~allowed, title="3 · Masked scores"),
        head_map(weights, **common, kind="weights", forbidden=~allowed, title="4 · Weights"),
    )
    if upright:
        for figure in maps:
            _stand_labels_up(figure, max(map(label_pixels, labels)))
    bottom = max(figure.layout.margin.b for figure in maps)
    for figure in maps:
        _grow(figure, "b", bottom - figure.layout.margin.b)
    return maps


def _stand_labels_up(figure: go.Figure, longest: float) -> None:
    """Labels across at a right angle: they reach nowhere past the last cell."""
    room = max(figure.layout.margin.r - BESIDE, 0)
    figure.update_xaxes(tickangle=-90, selector={"side": "top"})
    figure.update_layout(width=figure.layout.width - room, margin_r=figure.layout.margin.r - room)
    _grow(figure, "t", round((1 - SLANT) * longest))


def _grow(figure: go.Figure, side: str, pixels: int) -> None:
    """More margin above or below, and the plot as large as before."""
    margin = {f"margin_{side}": figure.layout.margin[side] + pixels}
    figure.update_layout(height=figure.layout.height + pixels, **margin)


def _mask_map(
    allowed: Flags,
    like: go.Figure,
    *,
    padded: Flags | None,
    selected: tuple[int, int] | None,
    theme: Theme,
) -> go.Figure:
    """The mask alone, laid out like another map; every cell can be clicked."""
    colors = ink(theme)
    across = like.layout.width - like.layout.margin.l - like.layout.margin.r
    gap = 1 if across / len(allowed) >= 8 else 0
    cells = {
        "type": "heatmap",
        "z": allowed.astype(np.uint8),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, colors.forbidden], [1, colors.bar]],
        "showscale": False,
        "xgap": gap,
        "ygap": gap,
        "xaxis": "x2",
        "yaxis": "y2",
        "text": [[MAY_USE if cell else FORBIDDEN for cell in row] for row in allowed.tolist()],
        "hovertemplate": "Query %{y}<br>Key %{x}<br><b>%{text}</b><extra></extra>",
    }
    named = [
        key_entry(MAY_USE, colors.bar, colors.line) | {"xaxis": "x", "yaxis": "y"},
        key_entry(FORBIDDEN, colors.forbidden, colors.line),
    ]
    if padded is not None and padded.any():
        where = np.broadcast_to(padded[:, None], allowed.shape)
        named.append(hatching(where, PADDING, colors))
    layout = like.layout.to_plotly_json()
    margin = layout["margin"]
    inner = layout["height"] - margin["t"] - margin["b"]
    layout["title"]["text"] = "1 · Mask"
    layout["showlegend"] = True
    layout["legend"]["y"] = -8 / inner
    if selected is not None:
        row, column = selected
        box = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        layout["shapes"] = [{"type": "rect", "line": {"color": colors.accent, "width": 3}} | box]
    bottom = 12 + LEGEND_HEIGHT * len(named)
    layout["margin"] = margin | {"b": bottom}
    layout["height"] = inner + margin["t"] + bottom
    return go.Figure(data=[cells, *named], layout=layout)
