"""Changes in one text's run: what they become, what does not fit, and how they are told."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor

from explorer.attention import Attention
from explorer.capture import Capture, Stack, capture, capture_inputs
from explorer.changes import Change, decode_changes
from explorer.changes_applied import (
    in_words,
    intervention,
    interventions,
    rows_without_key,
    same_bits,
)
from explorer.models import load
from explorer.painting import encode_painted
from tests import test_capture as families
from tests.small_models import ids, small_model, tokens_of


@cache
def sentence(text: str = "A cat sat.") -> Capture:
    """[CLS] a cat sat . [SEP]"""
    return capture(load("minilm", "cpu"), text)


def read(code: str) -> Change:
    (change,) = decode_changes(code)
    return change


def weights(code: str, layer: int = 0, text: str = "A cat sat.") -> Tensor:
    own = sentence(text)
    run = own.changed([intervention(read(code), own)])
    return run.stacks["encoder"].layer(layer).weights()


def own_layer(layer: int = 0) -> Attention:
    record = sentence().stacks["encoder"].layer(layer)
    assert isinstance(record, Attention)
    return record


def test_twice_the_scale_is_softmax_of_twice_the_scores() -> None:
    expected = (2 * own_layer().scores()).softmax(-1)
    torch.testing.assert_close(weights("times_2"), expected)


def test_a_rule_is_the_whole_factor() -> None:
    expected = (own_layer().dots() / 32).softmax(-1)  # d_k is 32
    torch.testing.assert_close(weights("rule_d"), expected)


def test_causal_on_leaves_nothing_above_the_diagonal_and_off_brings_it_back() -> None:
    assert weights("causal_on").triu(1).abs().max() == 0
    model = small_model("gpt2", families.GPT2, "sdpa")
    own = capture_inputs(model, {"input_ids": ids(1, 5)}, tokens_of(torch.ones(1, 5)))[0]
    run = own.changed([intervention(read("causal_off"), own)])
    assert (run.stacks["decoder"].layer(0).weights() > 0).all()


def test_a_window_of_two_is_the_query_and_the_key_before() -> None:
    allowed = weights("window_2")[0] > 0
    assert torch.equal(allowed, torch.ones(6, 6).tril().triu(-1).bool())


@pytest.mark.parametrize(("code", "gone"), [("nofirst", [0]), ("nospecial", [0, 5])])
def test_keys_are_found_by_what_they_are(code: str, gone: list[int]) -> None:
    found = weights(code)
    assert found[..., gone].max() == 0
    assert (found.sum(-1) - 1).abs().max() < 1e-5


def test_chosen_heads_alone_are_changed() -> None:
    found = weights("nokeys_2_L0H3")
    assert found[3, :, 2].max() == 0
    assert torch.equal(found[[0, 1, 2]], own_layer().weights()[[0, 1, 2]])


def test_a_painted_mask_replaces_the_models_own() -> None:
    table = torch.eye(6, dtype=torch.bool)
    assert torch.equal(weights(f"paint_{encode_painted(table)}")[4], torch.eye(6))


def test_a_set_weight_is_there() -> None:
    assert weights("set_1_4_0.75")[5, 1, 4] == pytest.approx(0.75)


def test_patching_takes_the_output_of_the_second_text() -> None:
    own, other = sentence(), sentence("The dog ran.")
    run = own.changed([intervention(read("patch_L0H2"), own, other)])
    record = other.stacks["encoder"].layer(0)
    assert isinstance(record, Attention)
    changed = run.stacks["encoder"].layer(0)
    assert torch.equal(changed.output()[2], record.output()[2])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("off_L9", "no layer 9 here; the last is 5"),
        ("off_L1H12", "no head 12 in layer 1; the last is 11"),
        ("off_H12", "no head 12 in layer 0"),
        ("off_S1", "this one has one stack"),
        ("nokeys_6", "no token 6 in this text; the last is 5"),
        ("novalue_6", "no token 6"),
        ("set_6_0_1", "no token 6"),
        ("set_0_6_1", "no token 6"),
        ("paint_2-b", "painted for 2 tokens, and there are 6"),
        ("patch", "type one"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(code: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        intervention(read(code), sentence())


def test_texts_of_unequal_length_cannot_be_patched() -> None:
    with pytest.raises(ValueError, match="has 7 tokens, and this one 6"):
        intervention(read("patch"), sentence(), sentence("The dog ran away."))


def test_a_text_without_special_tokens_says_so() -> None:
    model = small_model("gpt2", families.GPT2, "sdpa")
    own = capture_inputs(model, {"input_ids": ids(1, 5)}, tokens_of(torch.ones(1, 5)))[0]
    with pytest.raises(ValueError, match="no special tokens"):
        intervention(read("nospecial"), own)


def test_the_first_real_token_is_meant_where_padding_stands_before_it() -> None:
    model = small_model("gpt2", families.GPT2, "sdpa")
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    inputs = {"input_ids": ids(1, 5), "attention_mask": mask}
    own = capture_inputs(model, inputs, tokens_of(mask))[0]
    assert intervention(read("nofirst"), own).without_keys == (2,)


def test_of_two_texts_in_cross_attention_none_comes_first() -> None:
    stack = sentence().stacks["encoder"]
    tokens = stack.query_tokens
    cross = Stack("cross", tokens, tokens, stack.layers, stack.layer_numbers, stack.n_layers)
    own = Capture({"cross": cross}, tokens, None, None)
    for code in ("causal_on", "window_2"):
        with pytest.raises(ValueError, match="two texts"):
            intervention(read(code), own)


def test_what_fits_is_applied_and_the_rest_is_told() -> None:
    found, refused = interventions(decode_changes("off_L1H1 off_L9 times_2"), sentence())
    assert len(found) == 2
    (sentence_,) = refused
    assert sentence_.startswith("Layer 9, all heads: switched off: left out.")


def test_places_of_the_first_text_are_not_taken_for_places_of_the_second() -> None:
    changes = decode_changes("nokeys_2 set_1_2_1 novalue_1 off_L1 nofirst")
    found, refused = interventions(changes, sentence(), first=False)
    assert [each.output for each in found] == ["off", "own"]
    assert found[1].without_keys == (0,)
    assert refused == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("off_L2H1", "Layer 2, head 1: switched off"),
        ("times_0.5", "All layers, all heads: scale × 0.5 (softer)"),
        ("times_2_L0-1", "Layers 0 and 1, all heads: scale × 2 (harder)"),
        ("times_1", "All layers, all heads: scale × 1"),
        ("rule_d_H3", "All layers, head 3: scale 1/d_k on q·k"),
        ("nokeys_2.4", "All layers, all heads: no attention to 2 “cat”, 4 “.”"),
        ("nokeys_77", "All layers, all heads: no attention to 77"),
        (
            "set_1_2_0.25_L0H0",
            "Layer 0, head 0: weight of 1 “A” on 2 “cat” set to 0.25, the others share the rest",
        ),
        ("novalue_2_L0-2", "Layers 0, 1 and 2, all heads: values of 2 “cat” set to zero"),
        ("off_S3", "Stack 3, all layers, all heads: switched off"),
    ],
)
def test_changes_are_told_in_words(code: str, words: str) -> None:
    assert in_words(read(code), sentence().stacks) == words


def test_rows_that_lose_all_keys_are_counted() -> None:
    model = small_model("gpt2", families.GPT2, "sdpa")
    own = capture_inputs(model, {"input_ids": ids(1, 5)}, tokens_of(torch.ones(1, 5)))[0]
    run = own.changed([intervention(read("nofirst_L1H0-1"), own)])
    assert rows_without_key(own.changed([])) == 0
    assert rows_without_key(run) == 2  # the first query, in two heads of one layer


def test_two_runs_are_compared_bit_by_bit() -> None:
    own = sentence()
    before = own.changed([])
    equal, count = same_bits(own, before)
    assert equal and count == 6 * 384  # the last hidden state
    assert same_bits(before, own.changed([])) == (True, (1 + 7) * 6 * 384)
    assert not same_bits(before, own.changed([intervention(read("off_L5H0"), own)]))[0]
