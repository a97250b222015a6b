"""The statements of the Masks page, by hand where they fit on two tokens, else as invariants.

By hand: two tokens, scores log 3 and log 5 in both rows, values 1 and 9. Without a mask both rows
weigh 3/8 and 5/8; a causal mask leaves row 0 its own key only.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from explorer.attention import Attention, FullyMaskedRowError
from explorer.mask_lessons import (
    Kind,
    Part,
    Side,
    combined,
    difference_from_alone,
    fully_masked_row,
    last_token_changed,
    padded,
    padded_tokens,
    pictures,
    rule,
    without_padding,
    zero_instead_of_minus_inf,
    zeroed_after_softmax,
)
from explorer.masks import causal, custom, everything, padding
from explorer.multihead import MultiHeadAttention
from explorer.vectors import random_embeddings, words

BY_HAND = Attention(
    query=torch.ones(1, 2, 1),
    key=torch.tensor([[[math.log(3)], [math.log(5)]]]),
    value=torch.tensor([[[1.0], [9.0]]]),
    mask=causal(),
    scale=1.0,
)
BOTH = torch.tensor([True, True])
ALL = torch.ones(6, dtype=torch.bool)
TOKENS = words("the cat sat on the mat")


@pytest.fixture(scope="module")
def record() -> Attention:
    """Six tokens, two heads, no mask."""
    x = random_embeddings(TOKENS, 8, 0)
    return MultiHeadAttention(8, 2, seed=0).attention(x)


# (a)


def test_a_score_of_zero_gives_a_forbidden_key_a_quarter() -> None:
    found = zero_instead_of_minus_inf(BY_HAND, BOTH)
    assert found.wrong[0].tolist() == [pytest.approx([3 / 4, 1 / 4]), pytest.approx([3 / 8, 5 / 8])]
    assert found.leaked[0].tolist() == [pytest.approx(1 / 4), 0]
    assert found.most == pytest.approx(1 / 4)
    assert found.right[0, 0].tolist() == [1, 0]


def test_with_minus_infinity_forbidden_keys_get_exactly_nothing(record: Attention) -> None:
    found = zero_instead_of_minus_inf(record.replace(mask=causal()), ALL)
    later = torch.ones(6, 6).triu(1).bool()
    assert (found.right[:, later] == 0).all()
    assert (found.wrong[:, later] > 0).all()


def test_rows_of_padding_are_in_no_summary(record: Attention) -> None:
    masked = record.replace(mask=causal())
    last_only = torch.tensor([False] * 5 + [True])  # this row may use every key
    assert zero_instead_of_minus_inf(masked, last_only).most == 0
    assert zeroed_after_softmax(masked, last_only).least == pytest.approx(1)


# (b)


def test_weights_zeroed_after_softmax_no_longer_sum_to_one() -> None:
    found = zeroed_after_softmax(BY_HAND, BOTH)
    assert found.zeroed[0, 0].tolist() == pytest.approx([3 / 8, 0])
    assert found.sums[0].tolist() == pytest.approx([3 / 8, 1])
    assert found.least == pytest.approx(3 / 8)


def test_renormalising_equals_masking_before_softmax(record: Attention) -> None:
    found = zeroed_after_softmax(record.replace(mask=causal()), ALL)
    assert found.least < 0.9
    assert found.difference < 5e-7
    torch.testing.assert_close(found.renormalised, found.right, rtol=0, atol=5e-7)


def test_a_row_with_nothing_left_renormalises_to_nan_and_is_not_counted() -> None:
    table = torch.tensor([[False, False], [True, True]])
    found = zeroed_after_softmax(BY_HAND.replace(mask=custom(table)), BOTH)
    assert found.least == 0
    assert found.renormalised[0, 0].isnan().all()
    assert found.difference < 1e-7


# (c)


def test_our_attention_refuses_a_fully_masked_row(record: Attention) -> None:
    table = torch.ones(6, 6, dtype=torch.bool)
    table[4] = False
    with pytest.raises(FullyMaskedRowError, match="no key for query row 4 in every head"):
        record.replace(mask=custom(table)).steps()


def test_a_fully_masked_row_as_zeros_nan_and_uniform(record: Attention) -> None:
    found = fully_masked_row(record, 4)
    assert (found.zeros == 0).all()
    assert (found.output == 0).all()
    assert found.plain.isnan().all()
    assert (found.large_negative == 1 / 6).all()


# (d)


def test_a_changed_last_token_moves_no_earlier_output_under_a_causal_mask() -> None:
    assert last_token_changed(BY_HAND, 0).tolist() == [0, pytest.approx(5)]  # 6 becomes 1
    free = BY_HAND.replace(mask=None)
    assert last_token_changed(free, 0).tolist() == pytest.approx([5, 5])


@pytest.mark.parametrize("becomes", range(5))
def test_causal_means_causal_to_the_last_bit(record: Attention, becomes: int) -> None:
    moved = last_token_changed(record.replace(mask=causal()), becomes)
    assert (moved[:-1] == 0).all()
    assert moved[-1] > 0.01
    assert (last_token_changed(record, becomes) > 0.01).all()


def test_exactly_those_move_that_may_use_the_last_key(record: Attention) -> None:
    table = torch.eye(6, dtype=torch.bool)
    table[1, 5] = table[3, 5] = True
    moved = last_token_changed(record.replace(mask=custom(table)), 0)
    assert (moved > 0).tolist() == [False, True, False, True, False, True]


def test_changing_the_last_token_changes_a_copy(record: Attention) -> None:
    before = record.key.clone()
    last_token_changed(record, 0)
    assert torch.equal(record.key, before)


# A batch


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_batch_changes_nothing_where_padding_is_masked(record: Attention, side: Side) -> None:
    live = ~torch.tensor(padded_tokens(TOKENS, 9, side).padding)
    batched = padded(record, 9, side)
    assert batched.key_length == 9
    assert torch.equal(batched.key[:, live], record.key)
    masked = batched.replace(mask=padding(6, side))
    assert difference_from_alone(record, masked, live) < 1e-6
    assert difference_from_alone(record, batched, live) > 0.01
    torch.testing.assert_close(without_padding(masked, live).output(), record.output())


def test_padding_tokens_stand_on_their_side_and_are_marked() -> None:
    left = padded_tokens(TOKENS, 8, "left")
    assert left.texts[:3] == ("[PAD]", "[PAD]", "the")
    assert left.padding == (True, True, *[False] * 6)
    assert padded_tokens(TOKENS, 8, "right").padding == (*[False] * 6, True, True)
    assert padded_tokens(TOKENS, 6, "right") == TOKENS


def test_a_text_does_not_fit_a_shorter_batch(record: Attention) -> None:
    with pytest.raises(ValueError, match="has 6 tokens"):
        padded(record, 5)


# Rules and pictures


def written_out(kind: Kind) -> np.ndarray:
    """The mask of four tokens cell by cell; three are real, the padding right."""
    test = {
        "none": lambda q, k: True,
        "causal": lambda q, k: k <= q,
        "padding": lambda q, k: k < 3,
        "window": lambda q, k: q - 2 < k <= q,
        "prefix": lambda q, k: k < 2 or k <= q,
        "custom": lambda q, k: (q + k) % 2 == 0,
    }[kind]
    return np.array([[test(q, k) for k in range(4)] for q in range(4)])


@pytest.mark.parametrize("first", ["none", "causal", "padding", "window", "prefix", "custom"])
@pytest.mark.parametrize("second", ["causal", "padding", "custom"])
@pytest.mark.parametrize("negated", [False, True])
def test_rules_combine_as_their_cells_do(first: Kind, second: Kind, negated: bool) -> None:
    painted = torch.tensor(written_out("custom"))
    a = rule(Part(first, 2, negated), 3, "right", painted)
    b = rule(Part(second), 3, "right", painted)
    one, two = written_out(first) ^ negated, written_out(second)
    for join, expected in (("alone", one), ("and", one & two), ("or", one | two)):
        mask = combined(a, join, b)  # type: ignore[arg-type]
        assert (mask.block(4, 4).numpy() == expected).all(), mask.name


def test_the_rule_has_a_name() -> None:
    painted = torch.ones(4, 4, dtype=torch.bool)
    window = rule(Part("window", 2, negated=True), 4, "right", painted)
    mask = combined(rule(Part("causal"), 4, "right", painted), "and", window)
    assert mask.name == "(causal and not sliding window of 2)"


def test_the_four_pictures_are_the_steps_of_one_head(record: Attention) -> None:
    masked = record.replace(mask=causal())
    found, steps = pictures(masked, 1), masked.steps()
    assert torch.equal(found.scores, steps.scores[1])
    assert torch.equal(found.masked_scores, steps.masked_scores[1])
    assert torch.equal(found.weights, steps.weights[1])
    assert torch.equal(found.allowed, torch.ones(6, 6).tril().bool())
    assert torch.equal(found.masked_scores.isinf(), ~found.allowed)


def test_a_row_without_a_key_is_drawn_as_zeros(record: Attention) -> None:
    found = pictures(record.replace(mask=~everything()), 0)
    assert (found.weights == 0).all()
    assert not found.allowed.any()
