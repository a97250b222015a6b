"""Masks: each rule against its matrix written out, and any block against the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.masks import (
    Mask,
    causal,
    custom,
    everything,
    one_sequence,
    only_keys,
    padding,
    positions,
    prefix,
    sliding_window,
)
from tests.reference import WrittenMask, written_masks


def rows_of(mask: Mask, n_q: int, n_k: int) -> list[str]:
    """The mask's rows as text, x where the query may use the key."""
    return ["".join("x" if cell else "." for cell in row) for row in mask.block(n_q, n_k).tolist()]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (everything(), ["xxxx", "xxxx", "xxxx", "xxxx"]),
        (causal(), ["x...", "xx..", "xxx.", "xxxx"]),
        (sliding_window(1), ["x...", ".x..", "..x.", "...x"]),
        (sliding_window(2), ["x...", "xx..", ".xx.", "..xx"]),
        (sliding_window(9), ["x...", "xx..", "xxx.", "xxxx"]),
        (prefix(0), ["x...", "xx..", "xxx.", "xxxx"]),
        (prefix(3), ["xxx.", "xxx.", "xxx.", "xxxx"]),
        (prefix(9), ["xxxx", "xxxx", "xxxx", "xxxx"]),
        (padding(3), ["xxx.", "xxx.", "xxx.", "xxx."]),
        (padding(3, side="left"), [".xxx", ".xxx", ".xxx", ".xxx"]),
        (padding(0), ["....", "....", "....", "...."]),
        (padding(4, side="left"), ["xxxx", "xxxx", "xxxx", "xxxx"]),
        (causal() & padding(2), ["x...", "xx..", "xx..", "xx.."]),
        (causal() & padding(3, "left"), ["....", ".x..", ".xx.", ".xxx"]),
        (sliding_window(1) | padding(1), ["x...", "xx..", "x.x.", "x..x"]),
        (~causal(), [".xxx", "..xx", "...x", "...."]),
        (~(causal() | padding(2)), ["..xx", "..xx", "...x", "...."]),
    ],
    ids=lambda value: value.name if isinstance(value, Mask) else "",
)
def test_a_rule_gives_its_written_out_matrix(mask: Mask, expected: list[str]) -> None:
    assert rows_of(mask, 4, 4) == expected


@pytest.mark.parametrize(
    ("mask", "n_q", "n_k", "expected"),
    [
        (causal(), 2, 5, ["xxxx.", "xxxxx"]),
        (causal(), 4, 2, ["..", "..", "x.", "xx"]),
        (sliding_window(2), 2, 5, ["..xx.", "...xx"]),
        (sliding_window(2), 4, 2, ["..", "..", "x.", "xx"]),
        (prefix(1), 2, 4, ["xxx.", "xxxx"]),
        (prefix(1), 4, 2, ["x.", "x.", "x.", "xx"]),
        (padding(1), 2, 3, ["x..", "x.."]),
        (padding(1, "left"), 2, 3, ["..x", "..x"]),
    ],
)
def test_with_fewer_queries_than_keys_the_queries_are_the_last_ones(
    mask: Mask, n_q: int, n_k: int, expected: list[str]
) -> None:
    assert rows_of(mask, n_q, n_k) == expected


@given(st.integers(1, 12), st.integers(1, 14))
def test_row_i_of_a_window_has_the_smaller_of_i_plus_1_and_w_keys(n: int, w: int) -> None:
    counts = sliding_window(w).block(n, n).sum(-1).tolist()
    assert counts == [min(i + 1, w) for i in range(n)]


def test_padding_with_a_list_has_an_axis_for_the_sequences() -> None:
    block = padding([1, 3]).block(2, 3)
    assert block.shape == (2, 1, 2, 3)
    assert block[:, 0].tolist() == [[[True, False, False]] * 2, [[True, True, True]] * 2]
    left = padding(torch.tensor([1, 2]), side="left").block(1, 3)
    assert left[:, 0, 0].tolist() == [[False, False, True], [False, True, True]]


def test_a_custom_mask_may_differ_from_head_to_head() -> None:
    matrix = torch.tensor([[[True, False], [True, True]], [[False, True], [True, False]]])
    block = custom(matrix).block(2, 2, rows=[1])
    assert block.tolist() == [[[True, True]], [[True, False]]]


