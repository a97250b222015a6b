"""A row before and after softmax: the same keys in the same order, forbidden ones without bars."""

from __future__ import annotations

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


def test_a_forbidden_key_has_a_ground_instead_of_bars() -> None:
    barred = np.array([False, False, True])
    figure = before_after(SCORES, WEIGHTS, ["a", "b", "c"], theme="dark", forbidden=barred)
    assert np.isnan(figure.data[0].x[2]) and np.isnan(figure.data[1].x[2])
    assert [(shape.y0, shape.y1) for shape in figure.layout.shapes] == [(1.5, 2.5)]


def test_rows_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="key_labels"):
        before_after(SCORES, WEIGHTS, ["a"], theme="light")
