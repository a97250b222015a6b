"""The largest far weights, found by bins: against a search of the whole table in NumPy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.attention import Attention
from explorer.capture import GivenWeights
from explorer.far_links import far_links
from explorer.maps import overview
from explorer.masks import Mask, causal, sliding_window

MASKS: dict[str, Mask | None] = {
    "none": None,
    "causal": causal(),
    "window": sliding_window(7),
    "looking ahead": ~causal(),
}


def attention(n_heads: int, n: int, mask: Mask | None = None, seed: int = 0) -> Attention:
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (2 * torch.randn(n_heads, n, 4, generator=generator) for _ in range(3))
    return Attention(query, key, value, mask, on_masked_row="zero")


def brute_force(layer: Attention, distance: int, most: int, heads: list[int]) -> pd.DataFrame:
    """Every weight above 0 that is far enough, sorted."""
    table = layer.weights().numpy()
    rows = [
        (head, query, key, table[head, query, key], abs(query - key))
        for head in heads
        for query in range(table.shape[1])
        for key in range(table.shape[2])
        if abs(query - key) >= distance and table[head, query, key] > 0
    ]
    rows.sort(key=lambda row: -row[3])
    return pd.DataFrame(rows[:most], columns=["head", "query", "key", "weight", "distance"])


@given(
    n=st.integers(1, 23),
    size=st.integers(1, 9),
    distance=st.integers(0, 24),
    most=st.integers(1, 30),
    mask=st.sampled_from(list(MASKS)),
    heads=st.sampled_from([[0, 1, 2], [2], [2, 0]]),
    seed=st.integers(0, 99),
)
def test_the_links_are_those_of_a_search_of_the_whole_table(
    n: int, size: int, distance: int, most: int, mask: str, heads: list[int], seed: int
) -> None:
    layer = attention(3, n, MASKS[mask], seed)
    found = far_links(overview(layer, size), distance, most, heads)
    expected = brute_force(layer, distance, most, heads)
    assert list(found.columns) == list(expected.columns)
    assert len(found) == len(expected)
    np.testing.assert_allclose(found["weight"], expected["weight"].astype(float), rtol=2e-5)
    table = layer.weights().numpy()
    for link in found.itertuples():
        assert link.weight == pytest.approx(table[link.head, link.query, link.key], rel=1e-5)
        assert link.distance == abs(link.query - link.key) >= distance
    assert not found.duplicated(["head", "query", "key"]).any()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("distance", [1, 64, 500])
def test_in_a_long_text_the_links_are_those_of_the_whole_table(mask: str, distance: int) -> None:
    layer = attention(2, 611, MASKS[mask])
    found = far_links(overview(layer), distance)
    table = layer.weights().numpy()
    places = np.arange(611)
    near = np.abs(places[:, None] - places) < distance
    expected = np.sort(np.where(near, 0, table).ravel())[::-1][:50]
    np.testing.assert_allclose(found["weight"], expected[expected > 0], rtol=2e-5)


def test_far_pairs_are_found_in_a_bin_whose_largest_weight_is_near() -> None:
    weights = torch.zeros(1, 8, 8)
    weights[0, 4, 4] = 0.9  # on the diagonal, in the same bin as the next
    weights[0, 4, 7] = 0.05
    weights[0, 0, 7] = 0.02
    found = far_links(overview(GivenWeights(weights), 2), 3)
    assert found[["query", "key"]].to_numpy().tolist() == [[4, 7], [0, 7]]
    assert found["distance"].tolist() == [3, 7]


def test_both_directions_count() -> None:
    weights = torch.zeros(1, 6, 6)
    weights[0, 5, 0], weights[0, 0, 5] = 0.5, 0.4
    found = far_links(overview(GivenWeights(weights), 3), 5)
    assert found[["query", "key", "weight"]].to_numpy().tolist() == [
        [5, 0, 0.5],
        [0, 5, pytest.approx(0.4)],
    ]


def test_equal_weights_come_in_the_order_of_heads_queries_and_keys() -> None:
    weights = torch.full((2, 5, 5), 0.2)
    found = far_links(overview(GivenWeights(weights)), 4)
    assert found[["head", "query", "key"]].to_numpy().tolist() == [
        [0, 0, 4],
        [0, 4, 0],
        [1, 0, 4],
        [1, 4, 0],
    ]


def test_equal_weights_everywhere_need_few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 300
    layer = attention(2, n).replace(query=torch.zeros(2, n, 4))
    seen = overview(layer, 30)
    windows = 0
    plain = Attention.weights

    def counted(self: Attention, *arguments: object) -> torch.Tensor:
        nonlocal windows
        windows += 1
        return plain(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Attention, "weights", counted)
    assert len(far_links(seen, 100)) == 50
    assert windows < 30  # of 900


def test_a_weight_that_is_not_a_number_is_no_link_and_hides_none_beside_it() -> None:
    weights = torch.full((2, 6, 6), 0.1)
    weights[0, 0, 5] = torch.nan
    weights[1] = torch.nan
    found = far_links(overview(GivenWeights(weights), 3), 4)
    assert found[["head", "query", "key"]].to_numpy().tolist() == [
        [0, 0, 4],
        [0, 1, 5],
        [0, 4, 0],
        [0, 5, 0],
        [0, 5, 1],
    ]


def test_no_pair_is_far_enough_in_a_short_text() -> None:
    found = far_links(overview(attention(2, 5)), 5)
    assert found.empty
    assert list(found.columns) == ["head", "query", "key", "weight", "distance"]


def test_numbers_that_do_not_fit_are_refused() -> None:
    seen = overview(attention(2, 5))
    with pytest.raises(ValueError, match="distance: got -1"):
        far_links(seen, -1)
    with pytest.raises(ValueError, match="most: got 0"):
        far_links(seen, 1, 0)
    with pytest.raises(ValueError, match="heads: got"):
        far_links(seen, 1, heads=[2])
