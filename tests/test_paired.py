"""Two sides over the same places: cell by cell, by words, or apart."""

from __future__ import annotations

import pytest
import torch
from scipy.spatial.distance import jensenshannon

from explorer.paired import paired
from explorer.sides import Side
from explorer.tokens import Tokens


def side(tokens: Tokens, weights: list[list[float]]) -> Side:
    table = torch.tensor(weights)
    padded = torch.tensor(tokens.padding)
    return Side(table, table > 0, padded, tokens, tokens)


def pieces(*raws: str) -> Tokens:
    """Tokens of one text, where "##" goes on with the word before."""
    texts = [raw.removeprefix("##") for raw in raws]
    words, spans, at = [], [], 0
    for raw, text in zip(raws, texts, strict=True):
        new = not raw.startswith("##")
        at += new and bool(spans)
        words.append((words[-1] if words else -1) + new)
        spans.append((at, at + len(text)))
        at += len(text)
    n = len(raws)
    return Tokens(
        tuple(range(n)),
        tuple(texts),
        raws,
        tuple(spans),
        tuple(words),
        (False,) * n,
        (False,) * n,
        (0,) * n,
    )


LEFT = [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]
RIGHT = [[0.25, 0.25, 0.5], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


def test_the_same_tokens_are_compared_cell_by_cell() -> None:
    tokens = pieces("a", "b", "c")
    pair = paired(
        side(tokens, LEFT), side(tokens, RIGHT), same_queries=True, same_keys=True, by_words=False
    )
    assert pair.compared is not None
    assert torch.equal(pair.difference, torch.tensor(RIGHT) - torch.tensor(LEFT))
    for row in range(3):
        expected = jensenshannon(LEFT[row], RIGHT[row]) ** 2
        assert float(pair.compared.per_query[row]) == pytest.approx(expected, abs=1e-7)
    assert pair.compared.queries(3) == [2, 0]
    assert pair.left.query_labels == ("a", "b", "c")


def test_by_words_keys_are_summed_and_queries_averaged() -> None:
    tokens = pieces("un", "##able", "cat")
    pair = paired(
        side(tokens, LEFT), side(tokens, RIGHT), same_queries=True, same_keys=True, by_words=True
    )
    assert pair.left.query_labels == ("unable", "cat")
    # By hand: rows un (¾, ¼) and able (1, 0) average to (⅞, ⅛).
    torch.testing.assert_close(pair.left.weights, torch.tensor([[0.875, 0.125], [0.5, 0.5]]))
    torch.testing.assert_close(pair.right.weights, torch.tensor([[0.75, 0.25], [1.0, 0.0]]))
    assert pair.note.startswith("By words")


def test_two_tokenizers_meet_in_words_and_it_is_said() -> None:
    left = side(pieces("un", "##able", "cat"), LEFT)
    right = side(pieces("unable", "cat"), [[0.9, 0.1], [0.2, 0.8]])
    pair = paired(left, right, same_queries=True, same_keys=True, by_words=False)
    assert pair.compared is not None and "cut the text differently" in pair.note
    torch.testing.assert_close(
        pair.difference, torch.tensor([[0.9 - 0.875, 0.1 - 0.125], [-0.3, 0.3]])
    )


def test_texts_with_nothing_in_common_stay_apart_with_the_reason() -> None:
    left, right = side(pieces("a", "b", "c"), LEFT), side(pieces("x", "y", "z"), RIGHT)
    for by_words in (False, True):
        pair = paired(left, right, same_queries=False, same_keys=False, by_words=by_words)
        assert pair.compared is None and "share 0 of 3 words" in pair.note
        assert pair.left.query_labels == ("a", "b", "c")
        assert pair.right.query_labels == ("x", "y", "z")


def test_what_is_left_out_on_one_side_is_in_no_number() -> None:
    tokens = pieces("a", "b", "c")
    hollow = [LEFT[0], [0.0, 0.0, 0.0], LEFT[2]]
    pair = paired(
        side(tokens, hollow), side(tokens, RIGHT), same_queries=True, same_keys=True, by_words=False
    )
    assert pair.compared is not None
    assert pair.left_out.tolist() == [False, True, False]
    assert bool(pair.compared.per_query.isnan()[1])


def test_queries_and_keys_of_two_texts_are_aligned_each_for_itself() -> None:
    queries, keys = pieces("a", "b"), pieces("un", "##able", "cat")
    table = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    both = Side(table, table > 0, torch.zeros(2, dtype=torch.bool), queries, keys)
    other = Side(
        torch.tensor([[0.75, 0.25], [0.5, 0.5]]),
        torch.ones(2, 2, dtype=torch.bool),
        torch.zeros(2, dtype=torch.bool),
        queries,
        pieces("unable", "cat"),
    )
    pair = paired(both, other, same_queries=True, same_keys=True, by_words=False)
    assert pair.compared is not None and "For keys:" in pair.note
    assert pair.compared.divergence == pytest.approx(0, abs=1e-7)
    assert pair.left.key_labels == ("unable", "cat")
