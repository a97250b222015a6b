"""Continuing a text: against transformers' own generate, and what interventions change."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from explorer.capture import capture
from explorer.continuing import continue_text
from explorer.interventions import Intervention
from explorer.models import LoadedModel, ModelError, load
from tests.page_models import BYTES, GROUPED, KINDS, byte_tokenizer
from tests.small_models import small_model

CAUSAL = {
    "llama": ("llama", GROUPED),
    "gpt2": ("gpt2", {**BYTES, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 24}),
}
OFF = Intervention("decoder", (0,), output="off")


@pytest.fixture(scope="module", params=list(CAUSAL))
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = tmp_path_factory.mktemp(request.param)
    model_type, settings = CAUSAL[request.param]
    small_model(model_type, settings, model_class=AutoModelForCausalLM).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return load(str(folder))


def test_the_likeliest_tokens_are_those_that_generate_gives(loaded: LoadedModel) -> None:
    own = capture(loaded, "abc abd")
    found = [each.id for each in continue_text(loaded, own, 10)]
    ids = torch.tensor([own.tokens.ids])
    theirs = loaded.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=10, do_sample=False
    )[0, ids.shape[1] :].tolist()
    assert found == theirs[: len(found)]
    assert len(found) == 10 or found[-1] == 2


def test_each_token_comes_with_the_run_that_chose_it(loaded: LoadedModel) -> None:
    own = capture(loaded, "ab")
    found = list(continue_text(loaded, own, 4))
    for step, each in enumerate(found):
        stack = each.capture.stacks["decoder"]
        assert len(stack.query_tokens) == len(own.tokens) + step
        assert stack.layers[0].query_length == len(own.tokens) + step
        assert each.capture.logits is not None
        probabilities = torch.softmax(each.capture.logits[-1], -1)
        assert each.id == int(probabilities.argmax())
        assert each.probability == pytest.approx(float(probabilities.max()), rel=1e-5)
    assert found[-1].text == loaded.tokenizer.decode([each.id for each in found])  # type: ignore[union-attr]


def test_an_intervention_acts_in_every_run(loaded: LoadedModel) -> None:
    own = capture(loaded, "abc abd")
    plain = list(continue_text(loaded, own, 6))
    changed = list(continue_text(loaded, own, 6, [OFF]))
    assert [each.id for each in plain] != [each.id for each in changed] or (
        plain[0].probability != pytest.approx(changed[0].probability, rel=1e-3)
    )
    for each in changed:
        assert each.capture.stacks["decoder"].layers[0].output().abs().max() == 0  # type: ignore[union-attr]


def test_sampling_is_reproducible_and_keeps_to_the_likeliest_k(loaded: LoadedModel) -> None:
    own = capture(loaded, "abc")
    settings = {"temperature": 2.0, "top_k": 3, "seed": 5}
    first = list(continue_text(loaded, own, 8, **settings))  # type: ignore[arg-type]
    again = list(continue_text(loaded, own, 8, **settings))  # type: ignore[arg-type]
    assert [each.id for each in first] == [each.id for each in again]
    for each in first:
        assert each.capture.logits is not None
        assert each.id in each.capture.logits[-1].topk(3).indices.tolist()
    greedy = list(continue_text(loaded, own, 8, temperature=5.0, top_k=1))
    assert [each.id for each in greedy] == [each.id for each in continue_text(loaded, own, 8)]


def test_it_stops_at_the_models_limit(tmp_path: Path) -> None:
    model_type, settings = CAUSAL["gpt2"]
    small_model(model_type, settings, model_class=AutoModelForCausalLM).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    loaded = load(str(tmp_path))
    loaded.model.config.eos_token_id = None
    own = capture(loaded, "x" * 20)
    assert len(own.tokens) == 21
    assert len(list(continue_text(loaded, own, 50))) == 3


def test_an_encoder_decoder_writes_on_at_its_target(tmp_path: Path) -> None:
    model_type, settings = KINDS["two-stacks"]
    small_model(model_type, settings, model_class=AutoModelForSeq2SeqLM).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    loaded = load(str(tmp_path))
    own = capture(loaded, "abc")
    found = [each.id for each in continue_text(loaded, own, 5)]
    ids = torch.tensor([own.tokens.ids])
    theirs = loaded.model.generate(
        ids, attention_mask=torch.ones_like(ids), use_cache=False, max_new_tokens=5, do_sample=False
    )[0, 1:].tolist()
    assert found == theirs[: len(found)]


def test_a_model_that_writes_nothing_says_so() -> None:
    loaded = load("minilm")
    with pytest.raises(ModelError, match="writes no text"):
        next(continue_text(loaded, capture(loaded, "A cat."), 3))


@pytest.mark.parametrize(("name", "value"), [("temperature", -1.0), ("top_k", 0)])
def test_settings_that_make_no_sense_are_refused(
    loaded: LoadedModel, name: str, value: float
) -> None:
    with pytest.raises(ValueError, match=name):
        next(continue_text(loaded, capture(loaded, "ab"), 3, **{name: value}))  # type: ignore[arg-type]
