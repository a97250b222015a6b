"""One cell's arithmetic: worked by hand, and equal to the cells of attention's own tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from explorer.arithmetic import cell, concatenated, joined, joined_number, output, projected
from explorer.attention import Attention
from explorer.masks import Mask, causal, custom
from explorer.multihead import MultiHeadAttention

RARE = {
    "plain": {},
    "causal": {"mask": causal()},
    "scale": {"scale": 1.7},
    "softcap": {"softcap": 2.0},
    "bias": {"bias": torch.linspace(-1, 1, 2 * 5 * 5).reshape(2, 5, 5)},
    "sinks": {"sinks": torch.tensor([0.5, -2.0])},
    "all": {
        "mask": causal(),
        "scale": 0.9,
        "softcap": 1.5,
        "bias": torch.linspace(-2, 2, 2 * 5 * 5).reshape(2, 5, 5),
        "sinks": torch.tensor([3.0, 0.1]),
    },
}


def record(**more: object) -> Attention:
    query, key, value = torch.randn(2, 5, 3), torch.randn(1, 5, 3), torch.randn(1, 5, 4)
    return Attention(query, key, value, **more)  # type: ignore[arg-type]


def test_a_cell_by_hand() -> None:
    """q = (0, 2), k = (1, 1), (2, 0), (0, 3): dots 2, 0, 6, divided by √2, shifted by 6/√2."""
    query = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    key = torch.tensor([[[1.0, 1.0], [2.0, 0.0], [0.0, 3.0]]])
    found = cell(Attention(query, key, key), 0, 1, 0)
    assert found.dot.terms.tolist() == [0, 2]
    assert found.dot.total == 2
    assert found.scale == pytest.approx(1 / math.sqrt(2))
    for same in (found.scaled, found.capped, found.score, found.masked_score):
        assert same == pytest.approx(math.sqrt(2))
    assert found.row_max == pytest.approx(6 / math.sqrt(2))
    assert found.shifted == pytest.approx(-4 / math.sqrt(2))
    assert found.exponential == pytest.approx(math.exp(-4 / math.sqrt(2)))
    total = math.exp(-4 / math.sqrt(2)) + math.exp(-6 / math.sqrt(2)) + 1
    assert found.row_sum == pytest.approx(total)
    assert found.weight == pytest.approx(math.exp(-4 / math.sqrt(2)) / total)


@pytest.mark.parametrize("rare", RARE)
def test_every_number_is_the_tables_cell(rare: str) -> None:
    attention = record(**RARE[rare])
    steps = attention.steps()
    for head, row, key in np.ndindex(2, 5, 5):
        found = cell(attention, head, row, key)
        at = (head, row, key)
        for number, table in (
            (found.dot.total, steps.dots),
            (found.score, steps.scores),
            (found.masked_score, steps.masked_scores),
            (found.weight, steps.weights),
        ):
            assert number == pytest.approx(float(table[at]), abs=1e-6)


@pytest.mark.parametrize("rare", RARE)
def test_each_step_follows_from_the_one_before(rare: str) -> None:
    attention = record(**RARE[rare])
    for row, key in np.ndindex(5, 5):
        found = cell(attention, 1, row, key)
        near = {"rel": 1e-5, "abs": 1e-6}
        assert float(found.dot.terms.sum()) == pytest.approx(found.dot.total, **near)
        assert found.dot.total * found.scale == pytest.approx(found.scaled, **near)
        if found.softcap is not None:
            capped = found.softcap * math.tanh(found.scaled / found.softcap)
            assert found.capped == pytest.approx(capped, **near)
        else:
            assert found.capped == found.scaled
        assert found.capped + (found.bias or 0.0) == pytest.approx(found.score, **near)
        assert found.masked_score == (found.score if found.allowed else -math.inf)
        assert found.shifted == pytest.approx(found.masked_score - found.row_max, **near)
        assert found.exponential == pytest.approx(math.exp(found.shifted), **near)
        total = sum(found.row_exponentials) + found.sink_exponential
        assert found.row_sum == pytest.approx(total, **near)
        assert found.weight == pytest.approx(found.exponential / found.row_sum, **near)


def test_a_forbidden_key_has_minus_infinity_and_no_weight() -> None:
    found = cell(record(mask=causal()), 0, 1, 3)
    assert not found.allowed
    assert (found.masked_score, found.shifted) == (-math.inf, -math.inf)
    assert (found.exponential, found.weight) == (0, 0)
    assert math.isfinite(found.score)


def test_a_sink_takes_its_share_of_the_row_and_gives_it_to_no_key() -> None:
    """Scores 0 and 0 and a sink of log 2: exponentials 1, 1, 2, so weights ¼, ¼ and ½ lost."""
    zeros = torch.zeros(1, 1, 2)
    keys = torch.zeros(1, 2, 2)
    found = cell(Attention(zeros, keys, keys, sinks=torch.tensor([math.log(2)])), 0, 0, 0)
    assert found.row_max == pytest.approx(math.log(2))
    assert found.sink_exponential == pytest.approx(1)
    assert found.weight == pytest.approx(1 / 4)


@pytest.mark.parametrize("sinks", [None, torch.tensor([1.0, 1.0])])
@pytest.mark.parametrize("on_masked_row", ["error", "zero"])
def test_a_row_without_a_key_is_zeros_and_says_so(
    sinks: torch.Tensor | None, on_masked_row: str
) -> None:
    mask: Mask = custom(torch.tensor([[False] * 5] + [[True] * 5] * 4))
    attention = record(mask=mask, sinks=sinks, on_masked_row=on_masked_row)
    found = cell(attention, 0, 0, 2)
    assert found.masked_row
    assert found.row_max == -math.inf
    assert (found.exponential, found.row_sum, found.weight) == (0, 0, 0)
    assert output(attention, 0, 0, 1).total == 0
    assert not cell(attention, 0, 1, 2).masked_row


@pytest.mark.parametrize("place", [(2, 0, 0), (0, 5, 0), (0, 0, 5), (0, -1, 0)])
def test_a_place_that_is_not_there_is_refused(place: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="positions run from 0"):
        cell(record(), *place)
    with pytest.raises(ValueError, match="dimension: got 4"):
        output(record(), 0, 0, 4)


def test_subtracting_the_maximum_changes_no_weight() -> None:
    """softmax(s) = softmax(s − c): here against NumPy without the subtraction."""
    attention = record()
    scores = attention.scores()[0, 2].numpy().astype(np.float64)
    plain = np.exp(scores) / np.exp(scores).sum()
    found = [cell(attention, 0, 2, key).weight for key in range(5)]
    np.testing.assert_allclose(found, plain, rtol=1e-5)


def test_scores_past_what_an_exponential_holds_still_have_weights() -> None:
    huge = torch.tensor([[[1e4]]])
    found = cell(Attention(huge, torch.tensor([[[1.0], [0.0]]]), torch.ones(1, 2, 1)), 0, 0, 0)
    assert found.scaled == 1e4
    assert (found.exponential, found.row_sum, found.weight) == (1, 1, 1)


def test_an_output_is_each_weight_times_its_value() -> None:
    attention = record(mask=causal())
    steps = attention.steps()
    for head, row, dimension in np.ndindex(2, 5, 4):
        found = output(attention, head, row, dimension)
        assert found.first.tolist() == pytest.approx(steps.weights[head, row].tolist(), abs=1e-6)
        assert found.second.tolist() == attention.value[0, :, dimension].tolist()
        assert float(found.terms.sum()) == pytest.approx(found.total, abs=1e-5)
        assert found.total == pytest.approx(float(steps.output[head, row, dimension]), abs=1e-5)


def test_an_output_lies_between_the_smallest_and_the_largest_value() -> None:
    attention = record(mask=causal())
    for row, dimension in np.ndindex(5, 4):
        seen = attention.value[0, : row + 1, dimension]
        found = output(attention, 1, row, dimension).total
        assert float(seen.min()) - 1e-6 <= found <= float(seen.max()) + 1e-6


def test_heads_side_by_side_and_joined_are_the_layers_own_output() -> None:
    layer = MultiHeadAttention(8, 2, seed=1)
    x = torch.randn(5, 8)
    attention = layer.attention(x)
    side = concatenated(attention)
    assert side.shape == (5, 8)
    assert side[3, :4].tolist() == pytest.approx(attention.output()[0, 3].tolist())
    assert side[3, 4:].tolist() == pytest.approx(attention.output()[1, 3].tolist())
    with torch.no_grad():
        whole = layer(x)
    torch.testing.assert_close(joined(attention), whole)
    found = joined_number(attention, 3, 6)
    assert len(found.first) == 8
    assert float(found.terms.sum()) == pytest.approx(found.total, abs=1e-5)
    assert found.total == pytest.approx(float(whole[3, 6]), abs=1e-5)


def test_a_bias_after_w_o_is_one_more_term() -> None:
    record = MultiHeadAttention(8, 2, seed=1).attention(torch.randn(5, 8))
    bias = torch.arange(8.0)
    found = joined_number(record.replace(output_bias=bias), 3, 6)
    assert found.bias == 6
    assert float(found.terms.sum()) + 6 == pytest.approx(found.total, abs=1e-5)
    with pytest.raises(ValueError, match="no W_O"):
        joined_number(record.replace(output_weight=None), 3, 6)


def test_a_number_of_a_query_is_a_row_of_x_on_a_column_of_w_q() -> None:
    layer = MultiHeadAttention(8, 2, seed=1)
    x = torch.randn(5, 8)
    attention = layer.attention(x)
    found = projected(x, layer.W_Q, 2, 1 * 4 + 3)  # head 1, dimension 3
    assert float(found.terms.sum()) == pytest.approx(found.total, abs=1e-5)
    assert found.total == pytest.approx(float(attention.query[1, 2, 3]), abs=1e-5)
