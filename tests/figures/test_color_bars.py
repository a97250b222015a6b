"""Every colour bar has room for half of its last number: Plotly leaves out one that has not."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from explorer.figures.drift import drift_map
from explorer.figures.grid import heads_grid
from explorer.figures.heads_heatmap import heads_heatmap
from explorer.figures.heads_map import heads_map
from explorer.figures.heatmap import head_map
from explorer.figures.matrix import matrix
from explorer.figures.strip import heads_strip

HIGH = 0.028
SIGNED = np.array([[-0.078, 0.0], [0.01, HIGH]])
WEIGHTS = np.abs(SIGNED) * (HIGH / 0.078)
AB = ["a", "b"]


def bar_of(figure: go.Figure) -> tuple[Any, float]:
    """The bar, and the pixels from its right end to the figure's edge."""
    for trace in figure.data:
        of = trace.marker if trace.type == "scatter" else trace
        if getattr(of, "showscale", None) is not False and getattr(of, "colorbar", None):
            bar = of.colorbar
            if bar.tickvals:
                break
    layout = figure.layout
    plot = layout.width - layout.margin.l - layout.margin.r
    return bar, plot * (1 - bar.len) + layout.margin.r


@pytest.mark.parametrize(
    "figure",
    [
        matrix(SIGNED, row_labels=AB, theme="light"),
        heads_heatmap(SIGNED, title="t", unit="", theme="light", centred=True),
        head_map(WEIGHTS, query_labels=AB, key_labels=AB, kind="weights", theme="light"),
        drift_map(WEIGHTS, AB, theme="light"),
        heads_strip([WEIGHTS], [(0, 0)], ["n"], theme="light", width_px=200),
        heads_grid(WEIGHTS[None, None], layer_numbers=[0], theme="light", width_px=200),
        heads_map(
            SIGNED,
            layers=np.array([0, 0]),
            heads=np.array([0, 1]),
            theme="light",
            values=np.array([0.001, HIGH]),
        ),
    ],
    ids=["matrix", "heads_heatmap", "head_map", "drift", "strip", "grid", "heads_map"],
)
def test_the_last_number_at_a_colour_bar_lies_within_the_figure(figure: go.Figure) -> None:
    bar, beside = bar_of(figure)
    assert bar.ticktext[-1] == "0.028"
    assert beside >= 5 * 6.7 / 2  # a digit of the tick's font is up to 6.7 pixels wide
