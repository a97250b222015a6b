"""The pictures of the page Training: both models' curves in one, their heads side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.figures.colors import head_colors
from explorer.figures.grid import grid_alt, heads_grid
from explorer.figures.lines import Line, lines
from explorer.masks import causal
from explorer.training import Measurement
from explorer.training_summary import Run, band
from explorer.ui import frame, width
from explorer.ui.chart import chart

LABELS = 72  # pixels beside a grid
LARGEST_GRID = 560
HEIGHT = 210
TINIEST = 1e-12  # a gradient below it is drawn there: the axis must end somewhere
DASHES = ("dot", "dash", "dashdot")


class Curve(NamedTuple):
    """A number over the steps, drawn for both models."""

    key: str
    title: str
    unit: str
    number: Callable[[Measurement], float]
    log: bool = False
    top: float | None = None


CURVES = (
    Curve("accuracy", "Accuracy", "share of right answers", lambda one: one.accuracy, top=1.0),
    Curve("loss", "Loss", "nats", lambda one: one.loss),
    Curve(
        "saturated",
        "Saturated rows, last layer",
        "share of rows",
        lambda one: one.saturated,
        top=1.0,
    ),
)


def curve(shown: Curve, models: dict[str, Sequence[Run]], steps: int) -> None:
    """One number of both models; a band from the smallest to the largest of the seeds."""
    series = [
        _line(name, runs, shown.number, color)
        for (name, runs), color in zip(models.items(), _colors(), strict=True)
    ]
    _draw(shown.key, shown.title, shown.unit, series, steps, shown.log, shown.top)


def weight_gradients(models: dict[str, Sequence[Run]], steps: int) -> None:
    """The gradient at all W_Q and at all W_K: solid and dotted."""
    series = []
    for (name, runs), color in zip(models.items(), _colors(), strict=True):
        series.append(_line(f"{name}, W_Q", runs, lambda one: one.gradient_q, color))
        line = _line(f"{name}, W_K", runs, lambda one: one.gradient_k, color)
        series.append(line._replace(dash="dot", low=None, high=None))
    _draw("gradient", "Gradient at the weights", "norm", series, steps, True, None)


def row_gradients(models: dict[str, Sequence[Run]], steps: int) -> None:
    """The gradient that one row of scores gets: its median, and from 10 % to 90 % of the rows."""
    series = []
    for (name, runs), color in zip(models.items(), _colors(), strict=True):
        low, middle, high = (
            band(runs, lambda one, at=place: max(one.row_gradient[at], TINIEST))  # type: ignore[misc]
            for place in range(3)
        )
        series.append(
            Line(name, middle.steps, middle.middle, low=low.middle, high=high.middle, color=color)
        )
    _draw("rows", "Gradient at one row of scores", "norm", series, steps, True, None)


def per_head(key: str, title: str, run: Run, steps: int, most: float, entropy: bool) -> None:
    """Entropy or largest weight of each head of one model, its first seed."""
    if not run:
        return
    shape = [len(heads) for heads in run[0].entropy]
    colors = head_colors(sum(shape), frame.theme())
    series: list[Line] = []
    for layer, n_heads in enumerate(shape):
        for head in range(n_heads):
            values = [(one.entropy if entropy else one.largest)[layer][head] for one in run]
            name = f"L{layer}H{head}"
            at = [one.step for one in run]
            dash = None if layer == 0 else DASHES[(layer - 1) % len(DASHES)]
            series.append(Line(name, at, values, dash=dash, color=colors[len(series)]))
    unit = "nats" if entropy else "share of 1"
    _draw(key, title, unit, series, steps, False, most)


def maps(key: str, measured: Measurement) -> None:
    """Every head's weights on the fixed example, one colour scale for both models."""
    weights = measured.maps.astype(np.float32)
    n_layers, n_heads, length = weights.shape[:3]
    forbidden = ~causal().block(length, length).numpy()
    figure = heads_grid(
        weights,
        layer_numbers=range(n_layers),
        theme=frame.theme(),
        max_value=1.0,
        forbidden=forbidden[None, None],
        width_px=min(width.column() - LABELS, LARGEST_GRID, 230 * n_heads),
    )
    alt = grid_alt(n_layers, n_heads, length, length)
    chart(figure, key, alt)


def _line(
    name: str, runs: Sequence[Run], number: Callable[[Measurement], float], color: str
) -> Line:
    found = band(runs, number)
    several = len(runs) > 1
    return Line(
        name,
        found.steps,
        found.middle,
        low=found.low if several else None,
        high=found.high if several else None,
        color=color,
    )


def _draw(
    key: str,
    title: str,
    unit: str,
    series: Sequence[Line],
    steps: int,
    log: bool,
    top: float | None,
) -> None:
    figure: go.Figure = lines(
        series,
        x_title="steps",
        y_title=unit,
        theme=frame.theme(),
        y_log=log,
        x_range=(0, steps),
        y_range=None if top is None else (0, top * 1.02),
        height=HEIGHT,
        width=width.column(),
    )
    st.markdown(f"**{title}**")
    alt = f"{title} over the steps; the numbers stand in the table below."
    chart(figure, f"train_{key}", alt)


def _colors() -> list[str]:
    """A colour for each model, the same in every picture."""
    return head_colors(2, frame.theme())
