"""Induction on a segment that repeats: patterns made by hand, and small real decoders."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers import models as pieces
from transformers import PreTrainedTokenizerFast

from explorer.capture import GivenWeights
from explorer.metrics import REPEATED, head_metrics, layer_metrics, marks_of
from explorer.models import LoadedModel, ModelError, load
from explorer.repeated import repeated_capture
from explorer.tokens import Tokens
from tests.small_models import SMALL_GROUPED, small_model

PERIOD, LENGTH = 5, 10


def pattern(offset: int) -> GivenWeights:
    """A head that gives 0.97 to the key at an offset (or to the first), the rest to all alike."""
    weights = torch.full((1, LENGTH, LENGTH), 0.03 / LENGTH)
    for query in range(LENGTH):
        weights[0, query, max(0, query + offset)] += 0.97
    return GivenWeights(weights)


def decoder(max_tokens: int = 64, bos: str | None = "w1") -> LoadedModel:
    vocab = {f"w{number}": number for number in range(64)}
    backend = Tokenizer(pieces.WordLevel(vocab, unk_token="w0"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="w0", bos_token=bos)
    model = small_model("llama", {**SMALL_GROUPED, "max_position_embeddings": max_tokens})
    return LoadedModel("small", "Small", model, tokenizer, model.device, model.dtype)


def scores(offset: int) -> tuple[float, float]:
    """Of such a head on two copies of a segment: induction, and weight on the token's own place."""
    tokens = Tokens.plain([*"abcde"] * 2)
    found = layer_metrics(pattern(offset), names=REPEATED, marks=marks_of(tokens, tokens))
    return float(found["induction"]), float(found["duplicate"])


def test_a_hand_made_induction_head_scores_near_1() -> None:
    assert scores(1 - PERIOD) == pytest.approx((0.97 + 0.03 / LENGTH, 0.03 / LENGTH))


def test_a_hand_made_duplicate_token_head_scores_near_1() -> None:
    assert scores(-PERIOD) == pytest.approx((0.03 / LENGTH, 0.97 + 0.03 / LENGTH))


def test_a_previous_token_head_is_no_induction_head() -> None:
    assert scores(-1) == pytest.approx((0.03 / LENGTH, 0.03 / LENGTH))


def test_a_decoder_reads_its_random_segment_twice() -> None:
    found = repeated_capture(decoder(), period=12, seed=3)
    tokens = found.tokens
    assert len(tokens) == 1 + 24 and tokens.special == (True, *(False,) * 24)
    assert tokens.ids[1:13] == tokens.ids[13:] and len(set(tokens.ids[1:13])) == 12
    assert found.max_difference is not None and found.max_difference < 1e-5
    stack = found.stacks["decoder"]
    table = head_metrics(stack, REPEATED)
    assert table[list(REPEATED)].notna().all().all()
    # The start token shifts all places by one.
    for number, layer in enumerate(stack.layers):
        weights = layer.weights().double().numpy()
        rows = range(13, 25)
        induction = np.mean([weights[:, row, row - 11] for row in rows], axis=0)
        np.testing.assert_allclose(table["induction"][table["layer"] == number], induction, 1e-5)
    again = repeated_capture(decoder(), period=12, seed=3).tokens
    assert again.ids == tokens.ids != repeated_capture(decoder(), period=12, seed=4).tokens.ids


def test_a_segment_is_cut_to_what_the_model_reads() -> None:
    assert len(repeated_capture(decoder(max_tokens=21), period=25).tokens) == 21
    assert len(repeated_capture(decoder(max_tokens=21, bos=None), period=25).tokens) == 20
    with pytest.raises(ModelError, match="too few tokens"):
        repeated_capture(decoder(max_tokens=4), period=25)


def test_an_encoder_is_told_apart() -> None:
    with pytest.raises(ModelError, match="sees what comes after a token too"):
        repeated_capture(load("minilm", device="cpu"))


def test_a_segment_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        repeated_capture(decoder(), period=1)
