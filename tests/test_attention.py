"""Attention step by step: cases worked by hand, and what must always hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.attention import Attention, attend
from explorer.masks import causal, custom
from tests.reference import Example, examples


def one_head(rows: list[list[float]]) -> Tensor:
    """One head in float64: a row for each position."""
    return torch.tensor([rows], dtype=torch.float64)


def test_dots_are_the_products_worked_by_hand() -> None:
    query = one_head([[1, 0], [0, 2]])
    key = one_head([[1, 1], [2, 0], [0, 3]])
    steps = attend(query, key, key)
    assert steps.dots.tolist() == [[[1, 2, 0], [2, 0, 6]]]
    torch.testing.assert_close(steps.scores, steps.dots / math.sqrt(2), rtol=1e-15, atol=0)


@pytest.mark.parametrize("swapped", [False, True])
def test_scores_log_3_and_0_give_three_quarters_and_one_quarter(swapped: bool) -> None:
    keys = [[math.log(3)], [0.0]]
    key = one_head(keys[::-1] if swapped else keys)
    steps = attend(one_head([[1]]), key, one_head([[2], [6]]))  # d_k = 1, so the scale is 1
    shares = [0.25, 0.75] if swapped else [0.75, 0.25]
    assert steps.weights.flatten().tolist() == pytest.approx(shares, abs=1e-15)
    assert steps.output.item() == pytest.approx(5.0 if swapped else 3.0, abs=1e-14)


def test_equal_scores_give_equal_weights() -> None:
    steps = attend(one_head([[3, -1]]), one_head([[2, 5]] * 5), one_head([[0], [1], [2], [3], [4]]))
    assert steps.weights.flatten().tolist() == pytest.approx([0.2] * 5, abs=1e-16)
    assert steps.output.item() == pytest.approx(2.0)


def test_adding_a_constant_to_a_row_of_scores_changes_nothing() -> None:
    query, key = torch.randn(2, 2, 3, 4, dtype=torch.float64).unbind(0)
    row = torch.tensor([[[-70.0], [0.5], [300.0]]], dtype=torch.float64)  # one for each query
    plain, moved = attend(query, key, key), attend(query, key, key, bias=row)
    assert not torch.equal(plain.scores, moved.scores)
    torch.testing.assert_close(moved.weights, plain.weights, rtol=1e-12, atol=1e-15)


def test_a_score_of_0_still_gets_weight_where_minus_infinity_gets_none() -> None:
    """exp(0) is 1: writing 0 into the scores is no mask."""
    query, key, value = one_head([[1]]), one_head([[math.log(3)], [0.0]]), one_head([[1], [1]])
    zeroed = attend(query, key, value)
    masked = attend(query, key, value, custom([[True, False]]))
    assert zeroed.scores[0, 0, 1] == 0
    assert zeroed.weights[0, 0].tolist() == pytest.approx([0.75, 0.25])
    assert masked.weights[0, 0].tolist() == [1.0, 0.0]
    assert masked.scores[0, 0, 1] == 0  # before the mask
    assert masked.masked_scores[0, 0, 1] == -math.inf


def test_the_scale_is_one_over_the_root_of_d_k_unless_given() -> None:
    query, key = torch.randn(2, 1, 3, 16).unbind(0)
    torch.testing.assert_close(attend(query, key, key).scores, attend(query, key, key).dots / 4)
    given_scale = attend(query, key, key, scale=1.0)
    assert torch.equal(given_scale.scores, given_scale.dots)


def test_a_soft_cap_bends_the_scores_and_a_bias_comes_after_it() -> None:
    bias = torch.tensor([[[10.0]]], dtype=torch.float64)
    steps = attend(one_head([[6]]), one_head([[1]]), one_head([[1]]), softcap=3.0, bias=bias)
    assert steps.scores.item() == pytest.approx(3 * math.tanh(2) + 10)


def test_a_sink_takes_the_share_that_a_row_lacks() -> None:
    """Scores 0, 0 and a sink of log 2 have shares 1/4, 1/4 and 1/2."""
    sinks = torch.tensor([math.log(2)], dtype=torch.float64)
    steps = attend(one_head([[0]]), one_head([[1], [1]]), one_head([[4], [8]]), sinks=sinks)
    assert steps.weights.flatten().tolist() == pytest.approx([0.25, 0.25])
    assert steps.output.item() == pytest.approx(3.0)


def test_a_query_head_uses_the_key_value_head_of_its_group() -> None:
    """Four query heads on two key/value heads: 0 and 1 read the first, 2 and 3 the second."""
    value = torch.tensor([[[1.0]], [[2.0]]])
    query, key = torch.ones(4, 1, 3), torch.ones(2, 1, 3)
    assert attend(query, key, value).output.flatten().tolist() == [1, 1, 2, 2]
    assert Attention(query, key, value).output().flatten().tolist() == [1, 1, 2, 2]


def test_rows_of_a_causal_mask_have_one_key_then_two() -> None:
    ones = torch.ones(1, 3, 2)
    expected = [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(attend(ones, ones, ones, causal()).weights[0], expected, rtol=1e-6)


@pytest.mark.parametrize("group", [1, 2])
def test_changing_a_later_token_leaves_earlier_outputs_exactly_as_they_were(group: int) -> None:
    query, key, value = torch.randn(4, 20, 8), *torch.randn(2, 4 // group, 20, 8).unbind(0)
    changed = [t.clone() for t in (query, key, value)]
    for tensor in changed:
        tensor[:, 12] = torch.randn(8)
    before, after = attend(query, key, value, causal()), attend(*changed, causal())
    assert torch.equal(before.output[:, :12], after.output[:, :12])
    assert torch.equal(before.weights[:, :12], after.weights[:, :12])
    assert not torch.equal(before.output[:, 12:], after.output[:, 12:])


@given(examples(leads=((), (1,), (2,), (2, 3))))
def test_every_step_equals_the_reference(example: Example) -> None:
    query, key, value, mask, allowed, terms = example
    steps = attend(query, key, value, mask, on_masked_row="zero", **terms)
    expected, tolerance = example.expected(), example.tolerance()
    scale = terms.get("scale", query.shape[-1] ** -0.5)
    np.testing.assert_allclose(steps.dots, expected.dots, atol=tolerance / abs(scale), rtol=0)
    np.testing.assert_allclose(steps.scores, expected.scores, atol=tolerance, rtol=0)
    np.testing.assert_allclose(steps.weights, expected.weights, atol=tolerance, rtol=0)
    np.testing.assert_allclose(
        steps.output.double(), expected.output, atol=example.output_tolerance(), rtol=0
    )
    everywhere = np.broadcast_to(allowed, expected.scores.shape)
    assert torch.equal(steps.masked_scores == -torch.inf, torch.tensor(~everywhere))
    assert torch.equal(steps.masked_rows, torch.tensor(~everywhere.any(-1)))
    assert steps.output.dtype == value.dtype
    assert steps.weights.dtype == torch.promote_types(query.dtype, torch.float32)


@given(examples(leads=((), (2,))))
def test_rows_sum_to_1_with_the_sink_and_forbidden_keys_have_exactly_nothing(
    example: Example,
) -> None:
    query, key, value, mask, allowed, terms = example
    steps = attend(query, key, value, mask, on_masked_row="zero", **terms)
    everywhere = torch.tensor(np.broadcast_to(allowed, steps.weights.shape))
    assert (steps.weights[~everywhere] == 0).all()
    assert (steps.weights >= 0).all()
    total = steps.weights.double().sum(-1)
    if "sinks" in terms:
        lse = torch.logsumexp(steps.masked_scores.double(), -1)
        sink = terms["sinks"].double()[:, None]
        total = total + torch.exp(sink - torch.logaddexp(lse, sink))
    live = ~steps.masked_rows
    np.testing.assert_allclose(total[live], 1.0, atol=example.tolerance(), rtol=0)
    assert (steps.weights[steps.masked_rows] == 0).all()
    assert (steps.output[steps.masked_rows] == 0).all()


@given(examples(dtypes=(torch.float64, torch.float32)))
def test_every_output_coordinate_lies_between_the_smallest_and_largest_value(
    example: Example,
) -> None:
    query, key, value, mask, _, terms = example
    terms.pop("sinks", None)  # with a sink the weights sum to less than 1
    steps = attend(query, key, value, mask, on_masked_row="zero", **terms)
    values = value.repeat_interleave(query.shape[0] // key.shape[0], 0)
    slack = 1e-5 * float(value.abs().max())
    low, high = values.amin(-2, keepdim=True) - slack, values.amax(-2, keepdim=True) + slack
    inside = (steps.output >= low) & (steps.output <= high)
    assert inside[~steps.masked_rows].all()


@given(examples(dtypes=(torch.float64,), terms=False), st.data())
def test_permuting_the_keys_permutes_the_columns(example: Example, data: st.DataObject) -> None:
    query, key, value, _, allowed, _ = example
    order = torch.tensor(data.draw(st.permutations(range(key.shape[-2]))))
    table = torch.from_numpy(allowed)
    plain = attend(query, key, value, table, on_masked_row="zero")
    moved = attend(
        query, key[..., order, :], value[..., order, :], table[:, order], on_masked_row="zero"
    )
    torch.testing.assert_close(moved.weights, plain.weights[..., order], rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(moved.output, plain.output, rtol=1e-10, atol=1e-12)


def test_a_mask_may_be_any_tensor_that_broadcasts_to_the_scores() -> None:
    query, key, value = torch.randn(3, 2, 3, 4, 5).unbind(0)  # batch 2, 3 heads, 4 positions
    for shape in [(4,), (4, 4), (3, 1, 4), (2, 1, 1, 4), (2, 3, 4, 4)]:
        mask = torch.rand(shape) < 0.5
        mask[..., 0] = True
        weights = attend(query, key, value, mask).weights
        assert torch.equal(weights > 0, mask.expand(2, 3, 4, 4))


def test_scores_of_a_hundred_thousand_neither_overflow_nor_lose_the_differences() -> None:
    """Real scores reach −110 000. Here they are ±(110 000 − j), exact in float32."""
    for sign in (1.0, -1.0):
        query = torch.tensor([[[1000.0 * sign, 1.0]]])
        key = torch.tensor([[[110.0, -float(j)] for j in range(5)]])
        steps = attend(query, key, key, scale=1.0)
        assert steps.scores.flatten().tolist() == [110_000.0 * sign - j for j in range(5)]
        shares = [math.exp(-j) / sum(math.exp(-i) for i in range(5)) for j in range(5)]
        assert steps.weights.flatten().tolist() == pytest.approx(shares, rel=1e-6)


def test_no_score_is_so_low_that_a_forbidden_key_gets_weight() -> None:
    """Scores of −10¹⁰: a large negative number in place of −∞ would win the row."""
    query, key = torch.tensor([[[1e5]]]), torch.tensor([[[-1e5], [-1e5], [-1e5]]])
    mask = custom([[True, True, False]])
    assert attend(query, key, key, mask).weights.flatten().tolist() == [0.5, 0.5, 0]
    record = Attention(query, key, key, mask)
    assert record.weights().flatten().tolist() == [0.5, 0.5, 0]
    assert record.weights(rows=[0]).flatten().tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_dots_beyond_its_range_are_finite(dtype: torch.dtype) -> None:
    """64 · 200 · 200 is 2 560 000, and float16 ends at 65 504."""
    query = torch.full((1, 2, 64), 200.0, dtype=dtype)
    steps = attend(query, query, query)
    assert (steps.dots == 2_560_000).all()
    assert (steps.weights == 0.5).all()
    assert (steps.output == 200).all() and steps.output.dtype == dtype


def test_a_gradient_flows_to_every_input_and_stops_at_forbidden_keys() -> None:
    query, key, value = (torch.randn(1, 4, 3, requires_grad=True) for _ in range(3))
    attend(query, key, value, causal()).output[:, :2].sum().backward()  # of the first two rows
    for tensor, used in ((query, 2), (key, 2), (value, 2)):
        assert tensor.grad is not None
        assert (tensor.grad[:, used:] == 0).all()
        assert tensor.grad[:, 1].abs().sum() > 0
