"""How heads divide a layer, against counts worked out by hand and against our own layer."""

from __future__ import annotations

import pytest

from explorer.head_sizes import HeadSizes, divisors
from explorer.multihead import MultiHeadAttention


def test_four_heads_of_48_have_twelve_numbers_each() -> None:
    sizes = HeadSizes(48, 4, 4)
    assert sizes.d_k == 12
    assert sizes.scale == pytest.approx(0.288675, abs=1e-6)  # 1/√12
    assert sizes.parameters == {"W_Q": 2304, "W_K": 2304, "W_V": 2304, "W_O": 2304}
    assert sizes.kept_per_token == 96


def test_two_key_value_heads_halve_w_k_and_w_v_and_what_is_kept() -> None:
    sizes = HeadSizes(48, 4, 2)
    assert sizes.parameters == {"W_Q": 2304, "W_K": 1152, "W_V": 1152, "W_O": 2304}
    assert sizes.kept_per_token == 48
    assert [list(sizes.shared_by(kv)) for kv in range(2)] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(("n_heads", "n_kv_heads"), [(1, 1), (3, 3), (8, 2), (16, 1), (12, 4)])
def test_the_counts_are_those_of_our_own_layer(n_heads: int, n_kv_heads: int) -> None:
    layer = MultiHeadAttention(48, n_heads, n_kv_heads=n_kv_heads, seed=0)
    counted = {name.split(".")[0]: weight.numel() for name, weight in layer.named_parameters()}
    assert HeadSizes(48, n_heads, n_kv_heads).parameters == counted


def test_the_number_of_heads_changes_no_size() -> None:
    totals = {sum(HeadSizes(48, n, n).parameters.values()) for n in divisors(48, 16)}
    assert totals == {4 * 48 * 48}


def test_divisors_up_to_a_limit() -> None:
    assert divisors(48, 16) == [1, 2, 3, 4, 6, 8, 12, 16]
    assert divisors(7, 16) == [1, 7]
