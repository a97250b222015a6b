"""The drift map: states downwards, tokens across, padding left out."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.drift import drift_alt, drift_map

TABLE = np.array([[0.0, 0.0, 0.0], [0.0, 0.5, 0.1], [0.2, 0.3, 0.9]], dtype=np.float32)
TOKENS = ["a", "cat", "pad"]


def test_the_cells_are_the_drift_from_zero_to_the_largest() -> None:
    figure = drift_map(TABLE, TOKENS, theme="light")
    cells = figure.data[0]
    np.testing.assert_array_equal(cells.z, TABLE)
    assert (cells.zmin, cells.zmax) == (0.0, pytest.approx(0.9))
    assert list(figure.layout.yaxis.ticktext) == ["input", "layer 0", "layer 1"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]


def test_padding_has_no_value_and_no_say_in_the_colours() -> None:
    figure = drift_map(TABLE, TOKENS, theme="dark", padded=np.array([False, False, True]))
    cells = figure.data[0]
    assert np.isnan(cells.z[:, 2]).all()
    assert cells.zmax == pytest.approx(0.5)
    assert any(trace.name == "padding" for trace in figure.data)


def test_no_drift_at_all_still_has_a_range() -> None:
    assert drift_map(np.zeros((2, 1), np.float32), ["a"], theme="light").data[0].zmax == 1


def test_the_picture_in_words_names_the_largest() -> None:
    assert "0.9 of its length, is after layer 1 at token 2 (pad)" in drift_alt(TABLE, TOKENS)
    assert "no hidden state has moved" in drift_alt(np.zeros((2, 2)), ["a", "b"])


def test_labels_must_fit() -> None:
    with pytest.raises(ValueError, match="as many would work"):
        drift_map(TABLE, ["a"], theme="light")
