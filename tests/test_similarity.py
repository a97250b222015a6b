"""Distances between heads: against SciPy pair by pair, and maps and clusters known beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.spatial.distance
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.attention import Attention
from explorer.capture import GivenWeights, capture
from explorer.masks import causal, padding
from explorer.models import LoadedModel
from explorer.similarity import HeadDistances, classical_mds, clusters, head_distances


@dataclass
class SmallStack:
    layers: list[Attention | GivenWeights]
    layer_numbers: tuple[int, ...]
    padded_queries: Tensor
    name: str = "encoder"


def stack_of(*layers: Attention | GivenWeights, padded: Tensor | None = None) -> SmallStack:
    none = torch.zeros(layers[0].query_length, dtype=torch.bool)
    return SmallStack(list(layers), tuple(range(len(layers))), none if padded is None else padded)


def attention(length: int = 6, **options: object) -> Attention:
    shapes = (2, length, 4), (2, length, 4), (2, length, 4)
    return Attention(*(2 * torch.randn(*shape) for shape in shapes), **options)  # type: ignore[arg-type]


def expected(stack: SmallStack, rows: list[int]) -> np.ndarray:
    """√ of the mean of SciPy's squared distance over some rows, for every two heads."""
    heads = torch.cat([layer.weights() for layer in stack.layers]).double().numpy()[:, rows]
    far = scipy.spatial.distance.jensenshannon(heads[:, None], heads[None], axis=-1)
    return np.sqrt((np.nan_to_num(far) ** 2).mean(-1))


# Distances


@given(seed=st.integers(0, 99), length=st.integers(1, 8), is_causal=st.booleans())
def test_distances_are_those_of_scipy(seed: int, length: int, is_causal: bool) -> None:
    torch.manual_seed(seed)
    options = {"mask": causal()} if is_causal else {}
    stack = stack_of(attention(length, **options), attention(length, **options))
    found = head_distances(stack)
    assert found.heads == ((0, 0), (0, 1), (1, 0), (1, 1)) and found.queries == length
    # √ makes a rounding of 1e-7 in a divergence near 0 one of 3e-4.
    np.testing.assert_allclose(found.matrix, expected(stack, list(range(length))), atol=1e-3)
    np.testing.assert_allclose(
        found.matrix**2, expected(stack, list(range(length))) ** 2, atol=1e-6
    )
    assert (found.matrix == found.matrix.T).all() and (found.matrix.diagonal() == 0).all()


def test_heads_that_share_no_key_are_farthest_and_equal_ones_nearest() -> None:
    one = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    found = head_distances(stack_of(GivenWeights(torch.cat([one, one.flip(-1), one]))))
    far = math.sqrt(math.log(2))
    wanted = np.array([[0, far, 0], [far, 0, far], [0, far, 0]])
    np.testing.assert_allclose(found.matrix, wanted, atol=1e-3)
    assert found.like(0, 0)[0][0] == (0, 2) and found.like(0, 0)[-1][0] == (0, 1)


def test_blocks_of_rows_give_the_same_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = stack_of(attention(), attention())
    whole = head_distances(stack).matrix
    monkeypatch.setattr("explorer.similarity.BLOCK_WEIGHTS", 4 * 6 * 2)  # two rows at a time
    np.testing.assert_allclose(head_distances(stack).matrix, whole, atol=1e-6)


def test_padded_queries_are_left_out() -> None:
    padded = torch.arange(6) >= 4
    layers = [attention(mask=padding([4])), attention(mask=padding([4]))]
    found = head_distances(stack_of(*layers, padded=padded))
    wanted = expected(stack_of(*layers), [0, 1, 2, 3])
    assert found.queries == 4
    np.testing.assert_allclose(found.matrix, wanted, atol=1e-4)


def test_a_row_that_one_of_two_heads_lacks_is_left_out() -> None:
    first, second = torch.rand(1, 3, 3).softmax(-1), torch.rand(1, 3, 3).softmax(-1)
    second[0, 1] = torch.nan
    stack = stack_of(GivenWeights(first), GivenWeights(second))
    wanted = expected(stack, [0, 2])
    np.testing.assert_allclose(head_distances(stack).matrix, wanted, atol=1e-4)


