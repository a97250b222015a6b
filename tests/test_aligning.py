"""Maps by words, and two tokenizations brought to the same words."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from explorer.aligning import (
    CannotAlignError,
    align,
    grouped,
    grouped_allowed,
    words_of,
)
from explorer.capture import capture
from explorer.models import LoadedModel, encode
from explorer.tokens import Tokens
from tests.small_models import small_model


@pytest.fixture(scope="module")
def gpt2() -> LoadedModel:
    """A small decoder with byte-level pieces, no special token in front."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=280,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(["The cat sat on the mat. The dog did not sit."], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>")
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    special = {name: 0 for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    model = small_model("gpt2", {"vocab_size": 300, **special, **sizes})
    return LoadedModel("gpt2", "A small GPT-2", model, tokenizer, model.device, model.dtype)


def bert_like(*pieces: str, start: str = "[CLS]", end: str = "[SEP]") -> Tokens:
    """Tokens of words and ##pieces between two special tokens, with their places."""
    spans, words, at, word = [], [], 0, -1
    for piece in pieces:
        joined = piece.startswith("##")
        text = piece.removeprefix("##")
        at += 0 if joined or word < 0 else 1
        word += not joined
        spans.append((at, at + len(text)))
        words.append(word)
        at += len(text)
    count = len(pieces)
    own = Tokens(
        ids=tuple(range(count)),
        texts=tuple(piece.removeprefix("##") for piece in pieces),
        raws=pieces,
        spans=tuple(spans),
        words=tuple(words),
        special=(False,) * count,
        padding=(False,) * count,
        sources=(0,) * count,
    )
    return Tokens.added([101], [start]) + own + Tokens.added([102], [end])


# Words of one text


def test_pieces_are_joined_and_special_tokens_stand_alone() -> None:
    words = words_of(bert_like("un", "##aff", "##able", "cat"))
    assert [word.label for word in words] == ["[CLS]", "unaffable", "cat", "[SEP]"]
    assert [word.positions for word in words] == [(0,), (1, 2, 3), (4,), (5,)]
    assert (words[1].start, words[1].end, words[1].source) == (0, 9, 0)
    assert words[0].source is None


def test_padding_is_no_word() -> None:
    tokens = bert_like("cat") + Tokens.added([0, 0], ["[PAD]"] * 2, padding=True)
    assert [word.label for word in words_of(tokens)] == ["[CLS]", "cat", "[SEP]"]


def test_a_character_in_pieces_is_read_once(gpt2: LoadedModel) -> None:
    tokens = encode(gpt2, "a 😀 b").tokens
    assert any("(1/4)" in text for text in tokens.texts)
    assert [word.label for word in words_of(tokens)] == ["a", "😀", "b"]


# Weights by words


def test_weights_are_summed_over_a_keys_pieces_and_averaged_over_a_querys() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.3, 0.4, 0.3]])
    found = grouped(weights, [(0,), (1, 2)], [(0,), (1, 2)])
    expected = torch.tensor([[0.5, 0.5], [(0.1 + 0.3) / 2, (0.2 + 0.7 + 0.4 + 0.3) / 2]])
    torch.testing.assert_close(found, expected)


def test_a_query_piece_that_means_nothing_is_left_out_of_the_mean() -> None:
    weights = torch.tensor([[0.5, 0.5], [torch.nan, torch.nan]])
    left_out = torch.tensor([False, True])
    found = grouped(weights, [(0, 1), (1,)], [(0,), (1,)], left_out)
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.5], [0.0, 0.0]]))


def test_a_word_may_look_where_one_of_its_pieces_may() -> None:
    allowed = torch.ones(1, 3, 3, dtype=torch.bool).tril()
    found = grouped_allowed(allowed, [(0,), (1, 2)], [(0, 1), (2,)])
    assert found.tolist() == [[[True, False], [True, True]]]


def test_rows_of_words_sum_to_1_in_a_real_model(minilm: LoadedModel) -> None:
    its_capture = capture(minilm, "Unaffable cats, tokenization.")
    groups = [word.positions for word in words_of(its_capture.tokens)]
    assert len(groups) < len(its_capture.tokens)
    for layer in its_capture.stacks["encoder"].layers:
        sums = grouped(layer.weights(), groups, groups).sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)


# Two tokenizations of one text


def test_the_same_tokens_are_compared_cell_by_cell(minilm: LoadedModel) -> None:
    tokens = encode(minilm, "The unaffable cat.").tokens
    found = align(tokens, tokens, same_text=True)
    assert found.by_token and found.left == found.right
    assert found.left == tuple((at,) for at in range(len(tokens)))


def test_two_ways_to_cut_a_word_become_one_word() -> None:
    found = align(
        bert_like("un", "##able", "cat"), bert_like("una", "##ble", "cat"), same_text=True
    )
    assert found.labels == ("[CLS]", "unable", "cat", "[SEP]")
    assert found.left == found.right == ((0,), (1, 2), (3,), (4,))
    assert not found.by_token and not found.left_out_left and not found.left_out_right
    assert "cut the text differently" in found.note and "left out" not in found.note


