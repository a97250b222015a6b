"""A layer's own heads over a long text: the model's projections without its positions."""

from __future__ import annotations

import copy
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from explorer.attention import Attention
from explorer.capture import capture
from explorer.long_sources import CHUNK, MOST_TOKENS, own_heads, text_tokens
from explorer.masks import causal
from explorer.models import LoadedModel, ModelError, TextError
from tests.page_models import BYTES, GROUPED, KINDS, LARGE, byte_tokenizer
from tests.small_models import SMALL_SEQ2SEQ, small_model

TEXT = "the cat sat on the mat"
LONG = "Some words are long, and others are not. " * 60  # 660 tokens of MiniLM, more than it reads
OPT = {
    **BYTES,
    "hidden_size": 32,
    "ffn_dim": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "word_embed_proj_dim": 32,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": LARGE,
    "roberta": {**LARGE, "max_position_embeddings": 80},
    "albert": {**LARGE, "embedding_size": 16},
    "electra": {**LARGE, "embedding_size": 16},
    "distilbert": {**BYTES, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4},
    "gpt2": {**BYTES, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "opt": OPT,
    "bart": {**SMALL_SEQ2SEQ, **BYTES},
    "t5": dict(KINDS["two-stacks"][1]),
}


def loaded(model: PreTrainedModel) -> LoadedModel:
    return LoadedModel("small", "Small", model, byte_tokenizer(), model.device, model.dtype)


def heads(projected: Tensor, n_heads: int = 12) -> Tensor:
    """(length, d_model) as (n_heads, length, d_k)."""
    return projected.unflatten(-1, (n_heads, -1)).transpose(0, 1)


@pytest.mark.parametrize("layer", [0, 3])
def test_a_layers_heads_are_its_projections_of_embeddings_without_positions(
    minilm: LoadedModel, layer: int
) -> None:
    tokens, attention = own_heads(minilm, LONG, layer=layer)
    bert: Any = minilm.model
    ids = torch.tensor(tokens.ids)
    with torch.no_grad():
        words = bert.embeddings.word_embeddings(ids)
        kind = bert.embeddings.token_type_embeddings.weight[0]
        x = bert.embeddings.LayerNorm(words + kind)  # no position is added
        own = bert.encoder.layer[layer].attention.self
        for name, projection in (("query", own.query), ("key", own.key), ("value", own.value)):
            torch.testing.assert_close(getattr(attention, name), heads(projection(x)))
    assert attention.scale == pytest.approx(32**-0.5)
    assert attention.mask is None
    assert len(tokens) > minilm.max_tokens > CHUNK - 1  # type: ignore[operator]


@pytest.mark.parametrize("family", FAMILIES)
def test_layer_0_is_what_a_model_with_zeros_for_positions_computes(family: str) -> None:
    model = small_model(family, FAMILIES[family])
    tokens, attention = own_heads(loaded(model), TEXT)
    zeroed = copy.deepcopy(model)
    with torch.no_grad():
        for name, weights in zeroed.named_parameters():
            if "position" in name or "wpe" in name:
                weights.zero_()
    expected = capture(loaded(zeroed), TEXT)
    stack = next(iter(expected.stacks.values()))
    layer = stack.layers[0]
    assert isinstance(layer, Attention)
    own = [at for at, source in enumerate(stack.query_tokens.sources) if source == 0]
    assert tokens.ids == stack.query_tokens.select(own).ids
    for name in ("query", "key", "value"):
        torch.testing.assert_close(getattr(attention, name), getattr(layer, name)[:, own])
    assert attention.effective_scale == layer.effective_scale


def test_rotary_queries_and_keys_are_not_turned() -> None:
    model: Any = small_model("llama", GROUPED)
    tokens, attention = own_heads(loaded(model), TEXT, layer=1)
    with torch.no_grad():
        layer = model.layers[1]
        x = layer.input_layernorm(model.embed_tokens(torch.tensor(tokens.ids)))
        torch.testing.assert_close(attention.query, heads(layer.self_attn.q_proj(x), 4))
        torch.testing.assert_close(attention.key, heads(layer.self_attn.k_proj(x), 2))


def test_equal_tokens_have_equal_queries_wherever_they_stand(minilm: LoadedModel) -> None:
    tokens, attention = own_heads(minilm, "the cat saw the other cat " * 200)
    places = [at for at, text in enumerate(tokens.texts) if text == "cat"]
    assert len(places) == 400
    # Equal but for the rounding of products of several tokens at once.
    spread = attention.query[:, places] - attention.query[:, places[:1]]
    assert float(spread.abs().max()) < 1e-5


def test_the_model_is_as_it_was(minilm: LoadedModel) -> None:
    before = capture(minilm, TEXT)
    own_heads(minilm, TEXT, layer=4)
    after = capture(minilm, TEXT)
    assert len(minilm.model.encoder.layer) == 6
    assert before.hidden is not None and after.hidden is not None
    assert torch.equal(before.hidden, after.hidden)


def test_threads_that_share_a_model_do_not_mix(minilm: LoadedModel) -> None:
    alone = [own_heads(minilm, TEXT, layer=layer)[1].query for layer in range(6)]
    whole = capture(minilm, TEXT).stacks["encoder"].layers[5].weights()

    def both(layer: int) -> tuple[Tensor, Tensor]:
        query = own_heads(minilm, TEXT, layer=layer)[1].query
        return query, capture(minilm, TEXT).stacks["encoder"].layers[5].weights()

    with ThreadPoolExecutor(4) as threads:
        for expected, (query, weights) in zip(alone, threads.map(both, range(6)), strict=True):
            torch.testing.assert_close(query, expected)
            torch.testing.assert_close(weights, whole)


def test_tokens_are_those_of_the_text_alone(minilm: LoadedModel) -> None:
    tokens, _ = own_heads(minilm, "[SEP] is typed here")
    assert not any(tokens.special)
    assert [LONG[slice(*span)].lower() for span in text_tokens(minilm, LONG).spans if span][:4] == [
        "some",
        "words",
        "are",
        "long",
    ]


def test_random_heads_come_from_the_seed_and_take_any_number_that_divides(
    minilm: LoadedModel,
) -> None:
    tokens, attention = own_heads(minilm, LONG, kind="random", n_heads=6, seed=3)
    assert attention.query.shape == (6, len(tokens), 64)
    again = own_heads(minilm, LONG, kind="random", n_heads=6, seed=3)[1]
    other = own_heads(minilm, LONG, kind="random", n_heads=6, seed=4)[1]
    assert torch.equal(attention.query, again.query)
    assert not torch.equal(attention.query, other.query)
    # Projections of variance 1/d_model on normalised vectors: queries of unit variance.
    assert float(attention.query.square().mean()) == pytest.approx(1.0, abs=0.1)
    with pytest.raises(ValueError, match="n_heads: got 7, which does not divide the 384"):
        own_heads(minilm, TEXT, kind="random", n_heads=7)


@pytest.mark.parametrize("kind", ["layer", "random"])
def test_a_mask_is_kept_as_a_rule(minilm: LoadedModel, kind: Any) -> None:
    attention = own_heads(minilm, TEXT, kind=kind, mask=causal())[1]
    weights = attention.weights()
    assert float(weights.triu(1).max()) == 0
    torch.testing.assert_close(weights.sum(-1), torch.ones(12, 6))


def test_a_long_text_draws_no_warning_from_the_tokenizer(
    minilm: LoadedModel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        own_heads(minilm, LONG)
    assert caplog.text == ""


def test_what_can_not_be_read_is_refused_with_a_sentence(
    minilm: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TextError, match="Please type some text"):
        own_heads(minilm, " \n ")
    assert MOST_TOKENS == 32_768
    monkeypatch.setattr("explorer.long_sources.MOST_TOKENS", 1_000)
    with pytest.raises(TextError, match="1,234 tokens, and at most 1,000 are shown at once"):
        own_heads(minilm, "a " * 1_234)
    with pytest.raises(ValueError, match="layer: got 6, but MiniLM L6 has layers 0 to 5"):
        own_heads(minilm, TEXT, layer=6)
    with pytest.raises(ValueError, match='kind: got "other"'):
        own_heads(minilm, TEXT, kind="other")


def test_a_model_with_attention_of_its_own_is_refused_and_random_heads_are_offered() -> None:
    own = loaded(small_model("bloom", KINDS["off-interface"][1]))
    with pytest.raises(ModelError, match="Choose our own random heads"):
        own_heads(own, TEXT)
    assert own_heads(own, TEXT, kind="random", n_heads=4)[1].n_heads == 4


def test_progress_rises_to_one_and_can_end_the_work(minilm: LoadedModel) -> None:
    shares: list[float] = []
    own_heads(minilm, LONG, progress=shares.append)
    assert shares == [pytest.approx(512 / 600), 1.0]

    class Stopped(Exception):
        pass

    def stop(share: float) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        own_heads(minilm, LONG, progress=stop)


def test_a_layer_without_attention_is_told() -> None:
    class Mixer(torch.nn.Module):
        def forward(self, hidden: Tensor, *others: Any, **more: Any) -> Tensor:
            return hidden.cumsum(1)

    model: Any = small_model("bert", LARGE)
    model.encoder.layer[1] = Mixer()
    with pytest.raises(ModelError, match="This layer of Small has no attention"):
        own_heads(loaded(model), TEXT, layer=1)


def test_local_and_full_layers_of_one_decoder_are_both_there() -> None:
    settings = {**GROUPED, "num_hidden_layers": 2, "sliding_window_pattern": 2, "sliding_window": 4}
    model: Any = small_model("gemma3_text", settings)
    for number in (0, 1):
        tokens, attention = own_heads(loaded(model), TEXT, layer=number)
        with torch.no_grad():
            layer = model.layers[number]
            x = layer.input_layernorm(model.embed_tokens(torch.tensor(tokens.ids)))
            query = layer.self_attn.q_norm(heads(layer.self_attn.q_proj(x), 4))
        torch.testing.assert_close(attention.query, query)
        assert attention.mask is None