def test_a_head_that_is_not_a_number_has_no_distance_and_can_be_left_out() -> None:
    weights = torch.rand(3, 2, 2).softmax(-1)
    weights[1] = torch.nan
    found = head_distances(stack_of(GivenWeights(weights)))
    assert np.isnan(found.matrix[1, [0, 2]]).all()
    assert found.known().heads == ((0, 0), (0, 2))
    assert [name for name, _ in found.like(0, 0)] == [(0, 2)]
    with pytest.raises(ValueError, match="not numbers"):
        classical_mds(found.matrix)


def test_the_sinks_share_is_one_more_key() -> None:
    # One head gives all to its sink, the other to a key: they share nothing.
    weights = torch.tensor([[[0.0, 1e-9]], [[0.0, 1.0]]])
    found = head_distances(stack_of(GivenWeights(weights)))
    assert found.matrix[0, 1] == pytest.approx(math.sqrt(math.log(2)), abs=1e-4)


def test_fewer_queries_are_evenly_spread() -> None:
    stack = stack_of(attention(), attention())
    found = head_distances(stack, most_queries=3)
    assert found.queries == 3
    np.testing.assert_allclose(found.matrix, expected(stack, [0, 2, 5]), atol=1e-3)
    with pytest.raises(ValueError, match="at least 1"):
        head_distances(stack, most_queries=0)


def test_distances_of_a_real_model_are_those_of_scipy(minilm: LoadedModel) -> None:
    stack = capture(minilm, "The cat sat on the mat.").stacks["encoder"]
    found = head_distances(stack)
    wanted = expected(stack_of(*stack.layers), list(range(9)))
    np.testing.assert_allclose(found.matrix**2, wanted**2, atol=1e-6)
    # √ of a mean divergence lies in a flat space: all eigenvalues are ≥ 0 but for rounding, so
    # with an axis for each head the points have exactly these distances.
    points, share = classical_mds(found.matrix, axes=71)
    np.testing.assert_allclose(
        scipy.spatial.distance.cdist(points, points), found.matrix, atol=1e-3
    )
    assert share == pytest.approx(1)


def test_a_head_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="L3H9 is not among"):
        HeadDistances(((0, 0),), np.zeros((1, 1)), 1).like(3, 9)


# The map


@given(seed=st.integers(0, 99), n=st.integers(1, 9))
def test_points_in_a_plane_are_found_again(seed: int, n: int) -> None:
    generator = np.random.default_rng(seed)
    matrix = scipy.spatial.distance.squareform(
        scipy.spatial.distance.pdist(generator.normal(size=(n, 2)))
    ).reshape(n, n)
    points, share = classical_mds(matrix)
    again = scipy.spatial.distance.cdist(points, points)
    np.testing.assert_allclose(again, matrix, atol=1e-6)
    assert share == pytest.approx(1)


def test_the_map_is_that_of_another_library() -> None:
    manifold = pytest.importorskip("sklearn.manifold")
    points = np.random.default_rng(0).normal(size=(12, 5))
    matrix = scipy.spatial.distance.cdist(points, points)
    theirs = manifold.ClassicalMDS(n_components=2, metric="precomputed").fit_transform(matrix)
    ours, share = classical_mds(matrix)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-8)
    assert 0.3 < share < 1


def test_the_map_has_one_sign_and_survives_equal_heads() -> None:
    points, share = classical_mds(np.zeros((3, 3)))
    assert (points == 0).all() and share == 1
    points, _ = classical_mds(np.array([[0.0, 2.0], [2.0, 0.0]]))
    assert points[0, 0] == pytest.approx(1) and points[1, 0] == pytest.approx(-1)


# Clusters


def test_two_far_groups_are_two_clusters() -> None:
    places = np.array([0.0, 5.0, 0.1, 5.2, 0.2])
    matrix = np.abs(places[:, None] - places)
    assert clusters(matrix, 2).tolist() == [0, 1, 0, 1, 0]
    assert clusters(matrix, 1).tolist() == [0] * 5
    assert sorted(clusters(matrix, 99).tolist()) == [0, 1, 2, 3, 4]
    assert clusters(np.zeros((1, 1)), 3).tolist() == [0]
    with pytest.raises(ValueError, match="at least 1 cluster"):
        clusters(matrix, 0)
