"""A row before and after softmax: the same keys in the same order, forbidden ones without bars."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from explorer.figures.before_after import before_after

SCORES = np.array([0.0, 1.0986, -2.0])
WEIGHTS = np.array([0.25, 0.75, 0.0])


def test_both_halves_hold_their_row() -> None:
    figure = before_after(SCORES, WEIGHTS, ["a", "b", "c"], theme="light", selected=1)
    before, after = figure.data[:2]
    np.testing.assert_allclose(before.x, SCORES.astype(np.float32))
    np.testing.assert_allclose(after.x, WEIGHTS.astype(np.float32))
    assert list(before.text) == ["0.00", "1.10", "−2.00"]
    assert (before.xaxis, after.xaxis) == ("x", "x2")
    assert before.marker.color[1] != before.marker.color[0]
    assert figure.layout.yaxis.range == (2.5, -0.5)


def test_weights_stand_on_one_fixed_scale_from_0_to_1() -> None:
    soft = before_after(SCORES, np.full(3, 1 / 3), ["a", "b", "c"], theme="light")
    assert list(soft.layout.xaxis2.tickvals) == [0, 0.5, 1]
    assert soft.layout.xaxis2.range[0] == 0


@pytest.mark.parametrize("width", [260, 360, 480, 600])
@pytest.mark.parametrize(
    "scores", [[-0.18, -0.06], [-0.18, 0.002], [-1.65, -0.3], [0.9, 6.1], [-2e-4, 3e-4]]
)
def test_the_scores_axis_has_0_and_the_far_end_and_no_label_on_another(
    scores: list[float], width: int
) -> None:
    row, weights = np.array(scores), np.full(2, 0.5)
    figure = before_after(row, weights, ["a", "b"], theme="light", width_px=width)
    axis, layout = figure.layout.xaxis, figure.layout
    plot = (layout.width - layout.margin.l - layout.margin.r) * axis.domain[1]
    scale = plot / (axis.range[1] - axis.range[0])
    assert axis.tickangle == 0
    assert {0.0, float(np.float32(max(scores, key=abs)))} <= set(axis.tickvals)
    ends = [  # 7 pixels a character
        (value * scale - 3.5 * len(text), value * scale + 3.5 * len(text))
        for value, text in zip(axis.tickvals, axis.ticktext, strict=True)
    ]
    assert all(left[1] < right[0] for left, right in pairwise(ends))


def test_a_forbidden_key_has_a_ground_instead_of_bars() -> None:
    barred = np.array([False, False, True])
    figure = before_after(SCORES, WEIGHTS, ["a", "b", "c"], theme="dark", forbidden=barred)
    assert np.isnan(figure.data[0].x[2]) and np.isnan(figure.data[1].x[2])
    assert [(shape.y0, shape.y1) for shape in figure.layout.shapes] == [(1.5, 2.5)]


def test_rows_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="key_labels"):
        before_after(SCORES, WEIGHTS, ["a"], theme="light")
