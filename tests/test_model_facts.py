"""model_facts(): what is said of a model equals what its configuration says, written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel

from explorer.capture import capture
from explorer.interventions import Intervention
from explorer.model_facts import LayerFacts, ModelFacts, model_facts, weights_of
from explorer.model_list import listed
from explorer.models import LoadedModel, ModelError, load
from tests.page_models import BYTES, GROUPED, KINDS, byte_tokenizer
from tests.small_models import SMALL, SMALL_VIT, small_model

MORE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "gemma": (
        "gemma2",
        {
            **GROUPED,
            "sliding_window": 4,
            "layer_types": ["sliding_attention", "full_attention"],
            "query_pre_attn_scalar": 24,
            "attn_logit_softcapping": 5.0,
        },
    ),
    "opt": (
        "opt",
        {
            **BYTES,
            "hidden_size": 32,
            "ffn_dim": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "word_embed_proj_dim": 32,
            "max_position_embeddings": 64,
        },
    ),
    "llama": ("llama", GROUPED),
    "one-key": ("llama", {**GROUPED, "num_key_value_heads": 1}),
    "mamba": ("mamba", {"vocab_size": 259, "hidden_size": 16, "num_hidden_layers": 2}),
}
Opened = Callable[[str], LoadedModel]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """A small model of a kind, saved to a folder and loaded from it."""
    root = tmp_path_factory.mktemp("models")

    def open_kind(kind: str) -> LoadedModel:
        model_type, settings = {**KINDS, **MORE}[kind]
        small_model(model_type, settings, model_class=AutoModel).save_pretrained(root / kind)
        byte_tokenizer().save_pretrained(root / kind)
        return load(str(root / kind), "cpu")

    return open_kind


def layer(stack: str, number: int, **other: Any) -> LayerFacts:
    """A plain layer of 4 heads of size 8, with what is different."""
    usual: dict[str, Any] = {
        "n_heads": 4,
        "n_kv_heads": 4,
        "d_k": 8,
        "d_v": 8,
        "scale": 1 / math.sqrt(8),
        "prescaled": False,
        "mask": "causal",
        "softcap": None,
        "sinks": False,
        "bias": False,
        "device": "cpu",
    }
    return LayerFacts(stack, number, **{**usual, **other})


def nearly(layers: Sequence[LayerFacts]) -> list[LayerFacts]:
    """The same with scales to 6 decimals, as models compute them in their own way."""
    return [
        replace(one, scale=None if one.scale is None else round(one.scale, 6)) for one in layers
    ]


def t5(stack: str, number: int, mask: str, bias: bool) -> LayerFacts:
    return layer(stack, number, scale=1.0, mask=mask, bias=bias)


GEMMA = {"n_kv_heads": 2, "scale": 24**-0.5, "softcap": 5.0}
SINKS = {"n_kv_heads": 2, "sinks": True}
BY_HAND: Mapping[str, list[LayerFacts]] = {
    "gemma": [
        layer("decoder", 0, **GEMMA, mask="sliding window of 4"),
        layer("decoder", 1, **GEMMA),
    ],
    "sinks": [
        layer("decoder", 0, **SINKS, mask="sliding window of 128"),
        layer("decoder", 1, **SINKS),
    ],
    "two-stacks": [
        *(t5("encoder", n, "none", True) for n in range(2)),
        *(t5("decoder", n, "causal", True) for n in range(3)),
        *(t5("cross", n, "none", False) for n in range(3)),
    ],
    "opt": [layer("decoder", n, prescaled=True) for n in range(2)],
    "llama": [layer("decoder", n, n_kv_heads=2) for n in range(2)],
    "one-key": [layer("decoder", n, n_kv_heads=1) for n in range(2)],
    "window": [layer("decoder", n, n_kv_heads=2, mask="sliding window of 3") for n in range(2)],
    "causal": [layer("decoder", n) for n in range(2)],
    "twelve-layers": [
        layer("encoder", n, n_heads=16, n_kv_heads=16, d_k=2, d_v=2, scale=2**-0.5, mask="none")
        for n in range(12)
    ],
}


@pytest.mark.parametrize("kind", BY_HAND)
def test_each_layer_is_what_the_configuration_says(kind: str, opened: Opened) -> None:
    facts = model_facts(opened(kind))
    assert not facts.read_only
    assert nearly(facts.layers) == nearly(BY_HAND[kind])


@pytest.mark.parametrize(
    ("kind", "rule", "sharing"),
    [
        ("gemma", "1/√24", "shared by groups"),
        ("two-stacks", "1", "each head its own"),
        ("opt", "1/√d_k", "each head its own"),
        ("one-key", "1/√d_k", "one for all heads"),
    ],
)
def test_the_scale_is_named_as_a_rule_and_sharing_in_words(
    kind: str, rule: str, sharing: str, opened: Opened
) -> None:
    facts = model_facts(opened(kind))
    assert {one.rule for one in facts.layers} == {rule}
    assert {one.kind for one in facts.layers} == {sharing}


def test_a_scale_that_is_no_root_is_told_as_a_share_of_the_usual_one() -> None:
    assert layer("decoder", 1, scale=0.9 / math.sqrt(8)).rule == "0.9 × 1/√d_k"
    assert layer("decoder", 1, d_k=None).rule is None


def test_the_bundled_model_has_six_layers_of_twelve_heads_of_size_32() -> None:
    facts = model_facts(load("minilm", "cpu"))
    assert (facts.title, facts.family, facts.class_name) == ("MiniLM L6", "bert", "BertModel")
    assert facts.max_tokens == 512
    (stack,) = facts.stacks
    assert (stack.name, stack.n_layers, len(stack.layers)) == ("encoder", 6, 6)
    sizes = {(one.n_heads, one.n_kv_heads, one.d_k, one.d_v, one.mask) for one in facts.layers}
    assert sizes == {(12, 12, 32, 32, "none")}


def test_weights_are_counted_by_hand() -> None:
    bert = small_model("bert", {**SMALL, **BYTES, "num_hidden_layers": 1})
    d, ffn = 32, 48
    embeddings = (259 + 512 + 2) * d + 2 * d  # words, positions, segments, their norm
    attention = 4 * (d * d + d) + 2 * d  # W_Q, W_K, W_V, W_O, the norm
    feed_forward = d * ffn + ffn + ffn * d + d + 2 * d
    pooler = d * d + d
    found = weights_of(bert)
    assert found.parameters == embeddings + attention + feed_forward + pooler
    buffers = 2 * 512 * 8  # numbers of positions and segments, as int64
    assert found.bytes == 4 * found.parameters + buffers
    assert (found.dtypes, found.devices) == (("float32",), ("cpu",))


def test_shared_weights_are_counted_once_and_formats_by_size() -> None:
    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Linear(3, 5, bias=False)
            self.b = torch.nn.Linear(3, 5, bias=False)
            self.b.weight = self.a.weight
            self.c = torch.nn.Parameter(torch.zeros(4, dtype=torch.bfloat16))

    found = weights_of(Two())
    assert (found.parameters, found.bytes) == (19, 15 * 4 + 4 * 2)
    assert found.dtypes == ("float32", "bfloat16")


def test_a_model_off_the_interface_is_read_only_and_says_what_is_not_known(opened: Opened) -> None:
    facts = model_facts(opened("off-interface"))
    assert facts.read_only
    assert [(one.stack, one.layer, one.n_heads) for one in facts.layers] == [
        ("decoder", 0, 4),
        ("decoder", 1, 4),
    ]
    for one in facts.layers:
        assert (one.n_kv_heads, one.d_k, one.scale, one.mask, one.rule) == (None,) * 5
        assert one.kind == "unknown"


def test_a_model_without_attention_is_refused_in_a_sentence(opened: Opened) -> None:
    with pytest.raises(ModelError, match=r"\(mamba\) has no attention heads, so there is nothing"):
        opened("mamba")


def test_a_model_without_a_tokenizer_shows_its_layers_all_the_same(tmp_path: Path) -> None:
    small_model("bert", {**SMALL, **BYTES}).save_pretrained(tmp_path / "words")
    facts = model_facts(load(str(tmp_path / "words"), "cpu"))
    assert nearly(facts.layers) == nearly([layer("encoder", n, mask="none") for n in range(2)])
    small_model("vit", SMALL_VIT).save_pretrained(tmp_path / "patches")
    facts = model_facts(load(str(tmp_path / "patches"), "cpu"))
    assert nearly(facts.layers) == nearly([layer("encoder", n, mask="none") for n in range(2)])


def test_facts_are_of_any_text_but_not_of_a_changed_run(opened: Opened) -> None:
    loaded = opened("causal")
    seen = capture(loaded, "Another.")
    facts: ModelFacts = model_facts(loaded, seen)
    assert facts == model_facts(loaded)
    changed = seen.changed([Intervention("decoder", scale_times=2.0)])
    with pytest.raises(ValueError, match="need one without"):
        model_facts(loaded, changed)


def test_a_folder_is_listed_without_loading_it(tmp_path: Path) -> None:
    model_type, settings = KINDS["twelve-layers"]
    small_model(model_type, settings).save_pretrained(tmp_path / "bert")
    found = listed(str(tmp_path / "bert"), "local:bert")
    assert (found.family, found.n_layers, found.n_heads, found.problem) == ("bert", 12, 16, None)
    assert found.bytes == (tmp_path / "bert" / "model.safetensors").stat().st_size


def test_a_folder_that_cannot_be_opened_is_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    found = listed(str(tmp_path), "local:broken")
    assert found.family is None and found.problem is not None
    assert found.problem.startswith("The config.json of 'local:broken' cannot be read")
    assert str(tmp_path) not in found.problem
