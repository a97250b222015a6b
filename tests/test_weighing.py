"""Other ways to weigh: worked by hand, and against writing every vector out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.attention import Attention
from explorer.capture import GivenWeights, capture, capture_inputs
from explorer.masks import causal
from explorer.models import load
from explorer.multihead import MultiHeadAttention
from explorer.weighing import (
    WAYS,
    average,
    missing,
    norm_based,
    rollout,
    shares,
    transformed_values,
    value_weighted,
)
from tests.small_models import SMALL_GROUPED, ids, small_model, tokens_of


@dataclass
class SmallStack:
    layers: list[Attention | GivenWeights]
    layer_numbers: tuple[int, ...]
    name: str = "encoder"

    @property
    def padded_queries(self) -> Tensor:
        return torch.zeros(self.layers[0].query_length, dtype=torch.bool)


def record(n_heads: int = 4, n_kv: int = 2, length: int = 5, d_out: int | None = 6) -> Attention:
    shapes = (n_heads, length, 3), (n_kv, length, 3), (n_kv, length, 4)
    W_O = None if d_out is None else torch.randn(n_heads, 4, d_out)
    return Attention(*(torch.randn(*shape) for shape in shapes), causal(), output_weight=W_O)


# By values


def test_a_long_value_counts_more_than_a_large_weight() -> None:
    # Weights ¾ and ¼ (scores log 3 and 0); values of length 1 and 5.
    one = Attention(
        torch.tensor([[[1.0]]]),
        torch.tensor([[[math.log(3)], [0.0]]]),
        torch.tensor([[[1.0, 0.0], [3.0, 4.0]]]),
        scale=1.0,
        output_weight=torch.tensor([[[2.0], [0.0]]]),
    )
    assert value_weighted(one)[0, 0].tolist() == pytest.approx([0.75, 1.25])
    # W_O keeps twice the first number: 2 and 6.
    assert norm_based(one)[0, 0].tolist() == pytest.approx([1.5, 1.5])
    assert shares(value_weighted(one))[0, 0].tolist() == pytest.approx([0.375, 0.625])


@given(seed=st.integers(0, 99), group=st.sampled_from([1, 2, 4]))
def test_norms_are_those_of_every_vector_written_out(seed: int, group: int) -> None:
    torch.manual_seed(seed)
    layer = record(4, 4 // group)
    assert layer.output_weight is not None
    weights = layer.weights()
    values, norms = value_weighted(layer), norm_based(layer)
    for head in range(4):
        for row in range(5):
            for key in range(5):
                vector = weights[head, row, key] * layer.value[head // group, key]
                arrived = vector @ layer.output_weight[head]
                assert float(values[head, row, key]) == pytest.approx(
                    float(vector.norm()), abs=1e-5
                )
                assert float(norms[head, row, key]) == pytest.approx(
                    float(arrived.norm()), abs=1e-5
                )


def test_some_heads_and_rows_are_those_of_all() -> None:
    layer = record()
    for way in WAYS:
        every = way.weigh(layer, None, None)
        torch.testing.assert_close(way.weigh(layer, [3, 0], [4, 1]), every[[3, 0]][:, [4, 1]])


def test_transformed_values_add_up_to_the_layers_output() -> None:
    torch.manual_seed(3)
    module, x = MultiHeadAttention(12, 3), torch.randn(7, 12)
    layer = module.attention(x, mask=causal())
    parts = torch.einsum("hqk,hkd->qd", layer.weights(), transformed_values(layer))
    torch.testing.assert_close(parts, module(x, mask=causal()), atol=1e-5, rtol=1e-5)


def test_transformed_values_of_real_models_add_up_to_what_their_layers_give() -> None:
    minilm = load("minilm", device="cpu")
    given: dict[int, Tensor] = {}
    hooks = [
        layer.attention.output.dense.register_forward_hook(
            lambda module, inputs, output, number=number: given.update({number: output[0]})
        )
        for number, layer in enumerate(minilm.model.encoder.layer)
    ]
    stack = capture(minilm, "The cat sat on the mat.").stacks["encoder"]
    for hook in hooks:
        hook.remove()
    for number, layer in enumerate(stack.layers):
        assert isinstance(layer, Attention) and layer.output_bias is not None
        parts = torch.einsum("hqk,hkd->qd", layer.weights(), transformed_values(layer))
        torch.testing.assert_close(parts + layer.output_bias, given[number], atol=1e-5, rtol=1e-4)


def test_a_small_llama_can_be_weighed_every_way() -> None:
    model = small_model("llama", SMALL_GROUPED)
    row = ids(1, 6)
    inputs = {"input_ids": row, "attention_mask": torch.ones_like(row)}
    stack = capture_inputs(model, inputs, tokens_of(inputs["attention_mask"]))[0].stacks["decoder"]
    for layer in stack.layers:
        for way in WAYS:
            assert missing(layer, way) is None
            assert isinstance(layer, Attention)
            found = way.weigh(layer, None, None)
            assert found.shape == (4, 6, 6) and not bool(found.triu(1).any())


def test_what_a_layer_lacks_is_said() -> None:
    given = GivenWeights(torch.full((1, 2, 2), 0.5))
    without = record(d_out=None)
    assert [missing(given, way) is None for way in WAYS] == [True, False, False]
    assert [missing(without, way) is None for way in WAYS] == [True, True, False]
    with pytest.raises(ValueError, match="W_O is not known"):
        norm_based(without)


def test_each_way_says_what_it_is() -> None:
    for way in WAYS:
        assert way.title and way.unit and way.source and way.meaning.endswith(".")
    assert len({way.name for way in WAYS}) == len(WAYS)


def test_rows_of_zeros_stay_zeros_as_shares() -> None:
    assert shares(torch.tensor([[0.0, 0.0], [1.0, 3.0]])).tolist() == [[0, 0], [0.25, 0.75]]


# Over heads and layers


def given_stack(*layers: list[list[list[float]]]) -> SmallStack:
    return SmallStack([GivenWeights(torch.tensor(each)) for each in layers], (0, 2)[: len(layers)])


FIRST = [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
SECOND = [[[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]]]


def test_an_average_over_heads_of_several_layers() -> None:
    stack = given_stack(FIRST, SECOND)
    found = average(stack, [(0, 0), (0, 1), (2, 0)])
    expected = [[2.5 / 3, 0.5 / 3], [1 / 3, 2 / 3]]
    torch.testing.assert_close(found, torch.tensor(expected))
    torch.testing.assert_close(average(stack, [(2, 1)], rows=[1]), torch.tensor([[0.0, 1.0]]))
    with pytest.raises(ValueError, match="at least one head"):
        average(stack, [])


def test_rollout_of_two_layers_by_hand() -> None:
    # Means over heads: ((1, 0), (½, ½)) and ((½, ½), (0, 1)); with half of the identity:
    # ((1, 0), (¼, ¾)) and ((¾, ¼), (0, 1)). Second · first:
    # ¾ · (1, 0) + ¼ · (¼, ¾) = (13/16, 3/16), and (¼, ¾).
    found = rollout(given_stack(FIRST, SECOND))
    expected = torch.tensor([[13 / 16, 3 / 16], [0.25, 0.75]], dtype=torch.float64)
    torch.testing.assert_close(found, expected)


def test_rollout_up_to_a_layer_and_by_chosen_heads() -> None:
    stack = given_stack(FIRST, SECOND)
    first = torch.tensor([[1.0, 0.0], [0.25, 0.75]], dtype=torch.float64)
    torch.testing.assert_close(rollout(stack, last=0), first)
    identity = torch.eye(2, dtype=torch.float64)
    torch.testing.assert_close(rollout(stack, last=0, heads=[1]), identity)
    torch.testing.assert_close(rollout(stack, residual=1), identity)


def test_rollout_without_the_residual_is_the_product_of_the_weights() -> None:
    a, b = (torch.tensor(each).double().mean(0) for each in (FIRST, SECOND))
    torch.testing.assert_close(rollout(given_stack(FIRST, SECOND), residual=0), b @ a)


def test_rows_of_a_rollout_sum_to_1_also_with_sinks_and_rows_without_keys() -> None:
    minilm = load("minilm", device="cpu")
    stack = capture(minilm, "The cat sat on the mat.").stacks["encoder"]
    sums = rollout(stack).sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-12, rtol=0)
    lacking = given_stack([[[0.5, 0.2], [0.0, 0.0]]], [[[0.1, 0.1], [0.5, 0.5]]])
    found = rollout(lacking, residual=0.5)
    torch.testing.assert_close(found.sum(-1), torch.ones(2, dtype=torch.float64))
    assert bool((found >= 0).all())


def test_a_rollout_of_a_decoder_never_looks_ahead() -> None:
    stack = SmallStack([record(), record()], (0, 1))
    assert not bool(rollout(stack).triu(1).any())


def test_rollout_refuses_what_it_cannot_do() -> None:
    stack = given_stack(FIRST, SECOND)
    with pytest.raises(ValueError, match=r"layers are \[0, 2\]"):
        rollout(stack, last=1)
    with pytest.raises(ValueError, match="a share, from 0 to 1"):
        rollout(stack, residual=2)
    with pytest.raises(ValueError, match="queries and keys differ"):
        rollout(SmallStack([GivenWeights(torch.rand(1, 2, 3))], (0,)))
