"""All heads of a stack as one picture: a row a layer, a column a head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures import frame, png
from explorer.figures.colors import Ink, Theme, ink, sequential_colors, sequential_scale
from explorer.figures.montage import Flags, Weights, block_size, blocks, montage, pooled, row_blocks
from explorer.figures.odd import FORBIDDEN, PADDING, key_entry, not_finite

RIGHT = 8  # pixels beside the maps
ROOTS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def heads_grid(
    weights: Weights,
    *,
    layer_numbers: Sequence[int],
    theme: Theme,
    selected: tuple[int, int] | None = None,
    max_value: int | float | None = None,
    forbidden: Flags | None = None,
    padded: Flags | None = None,
    present: Flags | None = None,
    width_px: int = 900,
) -> go.Figure:
    """One small map a head, layer 0 on top; colour follows the square root of the weight.

    All heads share one colour scale up to `max_value`, by default the largest weight shown.
    `forbidden` is broadcast to the weights; `padded` marks query rows; `present` marks rows of
    layers that have attention. Where maps are longer than there are pixels, a pixel is the largest
    weight of its block. `selected` is (row of the grid, head).
    """
    n_layers, n_heads = _checked(weights, layer_numbers, padded, present)
    colors = ink(theme)
    largest = _largest_per_head(weights, padded)
    there = np.ones(n_layers, dtype=bool) if present is None else present
    shown = largest[there]
    top = float(max_value if max_value is not None else (shown.max() if shown.size else 1.0)) or 1.0
    block = block_size(weights.shape)
    codes = png.encode(pooled(weights, block), 0.0, top, root=True)
    picture = montage(
        codes, blocks(forbidden, weights.shape, block), row_blocks(padded, block), there
    )
    uri = png.palette_png(picture, sequential_colors(theme, png.LEVELS), colors)
    ratio = min(max(weights.shape[2] / max(weights.shape[3], 1), 0.5), 2.0)
    height = width_px / n_heads * ratio * n_layers
    rows, columns = picture.shape
    traces = [png.spread(uri, (rows, columns), width=n_heads, height=n_layers)]
    traces += [
        _markers(largest, layer_numbers, there == wanted, wanted)
        for wanted in (True, False)
        if (there == wanted).any()
    ]
    bar_title, tickvals, ticktext = _bar_words(top, block)
    bar = frame.color_bar(
        colors,
        bar_title,
        plot_height=height,
        # As wide as the maps but for what the last number needs past them.
        length=0.5 if width_px >= 500 else 1 - max(frame.bar_overhang(top) - RIGHT, 0) / width_px,
        tickvals=tickvals,
        ticktext=ticktext,
    )
    traces.append(frame.color_bar_alone(sequential_scale(theme, root=False), 0.0, 1.0, bar))
    entries = _key(forbidden, padded, there, weights, colors)
    margin = {
        "l": 64,
        "r": RIGHT,
        "t": 48,
        "b": frame.BAR_HEIGHT + frame.LEGEND_HEIGHT * len(entries),
    }
    layout = frame.layout(colors, width=width_px, height=height, margin=margin) | {
        "showlegend": bool(entries),
        "dragmode": False,
        "hoverdistance": -1,
        "shapes": []
        if selected is None
        else [_outline(selected, n_layers, n_heads, colors.accent)],
        **frame.layer_and_head(colors, layer_numbers, n_heads, width_px, height),
    }
    return go.Figure(data=[*traces, *entries], layout=layout)


def grid_alt(
    n_layers: int,
    n_heads: int,
    query_length: int,
    key_length: int,
    selected: str | None = None,
) -> str:
    """The grid in words, for those who cannot see it."""
    layers = f"{n_layers} layer{'s' * (n_layers != 1)}"
    heads = f"{n_heads} head{'s' * (n_heads != 1)}"
    chosen = f" {selected} is selected." if selected else ""
    return (
        f"Attention weights of {layers} by {heads}: one small map for each head, layers downwards,"
        f" heads across, each with {query_length} queries down and {key_length} keys across."
        f" A stronger colour is a larger weight.{chosen} The same choice can be made with the layer"
        " and head controls, and the numbers stand in the table."
    )


def _checked(
    weights: Weights, layer_numbers: Sequence[int], padded: Flags | None, present: Flags | None
) -> tuple[int, int]:
    if weights.ndim != 4 or 0 in weights.shape:
        raise ValueError(
            f"weights: shape {weights.shape} given; (n_layers, n_heads, n_q, n_k), none of them 0,"
            " would work"
        )
    n_layers, n_heads, n_q, _ = weights.shape
    if len(layer_numbers) != n_layers:
        raise ValueError(f"layer_numbers: {len(layer_numbers)} given; {n_layers} would work")
    if padded is not None and padded.shape != (n_q,):
        raise ValueError(f"padded: shape {padded.shape} given; {(n_q,)} would work")
    if present is not None and present.shape != (n_layers,):
        raise ValueError(f"present: shape {present.shape} given; {(n_layers,)} would work")
    return n_layers, n_heads


def _largest_per_head(weights: Weights, padded: Flags | None) -> Weights:
    kept = weights if padded is None else weights[:, :, ~padded]
    # fmax ignores NaN, which is drawn as hatching
    largest: Weights = np.fmax.reduce(kept, axis=(2, 3), initial=0.0)
    return largest


def _markers(
    largest: Weights,
    layer_numbers: Sequence[int],
    rows: Flags,
    present: bool,
) -> dict[str, Any]:
    """A marker at each head, for its tooltip and its click."""
    places = [
        (row, head) for row in np.flatnonzero(rows).tolist() for head in range(largest.shape[1])
    ]
    texts = []
    for row, head in places:
        lines = [f"<b>L{layer_numbers[row]}H{head}</b>"]
        if present:
            lines.append(f"largest weight {largest[row, head]:.3f}")
        else:
            lines.append("this layer has no attention")
        texts.append("<br>".join(lines))
    named = [[layer_numbers[row], head] for row, head in places] if present else None
    return frame.unseen_markers(places, named, texts)


def _bar_words(top: int | float, block: tuple[int, int]) -> tuple[str, list[float], list[str]]:
    """Title, tick places and tick texts of the colour bar; places are roots of the weight."""
    of_block = "" if block == (1, 1) else f", largest of {block[0]} by {block[1]} cells"
    kept = [top]
    for value in reversed(ROOTS):
        if value < top and math.sqrt(value / top) < math.sqrt(kept[-1] / top) - 0.15:
            kept.append(value)
    values = [0.0, *(v for v in reversed(kept) if math.sqrt(v / top) > 0.1)]
    places = [math.sqrt(value / top) for value in values]
    return f"weight (√ scale){of_block}", places, [frame.number(value) for value in values]


def _key(
    forbidden: Flags | None, padded: Flags | None, there: Flags, weights: Weights, colors: Ink
) -> list[dict[str, Any]]:
    """Legend entries for the cells that hold no weight, only where there are any."""
    entries = []
    if forbidden is not None and forbidden.any():
        entries.append(key_entry(FORBIDDEN, colors.forbidden, colors.line))
    if padded is not None and padded.any():
        entries.append(key_entry(PADDING, colors.hatch, colors.line))
    missing = int((~np.isfinite(weights[there])).sum())
    if missing:
        entries.append(key_entry(not_finite(missing), colors.hatch, colors.line))
    if not there.all():
        entries.append(key_entry("no attention in the layer", colors.absent, colors.line))
    return entries


def _outline(selected: tuple[int, int], n_layers: int, n_heads: int, color: str) -> dict[str, Any]:
    row, head = selected
    if not (0 <= row < n_layers and 0 <= head < n_heads):
        raise ValueError(
            f"selected: {selected} given; a row below {n_layers} and head below"
            f" {n_heads} would work"
        )
    return {
        "type": "rect",
        "x0": head - 0.5,
        "x1": head + 0.5,
        "y0": row - 0.5,
        "y1": row + 0.5,
        "line": {"color": color, "width": 3},
    }