def test_a_custom_mask_may_be_a_list_of_lists() -> None:
    assert rows_of(custom([[True, False, True]]), 1, 3) == ["x.x"]


@given(st.data())
def test_a_combination_equals_the_combined_matrices(data: st.DataObject) -> None:
    n_q, n_k = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    both: WrittenMask = data.draw(written_masks(n_q, n_k))
    np.testing.assert_array_equal(both.mask.block(n_q, n_k).numpy(), both.table)


@given(st.data())
def test_a_block_equals_that_part_of_the_whole(data: st.DataObject) -> None:
    n_q, n_k = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    mask, table = data.draw(written_masks(n_q, n_k))
    rows = data.draw(st.lists(st.integers(0, n_q - 1), max_size=4))
    start = data.draw(st.integers(0, n_k))
    keys = slice(start, data.draw(st.integers(start, n_k)))
    block = mask.block(n_q, n_k, rows, keys)
    np.testing.assert_array_equal(block.numpy(), table[rows][:, keys])


@pytest.mark.parametrize(
    ("chosen", "reach", "opened"),
    [("..xxx", (2, 5), (2, 5)), (".x.x.", (1, 4), (1, 1)), (".....", (0, 0), (0, 0))],
)
def test_chosen_keys_alone_are_allowed_to_every_query(
    chosen: str, reach: tuple[int, int], opened: tuple[int, int]
) -> None:
    mask = only_keys(torch.tensor([letter == "x" for letter in chosen]), "chosen")
    assert rows_of(mask, 3, 5) == [chosen] * 3
    assert mask.key_range(0, 2, 3, 5) == reach and mask.open_range(0, 2, 3, 5) == opened


@given(st.data())
def test_cells_anywhere_are_those_of_the_whole(data: st.DataObject) -> None:
    n_q, n_k = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    mask, table = data.draw(written_masks(n_q, n_k))
    draw = np.random.default_rng(data.draw(st.integers(0, 9)))
    queries, keys = draw.integers(0, n_q, (3, 4, 1)), draw.integers(0, n_k, (3, 1, 2))
    found = mask.at(torch.tensor(queries), torch.tensor(keys), n_q, n_k)
    np.testing.assert_array_equal(found.numpy(), table[queries, keys])


@given(st.data())
def test_the_open_range_holds_only_keys_that_every_query_may_use(data: st.DataObject) -> None:
    n_q, n_k = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    mask, table = data.draw(written_masks(n_q, n_k, depth=3))
    first = data.draw(st.integers(0, n_q - 1))
    last = data.draw(st.integers(first, n_q - 1))
    start, stop = mask.open_range(first, last, n_q, n_k)
    assert 0 <= start <= stop <= n_k
    assert table[first : last + 1, start:stop].all()


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (everything(), (0, 1000)),
        (causal(), (0, 256)),
        (sliding_window(300), (212, 256)),
        (causal() & padding(100), (0, 100)),
        (prefix(600), (0, 600)),
        (padding(900, "left"), (100, 1000)),
        (causal() | padding(100), (0, 256)),
    ],
)
def test_the_open_range_of_a_rule_is_tight(mask: Mask, expected: tuple[int, int]) -> None:
    """Rows 255 … 511 of 1000: with none the blocks would be right, and slow."""
    assert mask.open_range(255, 511, 1000, 1000) == expected


@given(st.data())
def test_the_key_range_never_leaves_out_a_key_that_a_query_may_use(data: st.DataObject) -> None:
    n_q, n_k = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    mask, table = data.draw(written_masks(n_q, n_k, depth=3))
    first = data.draw(st.integers(0, n_q - 1))
    last = data.draw(st.integers(first, n_q - 1))
    start, stop = mask.key_range(first, last, n_q, n_k)
    assert 0 <= start <= stop <= n_k
    outside = np.delete(table[first : last + 1], np.s_[start:stop], axis=1)
    assert not outside.any()


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (causal(), (0, 512)),
        (sliding_window(100), (156, 512)),
        (causal() & sliding_window(7), (249, 512)),
        (prefix(600), (0, 600)),
        (~causal(), (0, 1000)),
        (~sliding_window(100), (0, 1000)),
        (causal() | prefix(600), (0, 600)),
        (sliding_window(7) | causal(), (0, 512)),
    ],
)
def test_the_key_range_of_a_rule_is_tight(mask: Mask, expected: tuple[int, int]) -> None:
    """Rows 255 … 511 of 1000: with a loose range the blocks would be right, and slow."""
    assert mask.key_range(255, 511, 1000, 1000) == expected


