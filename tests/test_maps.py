"""Pooled maps and windows: worked by hand, against NumPy, and without the whole table."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.attention import Attention
from explorer.capture import GivenWeights
from explorer.maps import pooled, pooled_forbidden, window
from explorer.masks import causal, sliding_window
from explorer.pooled_pass import Sizes


def attention(n_heads: int, n_q: int, n_k: int, **options: object) -> Attention:
    shape = (n_heads, n_q, 4), (n_heads, n_k, 4), (n_heads, n_k, 3)
    return Attention(*(torch.randn(*sizes) for sizes in shape), **options)  # type: ignore[arg-type]


FOUR = GivenWeights(
    torch.tensor(
        [
            [
                [0.1, 0.2, 0.3, 0.4],
                [0.4, 0.3, 0.2, 0.1],
                [1.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, 0.5, 0.5],
            ]
        ]
    )
)


def test_a_bin_of_means_is_the_weight_its_queries_give_its_keys() -> None:
    expected = torch.tensor([[[0.5, 0.5], [0.5, 0.5]]])
    torch.testing.assert_close(pooled(FOUR, 2), expected)


def test_a_bin_of_largest_weights_keeps_the_needle() -> None:
    expected = torch.tensor([[[0.4, 0.4], [1.0, 0.5]]])
    torch.testing.assert_close(pooled(FOUR, 2, "max"), expected)


def test_one_bin_holds_everything() -> None:
    assert pooled(FOUR, 1).item() == pytest.approx(1)
    assert pooled(FOUR, 1, "max").item() == 1


def test_a_map_that_fits_stays_as_it_is() -> None:
    torch.testing.assert_close(pooled(FOUR, 4), FOUR.weights())
    torch.testing.assert_close(pooled(FOUR, 300, "max"), FOUR.weights())


def numpy_pooled(weights: Tensor, size: int, reduce: str) -> np.ndarray:
    """Bins from their definition: np.array_split into min(size, n) parts."""
    table = weights.double().numpy()
    rows, keys = (np.array_split(np.arange(n), min(size, n)) for n in table.shape[1:])
    found = np.zeros((len(table), len(rows), len(keys)))
    for row, queries in enumerate(rows):
        for key, columns in enumerate(keys):
            cells = table[:, queries][:, :, columns]
            found[:, row, key] = (
                cells.max((1, 2)) if reduce == "max" else cells.sum(2).mean(1)  # by query
            )
    return found


@given(
    n_q=st.integers(1, 13),
    n_k=st.integers(1, 13),
    size=st.integers(1, 14),
    reduce=st.sampled_from(["mean", "max"]),
)
def test_bins_are_those_of_numpy(n_q: int, n_k: int, size: int, reduce: str) -> None:
    layer = attention(2, n_q, n_k)
    found = pooled(layer, size, reduce)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, numpy_pooled(layer.weights(), size, reduce), atol=1e-6)
    if reduce == "mean":
        np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)


def test_blocks_of_rows_give_the_same_map(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = attention(2, 12, 12, mask=causal())
    mean, largest = pooled(layer, 5), pooled(layer, 5, "max")
    given = GivenWeights(layer.weights())
    monkeypatch.setattr("explorer.maps_of_weights.BLOCK_WEIGHTS", 2 * 12 * 2)  # two rows at a time
    monkeypatch.setattr("explorer.pooled_pass.sizes_for", lambda *_: Sizes(2, 3, 1))
    for one in (layer, given):
        torch.testing.assert_close(pooled(one, 5), mean)
        torch.testing.assert_close(pooled(one, 5, "max"), largest)


def test_chosen_heads_alone_are_pooled() -> None:
    layer = attention(4, 9, 9)
    torch.testing.assert_close(pooled(layer, 3, heads=[2]), pooled(layer, 3)[[2]])


def test_a_weight_that_is_not_a_number_shows_in_its_bin() -> None:
    weights = FOUR.weights().clone()
    weights[0, 3, 3] = math.nan
    for reduce in ("mean", "max"):
        found = pooled(GivenWeights(weights), 2, reduce)  # type: ignore[arg-type]
        assert found.isnan().tolist() == [[[False, False], [False, True]]]


def test_a_bin_is_forbidden_only_where_every_cell_is() -> None:
    layer = attention(2, 6, 6, mask=causal())
    assert pooled_forbidden(layer, 3).tolist() == [
        [[False, True, True], [False, False, True], [False, False, False]]
    ]
    table = pooled_forbidden(attention(1, 4, 4, mask=causal() & sliding_window(1)), 4)
    assert torch.equal(table[0], ~torch.eye(4, dtype=torch.bool))
    assert not pooled_forbidden(attention(1, 9, 9), 2).any()


def test_a_pooled_map_and_its_forbidden_bins_have_one_shape() -> None:
    layer = attention(2, 7, 11, mask=causal())
    assert pooled(layer, 4).shape[1:] == pooled_forbidden(layer, 4).shape[1:] == (4, 4)


@given(data=st.data())
def test_a_window_is_a_cut_from_the_whole_map(data: st.DataObject) -> None:
    layer = attention(2, 7, 9)
    r0, k0 = data.draw(st.integers(0, 6)), data.draw(st.integers(0, 8))
    r1, k1 = data.draw(st.integers(r0 + 1, 7)), data.draw(st.integers(k0 + 1, 9))
    expected = layer.weights()[:, r0:r1, k0:k1]
    torch.testing.assert_close(window(layer, (r0, r1), (k0, k1)), expected)


def test_a_window_of_rows_with_a_sink_still_counts_the_sink() -> None:
    layer = attention(2, 5, 5, sinks=torch.tensor([1.0, -1.0]))
    torch.testing.assert_close(window(layer, (1, 3), (2, 4)), layer.weights()[:, 1:3, 2:4])


@pytest.mark.parametrize(
    ("rows", "keys", "named"),
    [((0, 0), (0, 2), "rows"), ((0, 2), (1, 5), "keys"), ((-1, 2), (0, 2), "rows")],
)
def test_a_window_outside_the_map_is_refused(
    rows: tuple[int, int], keys: tuple[int, int], named: str
) -> None:
    with pytest.raises(ValueError, match=f"{named}: got .* ≤ 4"):
        window(FOUR, rows, keys)


def test_a_map_has_at_least_one_bin() -> None:
    with pytest.raises(ValueError, match="size: got 0"):
        pooled(FOUR, 0)