def test_special_tokens_are_partners_by_their_place() -> None:
    left, right = bert_like("cat"), bert_like("cat", start="<s>", end="</s>")
    found = align(left, right, same_text=True)
    assert found.labels == ("[CLS] / <s>", "cat", "[SEP] / </s>")


def test_a_real_word_piece_and_a_byte_level_model_share_their_words(
    minilm: LoadedModel, gpt2: LoadedModel
) -> None:
    text = "The cat didn't sit on naïve mats."
    left, right = capture(minilm, text), capture(gpt2, text)
    found = align(left.tokens, right.tokens, same_text=True)
    plain = "".join(found.labels).replace(" ", "")
    assert plain == text.replace(" ", "")
    # [CLS] and [SEP] have no partner in a model that adds nothing.
    assert found.left_out_left == (0, len(left.tokens) - 1) and found.left_out_right == ()
    assert "Tokens without a partner are left out" in found.note
    for its_capture, groups in ((left, found.left), (right, found.right)):
        for group, label in zip(groups, found.labels, strict=True):
            spans = [its_capture.tokens.spans[at] for at in group]
            start = min(span[0] for span in spans if span)
            end = max(span[1] for span in spans if span)
            assert text[start:end].strip() == label  # a piece may be the space before
    decoder = next(iter(right.stacks.values())).layers[0].weights()
    sums = grouped(decoder, found.right, found.right).sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)


@given(
    text=st.text("ab c.'é😀", min_size=1, max_size=16).filter(lambda text: text.strip()),
)
def test_any_text_is_cut_into_the_same_places_on_both_sides(
    minilm: LoadedModel, gpt2: LoadedModel, text: str
) -> None:
    left, right = encode(minilm, text).tokens, encode(gpt2, text).tokens
    found = align(left, right, same_text=True)
    assert len(found.left) == len(found.right) == len(found.labels)
    for groups, out, tokens in (
        (found.left, found.left_out_left, left),
        (found.right, found.left_out_right, right),
    ):
        used = [at for group in groups for at in group]
        assert sorted([*used, *out]) == list(range(len(tokens)))  # each token once
    reached = 0
    for ours, theirs in zip(found.left, found.right, strict=True):
        where = [
            [span for at in group if (span := tokens.spans[at])]
            for group, tokens in ((ours, left), (theirs, right))
        ]
        starts, ends = zip(
            *[(min(s for s, _ in w), max(e for _, e in w)) for w in where], strict=True
        )
        # They share some text, and come one after another.
        assert max(starts) < min(ends) and min(starts) >= reached
        reached = max(ends)


def test_a_pair_is_aligned_text_by_text(minilm: LoadedModel) -> None:
    tokens = encode(minilm, "the cat", "a cat").tokens
    changed = Tokens(**{**vars(tokens), "raws": tuple(f"_{raw}" for raw in tokens.raws)})
    found = align(tokens, changed, same_text=True)
    assert found.labels == ("[CLS]", "the", "cat", "[SEP]", "a", "cat", "[SEP]")


def test_tokens_without_places_cannot_be_aligned() -> None:
    left = bert_like("un", "##able")
    right = bert_like("una", "##ble")
    nowhere = Tokens(**{**vars(right), "spans": (None,) * len(right)})
    with pytest.raises(CannotAlignError, match="does not tell where its tokens stand"):
        align(left, nowhere, same_text=True)


# Two texts


def test_a_changed_word_is_the_partner_of_the_word_in_its_place() -> None:
    left = bert_like("the", "cat", "sat", "down")
    right = bert_like("the", "ele", "##phant", "sat", "down")
    found = align(left, right, same_text=False)
    assert found.labels == ("[CLS]", "the", "cat / elephant", "sat", "down", "[SEP]")
    assert found.right[2] == (2, 3)
    assert "The two texts differ" in found.note


def test_an_added_word_is_left_out() -> None:
    left = bert_like("the", "cat", "sat", "down")
    right = bert_like("the", "black", "cat", "sat", "down")
    found = align(left, right, same_text=False)
    assert found.labels == ("[CLS]", "the", "cat", "sat", "down", "[SEP]")
    assert found.left_out_left == () and found.left_out_right == (2,)


def test_texts_with_little_in_common_are_refused_with_the_reason() -> None:
    left = bert_like("the", "cat", "sat", "on", "the", "mat")
    with pytest.raises(CannotAlignError, match="share 1 of 6 words"):
        align(left, bert_like("nobody", "knew", "the"), same_text=False)
    with pytest.raises(CannotAlignError, match="share 0 of 2 words"):
        align(bert_like("one", "two"), bert_like("three", "four"), same_text=False)
