"""Our functions as transformers calls them: when they record, and what becomes of its masks."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.masking_utils import (
    and_masks,
    bidirectional_mask_function,
    causal_mask_function,
    chunked_causal_mask_function,
    packed_sequence_mask_function,
    sdpa_mask,
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)

from explorer import interface
from explorer.model_masks import CannotStandIn, ModelMask
from tests.small_models import SMALL, padded, small_model


def model_mask(function: Any, real: list[list[int]] | None = None, **others: Any) -> ModelMask:
    """What our mask function makes of a call by transformers."""
    attention_mask = None if real is None else torch.tensor(real, dtype=torch.bool)
    made = interface._mask(mask_function=function, attention_mask=attention_mask, **others)
    assert isinstance(made, ModelMask)
    return made


def written(mask: ModelMask, n: int, number: int = 0) -> list[list[int]]:
    """The mask of one sequence, written out."""
    rule = mask.sequence(number, n, n)
    assert rule is not None
    return rule.block(n, n).expand(n, n).int().tolist()


# What is recorded


def test_nothing_is_recorded_outside_a_recording() -> None:
    model = small_model("bert", SMALL, "sdpa")
    inputs = padded((4, 6), "right")
    assert interface.use_own_attention(model)
    with torch.no_grad():
        model(**inputs)
        with interface.recording(model) as recorded:
            assert recorded.calls == []
            model(**inputs)
        model(**inputs)
    assert [len(call.attentions) for call in recorded.calls] == [2, 2]
    assert [type(call.module).__name__ for call in recorded.calls] == ["BertSelfAttention"] * 2


def test_an_inner_recording_leaves_the_outer_one_alone() -> None:
    model = small_model("bert", SMALL, "sdpa")
    interface.use_own_attention(model)
    with torch.no_grad(), interface.recording(model) as outer:
        with interface.recording(model) as inner:
            model(**padded((3,), "right"))
        assert (len(inner.calls), len(outer.calls)) == (2, 0)
        model(**padded((3,), "right"))
    assert (len(inner.calls), len(outer.calls)) == (2, 2)


def test_a_recording_ends_when_the_model_fails() -> None:
    model = small_model("bert", SMALL, "sdpa")
    interface.use_own_attention(model)
    with pytest.raises(IndexError), interface.recording(model) as recorded:
        model(input_ids=torch.tensor([[999]]))  # no such word
    with torch.no_grad():
        model(**padded((3,), "right"))
    assert recorded.calls == []


def test_a_model_is_switched_once_and_stays_switched() -> None:
    model = small_model("bert", SMALL, "sdpa")
    assert interface.use_own_attention(model) and interface.use_own_attention(model)
    assert model.config._attn_implementation == "explorer"


def test_a_model_with_code_of_its_own_is_left_to_it() -> None:
    model = small_model("falcon", {**SMALL, "multi_query": True}, "sdpa")
    assert not interface.use_own_attention(model)
    assert model.config._attn_implementation == "sdpa"


def test_a_model_switched_to_eager_attention_is_not_switched_again() -> None:
    model = small_model("bert", SMALL, "sdpa")
    assert interface.use_own_attention(model)
    interface.use_eager_attention(model)
    assert not interface.use_own_attention(model)
    assert model.config._attn_implementation == "eager"


# Masks that transformers hands over as rules


def test_a_rule_of_transformers_becomes_one_of_ours_by_name() -> None:
    assert model_mask(bidirectional_mask_function).sequence(0, 5, 5) is None
    names = {
        "causal": causal_mask_function,
        "sliding window of 2": sliding_window_causal_mask_function(2),
        "sliding window of 2 on either side": sliding_window_bidirectional_mask_function(2),
    }
    for name, function in names.items():
        rule = model_mask(function).sequence(0, 5, 5)
        assert rule is not None and rule.name == name


def test_a_sliding_window_of_2_leaves_each_row_its_own_key_and_one_before() -> None:
    mask = model_mask(sliding_window_causal_mask_function(2))
    assert written(mask, 4) == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


def test_a_window_of_1_on_either_side_leaves_three_keys() -> None:
    mask = model_mask(sliding_window_bidirectional_mask_function(1))
    assert written(mask, 4) == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    rule = mask.sequence(0, 4, 4)
    assert rule is not None and [rule.key_range(q, q, 4, 4) for q in (0, 2)] == [(0, 2), (1, 4)]


def test_padding_goes_with_its_sequence_and_not_where_there_is_none() -> None:
    mask = model_mask(causal_mask_function, [[0, 1, 1], [1, 1, 1]])
    assert written(mask, 3, 0) == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert written(mask, 3, 1) == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    names = [rule.name for n in (0, 1) if (rule := mask.sequence(n, 3, 3)) is not None]
    assert names == ["(causal and padding)", "causal"]
    assert model_mask(bidirectional_mask_function, [[1, 1, 1]]).sequence(0, 3, 3) is None


def test_fewer_queries_than_keys_are_the_last_ones_as_with_a_cache() -> None:
    rule = model_mask(causal_mask_function, q_offset=3).sequence(0, 2, 5)
    assert rule is not None and rule.name == "causal"
    assert rule.block(2, 5).int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_queries_that_are_not_the_last_keep_the_models_own_rule() -> None:
    rule = model_mask(causal_mask_function).sequence(0, 2, 5)
    assert rule is not None and rule.name == "the model's own mask"
    assert rule.block(2, 5).int().tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]


def test_another_rule_is_asked_for_the_chosen_cells_only() -> None:
    asked: list[tuple[int, ...]] = []
    chunks = chunked_causal_mask_function(2, torch.tensor([0, 1]))

    def watched(batch: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        asked.append(tuple(torch.broadcast_shapes(q.shape, k.shape)))
        return chunks(batch, head, q, k)

    mask = model_mask(watched)
    assert written(mask, 4, 0) == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    assert written(mask, 4, 1) == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    asked.clear()
    rule = mask.sequence(1, 1000, 1000)
    assert rule is not None
    assert rule.block(1000, 1000, rows=[4], keys=[2, 3, 4]).int().tolist() == [[0, 1, 1]]
    assert asked == [(1, 3)]


def test_positions_that_do_not_begin_at_0_are_the_models_own() -> None:
    chunks = chunked_causal_mask_function(3, torch.tensor([0]))
    rule = model_mask(chunks, q_offset=2).sequence(0, 2, 4)
    assert rule is not None
    assert rule.block(2, 4).int().tolist() == [[1, 1, 1, 0], [0, 0, 0, 1]]


def test_two_texts_in_one_sequence_do_not_see_each_other() -> None:
    texts = torch.tensor([[0, 0, 1, 1]])
    mask = model_mask(and_masks(causal_mask_function, packed_sequence_mask_function(texts)))
    assert written(mask, 4) == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]


def test_a_rule_written_for_single_cells_is_that_of_transformers_own_table() -> None:
    is_image = torch.tensor([[0, 1, 1, 0, 0, 1], [1, 1, 0, 0, 0, 0]], dtype=torch.bool)

    def image_sees_image(batch: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return is_image[batch, q] & is_image[batch][k] | (k <= q)

    mask = model_mask(image_sees_image, use_vmap=True)
    table = sdpa_mask(
        2, 6, 6, mask_function=image_sees_image, use_vmap=True, allow_is_causal_skip=False
    )
    assert table is not None
    for number in range(2):
        rule = mask.sequence(number, 6, 6)
        assert rule is not None
        assert torch.equal(rule.block(6, 6), table[number, 0])
        assert torch.equal(rule.block(6, 6, [4, 1], [0, 5]), table[number, 0][[4, 1]][:, [0, 5]])


def test_a_model_that_works_on_its_mask_is_told_from_one_that_hands_it_on() -> None:
    mask = model_mask(causal_mask_function)
    for use in (
        lambda: mask.dtype,
        lambda: mask[:, :, :2],
        lambda: torch.zeros(1, 1, 2, 2) + mask,
        lambda: mask + torch.zeros(1, 1, 2, 2),
        lambda: torch.where(mask, 0.0, 1.0),
    ):
        with pytest.raises(CannotStandIn):
            use()
    assert not hasattr(mask, "__array__")


# Masks that a model has written out by itself


def module(**settings: Any) -> nn.Module:
    """A module with these attributes, as a model's attention has them."""
    made = nn.Module()
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def called(
    mask: Tensor | None, caller: nn.Module | None = None, **terms: Any
) -> tuple[Tensor, Any]:
    """The output for two sequences of 3 tokens, and the records of them."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 4, 3, 8, generator=generator) for _ in range(3))
    with interface.recording(small_model("bert", SMALL)) as recorded:
        output, weights = interface._attention(
            caller or module(is_causal=False), q, k, v, mask, **terms
        )
    assert weights is None
    return output, recorded.calls[0].attentions


def test_an_added_mask_of_large_negative_numbers_becomes_forbidden_keys() -> None:
    for forbidden in (-math.inf, torch.finfo(torch.float32).min):
        table = torch.zeros(2, 1, 3, 3)
        table[1, 0, :, 2] = forbidden
        _, (first, second) = called(table)
        assert first.mask is None and first.bias is None
        assert second.bias is None and second.mask.name == "custom"
        assert float(second.weights()[:, :, 2].abs().max()) == 0.0


def test_two_masks_that_were_added_stay_finite() -> None:
    lowest = torch.finfo(torch.float32).min
    table = torch.full((2, 1, 3, 3), lowest).triu(1)
    table[:, :, :, 2] += lowest  # overflows to −inf
    output, (first, _) = called(table)
    assert bool(output.isfinite().all()) and bool(first.weights().isfinite().all())
    assert first.allowed()[0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]


def test_one_row_of_padding_stands_for_all_queries() -> None:
    table = torch.zeros(2, 1, 1, 3)
    table[0, :, :, 1] = -math.inf
    for written_out in (table, table == 0):
        _, (first, second) = called(written_out)
        assert first.allowed()[0].int().tolist() == [[1, 0, 1]] * 3
        assert bool(second.allowed().all())


def test_a_term_that_our_attention_does_not_know_is_not_dropped() -> None:
    family = importlib.import_module("transformers.models.inkling2.modeling_inkling2")
    caller = module(is_causal=False)
    caller.__class__ = type("Caller", (nn.Module,), {"__module__": family.__name__})
    called(None, caller, sinks=None)
    with pytest.raises(CannotStandIn, match="its attention has a term 'sinks'"):
        called(None, caller, sinks=torch.zeros(2, 4, 3, 1))


def test_small_numbers_in_an_added_mask_are_a_bias() -> None:
    slopes = torch.arange(3.0).expand(2, 4, 3, 3)
    _, (record, _) = called(slopes)
    assert record.mask is None
    by_hand = torch.softmax(
        record.query @ record.key.transpose(1, 2) / math.sqrt(8) + torch.arange(3.0), -1
    )
    torch.testing.assert_close(record.weights(), by_hand)


def test_no_mask_is_causal_where_the_module_says_so() -> None:
    names = []
    for caller, terms in (
        (module(is_causal=True), {}),
        (module(is_causal=True), {"is_causal": False}),
        (module(is_causal=False), {}),
    ):
        _, (record, _) = called(None, caller, **terms)
        names.append(None if record.mask is None else record.mask.name)
    assert names == ["causal", None, None]


def test_a_scale_put_in_before_the_call_is_told_apart_from_the_one_passed() -> None:
    _, (record, _) = called(None, module(is_causal=False, scaling=0.25), scaling=1.0)
    assert (record.scale, record.prescale, record.effective_scale) == (1.0, 0.25, 0.25)
    _, (record, _) = called(None, module(is_causal=False, scaling=0.25), scaling=0.25)
    assert (record.scale, record.prescale, record.effective_scale) == (0.25, 1.0, 0.25)
    _, (record, _) = called(None, module(is_causal=False, scaling=1.0), scaling=1.0)
    assert record.effective_scale == 1.0
