"""A long text in overlapping pieces: each row exactly as the piece sees it that owns it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.attention import Attention
from explorer.capture import capture, capture_inputs
from explorer.checks import invariants
from explorer.maps import pooled, window
from explorer.metrics import TokenStack, WeightedLayer, head_metrics
from explorer.models import LoadedModel, ModelError, TextError
from explorer.overlapping import capture_pieces, owners, spans_of
from explorer.tokens import Tokens
from tests.page_models import BYTES, GROUPED, KINDS, byte_tokenizer
from tests.small_models import SMALL_SEQ2SEQ, small_model

TEXT = "Some words are long, and others are not. " * 6  # 60 tokens of MiniLM
BYTE_TEXT = "the cat sat on the mat, and the dog sat on the log; both of them slept."


def small(family: str, settings: Any) -> LoadedModel:
    model = small_model(family, settings)
    return LoadedModel("small", "Small", model, byte_tokenizer(), model.device, model.dtype)


GPT2 = {**BYTES, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 24}


@given(
    length=st.integers(1, 80),
    room=st.integers(1, 30),
    part=st.floats(0, 0.99),
    ahead=st.booleans(),
)
def test_every_row_is_owned_by_the_piece_with_the_most_text_around_it(
    length: int, room: int, part: float, ahead: bool
) -> None:
    overlap = int(room * part)
    spans = spans_of(length, room, overlap)
    assert spans[0][0] == 0 and spans[-1][1] == length
    assert all(stop - start == min(room, length) for start, stop in spans)
    assert all(stop - start >= overlap for (_, stop), (start, _) in pairwise(spans))

    def context(row: int, span: tuple[int, int]) -> float:
        """Tokens before the row, and after it too where the model looks ahead; −1 outside."""
        start, stop = span
        if not start <= row < stop:
            return -1
        before = row - start if start > 0 else length
        after = stop - 1 - row if stop < length else length
        return min(before, after) if ahead else before

    rows = [row for first, last in owners(spans, ahead=ahead) for row in range(first, last)]
    assert rows == list(range(length))
    for span, (first, last) in zip(spans, owners(spans, ahead=ahead), strict=True):
        for row in range(first, last):
            assert context(row, span) == max(context(row, each) for each in spans)


def piece_by_hand(model: LoadedModel, tokens: Tokens, start: int, stop: int) -> Attention:
    """[CLS] some tokens [SEP] through MiniLM: layer 2."""
    ids = torch.tensor([[101, *tokens.ids[start:stop], 102]])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    names = Tokens.plain([str(n) for n in range(ids.shape[1])])
    layer = capture_inputs(model.model, inputs, [names])[0].stacks["encoder"].layers[2]
    assert isinstance(layer, Attention)
    return layer


def test_weights_are_those_of_the_piece_at_the_places_of_the_text(minilm: LoadedModel) -> None:
    stack = capture_pieces(minilm, TEXT, piece=26, overlap=8)
    tokens, layer = stack.query_tokens, stack.layer(2)
    assert len(tokens) == 60 and not any(tokens.special)
    # 24 tokens a piece, each 16 after the last, and one more that ends with the text.
    assert [(p.start, p.stop) for p in layer.pieces] == [(0, 24), (16, 40), (32, 56), (36, 60)]
    assert [p.rows for p in layer.pieces] == [(0, 20), (20, 36), (36, 46), (46, 60)]
    expected = torch.zeros(12, 60, 60)
    special = torch.zeros(12, 60)
    for piece in layer.pieces:
        table = piece_by_hand(minilm, tokens, piece.start, piece.stop).weights()  # (12, 26, 26)
        for row in range(*piece.rows):
            seen = table[:, row - piece.start + 1]
            expected[:, row, piece.start : piece.stop] = seen[:, 1:-1]
            special[:, row] = seen[:, 0] + seen[:, -1]
    torch.testing.assert_close(layer.weights(), expected)
    torch.testing.assert_close(layer.special_weight, special)
    torch.testing.assert_close(layer.weights().sum(-1) + special, torch.ones(12, 60))
    torch.testing.assert_close(
        layer.weights([3, 1], [59, 0, 20], slice(10, 30)),
        expected[[3, 1]][:, [59, 0, 20]][:, :, 10:30],
    )
    torch.testing.assert_close(window(layer, (15, 50), (5, 33)), expected[:, 15:50, 5:33])
    assert torch.equal(layer.allowed()[0], expected[0] > 0)
    assert torch.equal(
        layer.allowed(rows=[0, 30], keys=[23, 24]), torch.tensor([[[True, False], [True, True]]])
    )


def test_a_text_that_fits_is_one_piece_as_the_model_reads_it(minilm: LoadedModel) -> None:
    stack = capture_pieces(minilm, "the cat sat on the mat")
    whole = capture(minilm, "the cat sat on the mat").stacks["encoder"]
    assert len(stack.layers) == stack.n_layers == 6
    for ours, theirs in zip(stack.layers, whole.layers, strict=True):
        assert len(ours.pieces) == 1
        torch.testing.assert_close(ours.weights(), theirs.weights()[:, 1:-1, 1:-1])


def test_a_decoders_rows_have_the_most_text_before_them() -> None:
    model = small("gpt2", GPT2)
    stack = capture_pieces(model, BYTE_TEXT, overlap=10)
    layer = stack.layer(1)
    length = len(BYTE_TEXT)
    assert stack.name == "decoder"
    assert [p.start for p in layer.pieces] == [0, 13, 26, 39, length - 23]
    assert [p.rows for p in layer.pieces] == [(0, 23), (23, 36), (36, 49), (49, 62), (62, length)]
    weights = layer.weights()
    assert float(weights.triu(1).max()) == 0
    assert torch.equal(layer.allowed()[0], weights[0] > 0)
    torch.testing.assert_close(weights.sum(-1) + layer.special_weight, torch.ones(4, length))


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_used_keys_hold_all_weight_and_no_more_than_a_piece(family: str) -> None:
    settings = GPT2 if family == "gpt2" else {**KINDS["one-head"][1], "max_position_embeddings": 24}
    layer = capture_pieces(small(family, settings), BYTE_TEXT, overlap=6).layers[0]
    weights = layer.weights()
    length = layer.query_length
    for start in range(0, length, 5):
        rows = slice(start, min(start + 5, length))
        used = layer.used_keys(rows)
        kept = weights[:, rows, used].sum(-1)
        torch.testing.assert_close(kept, weights[:, rows].sum(-1))
        assert used.stop - used.start <= 23 + 17  # one piece, or two that overlap by 6
        if family == "gpt2":
            assert used.stop == rows.stop
    assert layer.used_keys(slice(0, length)) == slice(0, length)
    assert layer.used_keys(slice(4, 4)) == slice(0, 0)


def test_the_layers_can_be_measured_and_pooled_as_others(minilm: LoadedModel) -> None:
    stack = capture_pieces(minilm, TEXT, piece=26)
    assert isinstance(stack, TokenStack)
    assert isinstance(stack.layers[0], WeightedLayer)
    table = head_metrics(stack, ["largest_weight", "distance", "special", "sink"])
    assert len(table) == 72
    assert table["largest_weight"].between(0, 1).all()
    layer = stack.layer(5)
    lacking = layer.special_weight.double().mean(-1).numpy()
    of_layer = table[table["layer"] == 5]
    assert of_layer["sink"].to_numpy() == pytest.approx(lacking, abs=1e-6)
    assert invariants(stack).forbidden_weight == 0
    expected = layer.weights().view(12, 6, 10, 6, 10).sum(-1).mean(2)
    torch.testing.assert_close(pooled(layer, 6), expected)
    with pytest.raises(KeyError, match="layer 6 has no attention"):
        stack.layer(6)
    assert stack.n_heads == 12


def test_only_the_chosen_layers_are_kept(minilm: LoadedModel) -> None:
    stack = capture_pieces(minilm, TEXT, piece=26, layers=[4, 1])
    assert stack.layer_numbers == (1, 4)
    assert stack.n_layers == 6
    whole = capture_pieces(minilm, TEXT, piece=26)
    torch.testing.assert_close(stack.layer(4).weights(), whole.layer(4).weights())
    with pytest.raises(ValueError, match="MiniLM L6 has attention in none of them"):
        capture_pieces(minilm, TEXT, layers=[9])


def test_grouped_queries_and_windows_stay_what_they_are() -> None:
    settings = {**GROUPED, "sliding_window": 3, "max_position_embeddings": 24}
    layer = capture_pieces(small("mistral", settings), BYTE_TEXT, piece=20, overlap=8).layers[1]
    assert layer.n_heads == 4
    allowed = layer.allowed()[0]
    n = len(BYTE_TEXT)
    rows, keys = torch.arange(n)[:, None], torch.arange(n)
    assert torch.equal(allowed, (keys <= rows) & (keys > rows - 3))
    used = layer.used_keys(slice(30, 31))
    assert used == slice(28, 31)


def test_of_an_encoder_decoder_the_encoder_is_shown() -> None:
    model = small("bart", {**SMALL_SEQ2SEQ, **BYTES, "max_position_embeddings": 24})
    stack = capture_pieces(model, BYTE_TEXT)
    assert stack.name == "encoder"
    assert stack.layers[0].key_length == len(BYTE_TEXT)


def test_progress_rises_to_one_and_can_end_the_work(minilm: LoadedModel) -> None:
    shares: list[float] = []
    capture_pieces(minilm, TEXT, piece=26, overlap=8, progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]

    class Stopped(Exception):
        pass

    def stop(share: float) -> None:
        shares.append(share)
        raise Stopped

    shares.clear()
    with pytest.raises(Stopped):
        capture_pieces(minilm, TEXT, piece=26, progress=stop)
    assert len(shares) == 1


def test_no_values_and_no_tables_are_kept(minilm: LoadedModel) -> None:
    for piece in capture_pieces(minilm, TEXT, piece=26).layers[0].pieces:
        record = piece.attention
        assert record.row_lse is not None
        assert record.value.untyped_storage().data_ptr() == record.key.untyped_storage().data_ptr()


def test_what_can_not_be_cut_is_refused_with_a_sentence(
    minilm: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TextError, match="Please type some text"):
        capture_pieces(minilm, "  ")
    with pytest.raises(ValueError, match=r"piece: got 2, .* more than 2 special"):
        capture_pieces(minilm, TEXT, piece=2)
    with pytest.raises(ValueError, match="reads at most 512"):
        capture_pieces(minilm, TEXT, piece=513)
    with pytest.raises(ValueError, match="overlap: got 24, but a piece has 24 tokens"):
        capture_pieces(minilm, TEXT, piece=26, overlap=24)
    with pytest.raises(ModelError, match="reads a text of any length"):
        capture_pieces(small("t5", KINDS["two-stacks"][1]), TEXT)
    with pytest.raises(ModelError, match="computes attention in its own code"):
        capture_pieces(small("bloom", KINDS["off-interface"][1]), TEXT, piece=20)
    monkeypatch.setattr("explorer.overlapping.MOST_TOKENS", 59)
    with pytest.raises(TextError, match="60 tokens, and at most 59 are shown at once"):
        capture_pieces(minilm, TEXT)
