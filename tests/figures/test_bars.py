"""One query's row as bars, in the order of the text."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.bars import row_bars


def test_bars_keep_the_order_of_the_text_with_key_zero_on_top() -> None:
    figure = row_bars(np.array([0.1, 0.7, 0.2]), ["the", "cat", "the"], theme="light")
    assert np.allclose(figure.data[0].x, [0.1, 0.7, 0.2])
    assert figure.data[0].y.tolist() == [0, 1, 2]
    assert figure.layout.yaxis.range == (2.5, -0.5)
    assert figure.layout.yaxis.ticktext == ("the", "cat", "the")
    assert figure.layout.xaxis.title.text == "weight, share of 1"
    assert figure.layout.xaxis.range == (0, pytest.approx(0.7))


def test_a_forbidden_key_has_a_ground_and_no_bar() -> None:
    forbidden = np.array([False, True, True])
    figure = row_bars(np.array([1.0, 0, 0]), ["a", "b", "c"], theme="dark", forbidden=forbidden)
    assert np.isnan(figure.data[0].x).tolist() == forbidden.tolist()
    (ground,) = figure.layout.shapes
    assert (ground.y0, ground.y1) == (0.5, 2.5)
    assert [trace.name for trace in figure.data if getattr(trace, "showlegend", False)] == [
        "forbidden by the mask"
    ]


def test_a_row_of_zeros_is_drawn() -> None:
    assert row_bars(np.zeros(2), ["a", "b"], theme="light").layout.xaxis.range == (0, 1)


def test_labels_must_fit_the_row() -> None:
    with pytest.raises(ValueError, match="key_labels"):
        row_bars(np.ones(2), ["a"], theme="light")
