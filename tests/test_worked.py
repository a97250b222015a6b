"""The worked examples give what their texts say: each number below was worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from explorer.masks import causal
from explorer.worked import EXAMPLES, Worked


def steps(name: str, times: float = 1.0) -> dict[str, np.ndarray]:
    example = EXAMPLES[name]
    made = example.attention
    assert made.scale is not None
    mask = causal() if example.mask == "causal" else None
    found = made.replace(mask=mask, scale=made.scale * times).steps()
    names = ("dots", "scores", "weights", "output")
    return {name: getattr(found, name)[0].numpy() for name in names}


def test_two_queries_and_three_keys_give_the_dots_of_the_text() -> None:
    found = steps("dots")
    assert found["dots"].tolist() == [[1, 2, 0], [2, 0, 6]]
    np.testing.assert_allclose(found["scores"], np.array([[1, 2, 0], [2, 0, 6]]) / math.sqrt(2))


def test_scores_0_and_log_3_give_a_quarter_and_three_quarters_and_the_output_5() -> None:
    found = steps("quarter")
    np.testing.assert_allclose(found["scores"], [[0, math.log(3)]], rtol=1e-6)
    np.testing.assert_allclose(found["weights"], [[1 / 4, 3 / 4]], rtol=1e-6)
    np.testing.assert_allclose(found["output"], [[5]], rtol=1e-6)


def test_equal_scores_give_equal_weights_and_the_mean() -> None:
    found = steps("equal")
    assert found["dots"].tolist() == [[2, 2, 2, 2]]
    assert found["weights"].tolist() == [[1 / 4] * 4]
    assert found["output"].tolist() == [[4]]


def test_the_causal_rows_are_those_of_the_text() -> None:
    found = steps("causal")
    rows = [[1, 0, 0], [1 / 3, 2 / 3, 0], [1 / 6, 1 / 3, 1 / 2]]
    np.testing.assert_allclose(found["weights"], rows, rtol=1e-6)
    np.testing.assert_allclose(found["output"], [[6], [4], [8]], rtol=1e-6)


def test_twice_the_scale_undoes_the_root_of_4() -> None:
    usual, undone = steps("scale"), steps("scale", times=2)
    np.testing.assert_allclose(usual["dots"], [[0, 2 * math.log(3)]], rtol=1e-6)
    np.testing.assert_allclose(usual["weights"], [[1 / 4, 3 / 4]], rtol=1e-6)
    np.testing.assert_allclose(undone["weights"], [[1 / 10, 9 / 10]], rtol=1e-6)
    np.testing.assert_allclose(usual["output"], [[3 / 4]], rtol=1e-6)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_fits_its_own_labels_and_opens_on_a_cell_it_has(name: str) -> None:
    example: Worked = EXAMPLES[name]
    lengths = example.attention.query_length, example.attention.key_length
    assert (len(example.queries), len(example.keys)) == lengths
    assert example.attention.n_heads == 1
    assert all(0 <= at < n for at, n in zip(example.opens, lengths, strict=True))
    assert example.mask in ("none", "causal")
