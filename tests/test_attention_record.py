"""The record: any part of any step on demand equals that part of the steps made in full."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.attention import Attention
from explorer.masks import causal, custom, padding, sliding_window
from tests.reference import Example, examples, reference


def record_of(example: Example) -> Attention:
    query, key, value, mask, _, terms = example
    return Attention(query, key, value, mask, on_masked_row="zero", **terms)


def test_it_knows_its_sizes() -> None:
    record = Attention(torch.zeros(4, 5, 9), torch.zeros(2, 6, 9), torch.zeros(2, 6, 3))
    sizes = (record.n_heads, record.n_kv_heads, record.query_length, record.key_length)
    assert sizes == (4, 2, 5, 6)
    assert (record.d_k, record.d_v) == (9, 3)
    assert record.scale == pytest.approx(1 / 3)


def test_the_effective_scale_includes_what_the_model_put_into_the_query() -> None:
    tensors = torch.zeros(3, 1, 2, 4)
    assert Attention(*tensors, scale=0.5).effective_scale == 0.5
    assert Attention(*tensors, scale=0.5, prescale=0.25).effective_scale == 0.125


@given(examples())
def test_the_whole_equals_the_reference(example: Example) -> None:
    record, expected = record_of(example), example.expected()
    kept, fused = record.with_row_lse()
    weights, output = record.weights_and_output()
    tolerance = example.tolerance()
    for ours in (record.weights(), weights, kept.weights(), record.steps().weights):
        np.testing.assert_allclose(ours, expected.weights, atol=tolerance, rtol=0)
    for ours in (record.output(), output, fused):
        assert ours.dtype == example.value.dtype
        np.testing.assert_allclose(
            ours.double(), expected.output, atol=example.output_tolerance(), rtol=0
        )
    live = np.broadcast_to(example.allowed, weights.shape).any(-1)
    assert kept.row_lse is not None
    np.testing.assert_allclose(
        kept.row_lse.numpy()[live], expected.lse[live], atol=tolerance, rtol=1e-6
    )


@given(examples(), st.data())
def test_a_part_equals_that_part_of_the_whole(example: Example, data: st.DataObject) -> None:
    """For chosen heads, rows and keys, with the row sums kept and without."""
    record, expected = record_of(example), example.expected()
    chosen: dict[str, Any] = {}
    index = []
    for name, axis in (("heads", 0), ("rows", 1), ("keys", 2)):
        size = expected.weights.shape[axis]
        numbers = data.draw(st.none() | st.lists(st.integers(0, size - 1), min_size=1, max_size=5))
        as_tensor = numbers is not None and data.draw(st.booleans())
        chosen[name] = torch.tensor(numbers) if as_tensor else numbers
        index.append(list(range(size)) if numbers is None else numbers)
    part = np.ix_(*index)
    tolerance = 2 * example.tolerance()
    kept = record.with_row_lse()[0]
    for ours in (record.weights(**chosen), kept.weights(**chosen)):
        np.testing.assert_allclose(ours, expected.weights[part], atol=tolerance, rtol=0)
    np.testing.assert_allclose(
        record.scores(**chosen), expected.scores[part], atol=tolerance, rtol=0
    )
    scale = abs(record.scale or 0)
    np.testing.assert_allclose(
        record.dots(**chosen), expected.dots[part], atol=tolerance / scale, rtol=0
    )
    allowed = np.broadcast_to(example.allowed, expected.weights.shape)[part]
    ours = record.allowed(**chosen)
    np.testing.assert_array_equal(np.broadcast_to(ours, allowed.shape), allowed)


def test_a_slice_chooses_as_it_does_in_a_list() -> None:
    record = Attention(*torch.randn(3, 4, 7, 5), causal())
    whole = record.steps().weights
    part = record.weights(heads=slice(1, 3), rows=slice(-2, None), keys=slice(0, 99, 2))
    torch.testing.assert_close(part, whole[1:3, -2:, ::2])


def test_a_mask_for_each_head_stays_with_its_head() -> None:
    table = torch.rand(4, 6, 6, generator=torch.Generator().manual_seed(3)) < 0.5
    table[..., 0] = True
    record = Attention(torch.randn(4, 6, 8), *torch.randn(2, 2, 6, 8), custom(table))
    for kept in (record, record.with_row_lse()[0]):
        assert torch.equal(kept.weights() > 0, table)
        assert torch.equal(kept.weights(heads=[3, 1]) > 0, table[[3, 1]])
        assert torch.equal(kept.weights(heads=[2], rows=[5], keys=[1, 2]) > 0, table[2:3, 5:, 1:3])


@pytest.mark.parametrize("shape", [(4, 1, 6), (1, 6, 1), (6, 6), (6,), (1, 1, 1)])
def test_a_bias_broadcasts_as_it_does_in_attend(shape: tuple[int, ...]) -> None:
    bias = torch.randn(shape)
    record = Attention(torch.randn(4, 6, 8), *torch.randn(2, 2, 6, 8), bias=bias)
    expected = reference(record.query, record.key, record.value, bias=bias)
    close = {"atol": 1e-6, "rtol": 1e-5}
    np.testing.assert_allclose(record.steps().weights, expected.weights, **close)
    np.testing.assert_allclose(record.weights(), expected.weights, **close)
    np.testing.assert_allclose(record.output(), expected.output, **close)
    part = record.weights(heads=[2], rows=[1, 3], keys=[0, 5])
    np.testing.assert_allclose(part, expected.weights[np.ix_([2], [1, 3], [0, 5])], **close)


@pytest.mark.parametrize(
    "change",
    [
        {"scale": 1.0},
        {"scale": None},
        {"mask": sliding_window(2)},
        {"mask": None},
        {"bias": torch.full((1, 6, 6), 2.0).triu()},
        {"softcap": 0.5},
        {"sinks": torch.tensor([1.0, -1.0, 0.0])},
        {"value": torch.ones(3, 6, 2)},
        {"query": torch.ones(3, 6, 4)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_record_forgets_what_no_longer_holds(change: dict[str, Any]) -> None:
    record = Attention(*torch.randn(3, 3, 6, 4), causal(), scale=0.3).with_row_lse()[0]
    query = record.query.clone()
    changed = record.replace(**change)
    steps = changed.steps()
    torch.testing.assert_close(changed.weights(), steps.weights)
    torch.testing.assert_close(changed.weights(rows=[1, 4], keys=[0]), steps.weights[:, [1, 4], :1])
    torch.testing.assert_close(changed.output(), steps.output)
    # The record itself is as it was.
    assert record.scale == 0.3 and record.row_lse is not None
    assert torch.equal(record.query, query)


def test_without_a_scale_a_changed_record_has_one_over_the_root_of_d_k() -> None:
    record = Attention(*torch.randn(3, 1, 2, 16), scale=0.9)
    assert record.replace(scale=None).scale == 0.25


def test_the_row_sums_are_kept_where_only_the_value_changes() -> None:
    record = Attention(*torch.randn(3, 2, 4, 8)).with_row_lse()[0]
    assert record.replace(value=torch.zeros(2, 4, 1)).row_lse is record.row_lse
    assert record.replace(scale=1.0).row_lse is None


def test_a_record_cannot_be_changed_in_place() -> None:
    record = Attention(*torch.randn(3, 2, 4, 8))
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.scale = 1.0  # type: ignore[misc]


def test_reading_a_record_changes_nothing_in_it() -> None:
    record = Attention(*torch.randn(3, 2, 6, 8), causal(), bias=torch.randn(1, 6, 6))
    names = ("query", "key", "value", "bias")
    before = [getattr(record, name).clone() for name in names]
    for weights in (record.weights(), record.weights(rows=[0]), record.scores(), record.dots()):
        weights.zero_()
    record.output().zero_()
    record.with_row_lse()[1].zero_()
    assert all(torch.equal(getattr(record, n), b) for n, b in zip(names, before, strict=True))


@pytest.mark.parametrize("length", [20, 700])
def test_changing_a_later_token_leaves_earlier_outputs_exactly_as_they_were(length: int) -> None:
    """At 700 tokens the record works by blocks of rows and a head for each core."""
    tensors = torch.randn(3, 4, length, 16)
    changed = tensors.clone()
    at = length // 2
    changed[:, :, at] = torch.randn(3, 4, 16)
    first, second = (Attention(*t, causal()) for t in (tensors, changed))
    pairs: list[tuple[Tensor, Tensor]] = [
        (first.output(), second.output()),
        (first.weights(), second.weights()),
        (first.with_row_lse()[1], second.with_row_lse()[1]),
        (first.weights(rows=slice(0, at)), second.weights(rows=slice(0, at))),
    ]
    for before, after in pairs:
        assert torch.equal(before[:, :at], after[:, :at])
    assert not torch.equal(first.output()[:, at:], second.output()[:, at:])


def test_masked_rows_are_found_in_a_long_sequence_block_by_block() -> None:
    n = 3000  # more rows than one block of a mask
    record = Attention(*torch.zeros(3, 1, n, 1), causal() & padding(n - 7, "left"))
    assert record.masked_rows()[0].nonzero().flatten().tolist() == list(range(7))


@pytest.mark.parametrize("kept", [False, True])
def test_huge_scores_give_rows_that_sum_to_1_and_the_right_shares(kept: bool) -> None:
    """Scores of 110 000 − j: in float32 their log-sum-exp is rounded to 1/128, softmax is not."""
    query = torch.tensor([[[1000.0, 1.0]]])
    key = torch.tensor([[[110.0, -float(j)] for j in range(5)]])
    record = Attention(query, key, key, scale=1.0)
    record = record.with_row_lse()[0] if kept else record
    shares = [math.exp(-j) / sum(math.exp(-i) for i in range(5)) for j in range(5)]
    assert record.weights(rows=[0]).flatten().tolist() == pytest.approx(shares, rel=1e-6)
    assert record.weights().flatten().tolist() == pytest.approx(shares, rel=1e-6)
    one = record.weights(keys=[1]).item()
    assert one == pytest.approx(shares[1], rel=0.02)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_dots_beyond_its_range_give_finite_numbers(dtype: torch.dtype) -> None:
    tensors = (torch.randn(3, 2, 40, 64) * 100).to(dtype)
    assert Attention(*tensors).dots().max() > 65_504
    record = Attention(*tensors, causal())
    steps = record.steps()
    kept, fused = record.with_row_lse()
    for output in (record.output(), record.weights_and_output()[1], fused):
        assert output.dtype == dtype
        torch.testing.assert_close(output, steps.output, rtol=0.02, atol=2.0)
    for weights in (record.weights(), kept.weights(), record.weights(rows=slice(0, 40))):
        torch.testing.assert_close(weights, steps.weights, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 40))


def test_a_bias_in_half_precision_is_not_rounded_again() -> None:
    """−60 000 · log2(e) would overflow float16, and 10 · log2(e) be off by 0.004."""
    query, key = torch.zeros(1, 1, 2).half(), torch.zeros(1, 3, 2).half()
    bias = torch.tensor([[[10.0, 9.0, -60_000.0]]]).half()
    record = Attention(query, key, key, bias=bias)
    share = math.e / (1 + math.e)
    for weights in (record.weights(), record.weights(rows=[0])):
        assert weights.flatten().tolist() == pytest.approx([share, 1 - share, 0], rel=1e-6)
    only_far = record.replace(bias=torch.full((1, 1, 3), -60_000.0).half())
    assert only_far.weights().flatten().tolist() == pytest.approx([1 / 3] * 3)
