"""Panels of distributions and of sorted weights: their data, shared axes, names and notes."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.distribution import MOST_BARS, Panel, distributions, sorted_weights


def test_a_histograms_area_is_1_and_both_share_one_axis() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    panels = [Panel("wide", 8 * values, "sd 8"), Panel("narrow", values)]
    figure = distributions(panels, x_title="score", theme="light")
    for trace in figure.data:
        assert (np.diff(trace.x) * trace.y[:-1]).sum() == pytest.approx(1)
    low, high = figure.layout.xaxis.range
    assert low < figure.data[0].x[0] < 0 < figure.data[0].x[-1] < high
    assert figure.layout.xaxis.title.text == "score"
    assert [note.text for note in figure.layout.annotations][:2] == ["<b>wide</b>", "sd 8"]


def test_equal_values_have_a_histogram_too() -> None:
    figure = distributions([Panel("one", np.zeros(5))], x_title="score", theme="dark")
    assert figure.data[0].x[0] == -0.5 and figure.data[0].x[-1] == 0.5


def test_weights_stand_from_the_largest_to_the_smallest_between_0_and_1() -> None:
    figure = sorted_weights([Panel("a", np.array([0.2, 0.7, 0.1]))], theme="light")
    assert figure.data[0].y.tolist() == [0.7, 0.2, 0.1]
    assert figure.data[0].x.tolist() == [1, 2, 3]
    assert figure.layout.yaxis.range == (0, 1)


def test_many_weights_are_one_outline_of_the_same_values() -> None:
    n = MOST_BARS + 1
    figure = sorted_weights([Panel("a", np.full(n, 1 / n))], theme="light")
    (outline,) = figure.data
    assert outline.type == "scatter" and outline.line.shape == "hv"
    assert outline.y[:n].tolist() == [1 / n] * n


def test_panels_differ_in_colour_and_lie_under_one_another() -> None:
    figure = sorted_weights(
        [Panel("<i>", np.ones(1)), Panel("b", np.ones(1))], theme="light", width=400
    )
    assert figure.data[0].marker.color != figure.data[1].marker.color
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1]
    assert figure.layout.width == 400
    assert figure.layout.annotations[0].text == "<b>&#60;i&#62;</b>"
