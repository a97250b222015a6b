"""Differences between two heads: worked by hand, against SciPy, and their limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.spatial.distance
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.capture import Capture, capture
from explorer.divergence import LN2, compare, jensen_shannon
from explorer.models import load


def rows(n_rows: int, n_keys: int, seed: int, zeros: float | int = 0) -> Tensor:
    """Random rows that sum to 1, some of their weights 0."""
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(n_rows, n_keys, generator=generator)
    barred = torch.rand(n_rows, n_keys, generator=generator) < zeros
    barred[:, 0] = False
    return torch.softmax(scores.masked_fill(barred, -torch.inf), -1)


# Worked by hand


def test_rows_that_share_no_key_differ_by_log_2() -> None:
    assert float(jensen_shannon(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))) == LN2


def test_one_key_against_two_equal_ones() -> None:
    # m = (¾, ¼): ½ log(4/3) + ½ (½ log(2/3) + ½ log 2)
    expected = 0.5 * math.log(4 / 3) + 0.25 * math.log(2 / 3) + 0.25 * math.log(2)
    found = jensen_shannon(torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5]))
    assert float(found) == pytest.approx(expected)


def test_what_a_row_lacks_is_one_more_key() -> None:
    # (½, ½ in the sink) against (1, 0): the same as above.
    found = jensen_shannon(torch.tensor([0.5]), torch.tensor([1.0]))
    expected = jensen_shannon(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    assert float(found) == pytest.approx(float(expected))


def test_two_small_maps_compared() -> None:
    left = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    right = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    found = compare(left, right)
    assert found.divergence == pytest.approx(float(found.per_query[0]) / 2)
    assert found.cosine == pytest.approx(1 / math.sqrt(1.5))
    assert found.entropy_left == pytest.approx(LN2 / 2) and found.entropy_right == pytest.approx(
        LN2
    )
    assert found.entropy_change == pytest.approx(LN2 / 2)
    assert found.largest_difference == 0.5
    assert found.per_key.tolist() == [0.25, 0.25]
    assert found.queries() == [0] and found.keys() == [0, 1]
    assert math.isnan(found.correlation)  # the right is constant


def test_the_queries_and_keys_that_differ_most_come_first() -> None:
    left = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [1.0, 0.0, 0.0]])
    right = torch.tensor([[0.5, 0.5, 0.0], [0.3, 0.7, 0.0], [0.0, 0.0, 1.0]])
    found = compare(left, right)
    assert found.queries() == [2, 1] and found.queries(1) == [2]
    assert found.keys() == [0, 2, 1]  # 1.1, 1.0 and 0.1 in all


# Its limits, and SciPy


@given(seed=st.integers(0, 999), n_keys=st.integers(1, 9), zeros=st.sampled_from([0, 0.3, 0.8]))
def test_the_divergence_is_that_of_scipy(seed: int, n_keys: int, zeros: float | int) -> None:
    left, right = rows(4, n_keys, seed, zeros), rows(4, n_keys, seed + 1000, zeros)
    found = jensen_shannon(left, right)
    expected = scipy.spatial.distance.jensenshannon(left.double(), right.double(), axis=-1) ** 2
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert bool((found >= 0).all()) and float(found.max()) <= LN2
    torch.testing.assert_close(found, jensen_shannon(right, left), rtol=0, atol=1e-15)
    assert bool((jensen_shannon(left, left) == 0).all())


@given(seed=st.integers(0, 999))
def test_all_numbers_of_a_comparison_are_those_of_numpy_and_scipy(seed: int) -> None:
    left, right = rows(6, 5, seed, 0.3), rows(6, 5, seed + 1000, 0.3)
    left_out = torch.tensor([False, True, False, False, True, False])
    found = compare(left, right, left_out)
    p, q = (each.double().numpy()[~left_out.numpy()] for each in (left, right))
    each = [scipy.spatial.distance.jensenshannon(a, b) ** 2 for a, b in zip(p, q, strict=True)]
    assert found.divergence == pytest.approx(np.mean(each), abs=1e-6)
    cosine = 1 - scipy.spatial.distance.cosine(p.ravel(), q.ravel())
    assert found.cosine == pytest.approx(cosine, abs=1e-9)
    pearson = scipy.stats.pearsonr(p.ravel(), q.ravel()).statistic
    assert found.correlation == pytest.approx(pearson, abs=1e-9)
    change = scipy.stats.entropy(q, axis=1).mean() - scipy.stats.entropy(p, axis=1).mean()
    assert found.entropy_change == pytest.approx(change, abs=1e-5)
    np.testing.assert_allclose(found.per_key, np.abs(q - p).mean(0), atol=1e-12)
    assert bool(found.per_query.isnan()[left_out].all())


def test_a_map_compared_with_itself_does_not_differ() -> None:
    table = rows(5, 5, 3)
    found = compare(table, table)
    assert found.divergence == 0 and found.largest_difference == 0 and found.entropy_change == 0
    assert found.cosine == pytest.approx(1) and found.correlation == pytest.approx(1)
    assert found.queries() == [] and found.keys() == []


def test_rows_without_a_key_or_with_nan_are_left_out() -> None:
    left, right = rows(3, 3, 1), rows(3, 3, 2)
    alone = compare(left[:1], right[:1])
    left[1], right[2] = 0.0, torch.nan
    found = compare(left, right)
    assert found.per_query.isnan().tolist() == [False, True, True]
    for name in ("divergence", "cosine", "correlation", "entropy_left", "largest_difference"):
        assert getattr(found, name) == pytest.approx(getattr(alone, name))


def test_nothing_left_to_compare_is_not_a_number() -> None:
    found = compare(torch.zeros(2, 2), torch.ones(2, 2) / 2)
    assert math.isnan(found.divergence) and math.isnan(found.largest_difference)
    assert found.queries() == [] and found.keys() == []


def test_the_correlation_looks_at_allowed_cells_only() -> None:
    left, right = rows(3, 3, 1), rows(3, 3, 2)
    allowed = torch.ones(3, 3, dtype=torch.bool).tril()
    found = compare(left, right, allowed=allowed)
    expected = scipy.stats.pearsonr(left[allowed].double(), right[allowed].double()).statistic
    assert found.correlation == pytest.approx(expected)


def test_two_heads_of_a_real_model_are_those_of_scipy() -> None:
    its_capture: Capture = capture(load("minilm", device="cpu"), "The cat sat on the mat.")
    layer = its_capture.stacks["encoder"].layers[0]
    left, right = layer.weights([2, 5])
    before = left.clone()
    found = compare(left, right)
    expected = scipy.spatial.distance.jensenshannon(left.double(), right.double(), axis=1) ** 2
    np.testing.assert_allclose(found.per_query, expected, atol=1e-6)
    assert torch.equal(left, before)  # what was captured stays as it was