def test_rules_that_share_no_key_have_an_empty_range() -> None:
    first = Mask("first", lambda q, k, n_q, n_k: (k < 2) & (q >= 0), lambda *_: (0, 2))
    last = Mask("last", lambda q, k, n_q, n_k: (k >= 4) & (q >= 0), lambda *_: (4, 6))
    start, stop = (first & last).key_range(0, 5, 6, 6)
    assert 0 <= start == stop <= 6
    assert (first | last).key_range(0, 5, 6, 6) == (0, 6)


class _Largest(TorchDispatchMode):
    """Remembers the largest tensor that any operation gave."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.bytes = max(self.bytes, out.untyped_storage().nbytes())
        return out


def test_a_block_of_a_long_sequence_makes_no_table_of_all_queries_and_keys() -> None:
    n = 200_000
    mask = (causal() & sliding_window(20_000)) | (prefix(10) & ~padding(3, "left"))
    with _Largest() as seen:
        block = mask.block(n, n, rows=slice(n - 8, n), keys=slice(n - 16, n))
    assert block.tolist() == [[j <= i + 8 for j in range(16)] for i in range(8)]
    assert 0 < seen.bytes < 10_000


@pytest.mark.parametrize("w", [0, -3])
def test_a_window_below_one_key_is_refused(w: int) -> None:
    with pytest.raises(ValueError, match=rf"^w: got {w}.*at least 1 key"):
        sliding_window(w)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: prefix(-1), r"^p: got -1.*0 keys or more"),
        (lambda: padding(3, "top"), r'^side: got "top".*"left" or "right"'),
        (lambda: padding([2, -1]), r"^lengths: got \[2, -1\].*0 or more"),
        (lambda: padding(torch.zeros(2, 2)), r"^lengths: got the shape \(2, 2\)"),
        (lambda: padding(5).block(2, 4), r"^lengths: got 5.*only 4 keys"),
        (lambda: custom(torch.ones(2, 2)), r"^matrix: got torch.float32; a mask is bool"),
        (lambda: custom(torch.ones(2, dtype=torch.bool)), r"^matrix: got the shape \(2,\)"),
        (lambda: custom([[True, True]]).block(2, 3), r"^matrix: .*\(1, 2\).*\(\.\.\., 2, 3\)"),
        (lambda: causal().block(2, 2, rows=[2]), r"^rows: got \[2\].*0 to 1"),
        (lambda: causal().block(2, 2, keys=[-1]), r"^keys: got \[-1\].*0 to 1"),
        (lambda: causal().block(2, 2, rows=[True, False]), r"^rows: got torch.bool.*whole numbers"),
        (lambda: positions(torch.tensor([0.7]), 2, "heads"), r"^heads: got torch.float32"),
        (
            lambda: one_sequence(padding([1, 2]).block(2, 2), 2),
            r"^mask: got the leading axes \(2, 1\), but one sequence with 2 heads",
        ),
        (
            lambda: one_sequence(torch.ones(3, 2, 2, dtype=torch.bool), 2),
            r"^mask: got the leading axes \(3,\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_positions_may_be_a_slice_a_list_a_tensor_or_all() -> None:
    assert positions(None, 3, "rows").tolist() == [0, 1, 2]
    assert positions(slice(-2, None), 3, "rows").tolist() == [1, 2]
    assert positions(slice(1, 99), 3, "rows").tolist() == [1, 2]
    assert positions([2, 0, 2], 3, "rows").tolist() == [2, 0, 2]
    assert positions(torch.tensor([1]), 3, "rows").tolist() == [1]
    assert positions([], 3, "rows").tolist() == []


def test_a_combined_mask_says_in_words_what_it_is() -> None:
    name = (causal() & ~padding(3)).name
    assert name == "(causal and not padding on the right)"
