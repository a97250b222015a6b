"""Every family through our attention, against the same weights in its own eager attention.

Compared: the model's output, every weight of every layer, and what a record says of itself, with
padding in the batch. The expected masks and scales are written here by hand.
Run `pytest tests/test_capture.py -s -k summary` for the largest difference of each family.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, AutoModelForCausalLM, PreTrainedModel

from explorer.attention import Attention
from explorer.capture import Capture, capture_inputs
from explorer.masks import Mask
from tests.small_models import (
    SMALL,
    SMALL_GROUPED,
    SMALL_SEQ2SEQ,
    SMALL_T5,
    SMALL_VIT,
    ids,
    padded,
    small_model,
    tokens_of,
)

LENGTHS = (9, 12)  # of the two sequences in each batch, padded to 12
TARGET_LENGTHS = (7, 5)  # of what a decoder reads, padded to 7
TOLERANCE = 1e-5

Window = tuple[int, int] | None
"""How many keys before and after its own position a query may use; None for no window."""


@dataclass(frozen=True)
class Expected:
    """What one stack must say of itself."""

    layers: int
    scale: float = 1 / math.sqrt(8)  # d_k is 8 in all these models, unless said otherwise
    effective_scale: float | None = None  # where the queries come scaled into the call
    n_kv_heads: int = 4
    causal: bool = False
    windows: tuple[Window, ...] = ()  # for each layer; () for no windows at all
    mask_names: tuple[str, ...] = ()
    softcap: float | None = None
    sinks: bool = False
    bias: bool = False


@dataclass(frozen=True)
class Family:
    """A family: its small configuration, and what its stacks must be."""

    model_type: str
    settings: Mapping[str, Any]
    stacks: Mapping[str, Expected]
    inputs: str = "text"  # or "pair of texts", "image", "sound"
    sides: tuple[str, ...] = ("right",)
    model_class: Any = AutoModel
    has_sdpa: bool = True
    name: str = ""
    pad_id: int = field(default=0)


def encoder(model_type: str, settings: Mapping[str, Any] = SMALL, **others: Any) -> Family:
    expected = others.pop("expected", Expected(2))
    return Family(model_type, settings, {"encoder": expected}, **others)


def decoder(model_type: str, settings: Mapping[str, Any], **others: Any) -> Family:
    about = {"layers": 2, "causal": True}
    names = Expected.__dataclass_fields__
    about |= {name: others.pop(name) for name in list(others) if name in names}
    return Family(
        model_type, settings, {"decoder": Expected(**about)}, sides=("left", "right"), **others
    )


def seq2seq(model_type: str, settings: Mapping[str, Any], **others: Any) -> Family:
    about: dict[str, Any] = others.pop("about", {})
    bias = about.get("bias", False)
    stacks = {
        "encoder": Expected(2, **about),
        "decoder": Expected(3, causal=True, **about),
        "cross": Expected(3, **about | {"bias": bias}),
    }
    return Family(model_type, settings, stacks, inputs="pair of texts", **others)


GPT2 = {
    "vocab_size": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
T5 = {
    **SMALL_T5,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "pad_token_id": 0,
    "eos_token_id": 1,
}
LOCAL_THEN_FULL = ["sliding_attention", "full_attention"]
WINDOW_OF_4 = (3, 0)
NAMES_OF_LOCAL_THEN_FULL = ("sliding window of 4", "causal")

FAMILIES = [
    encoder("bert"),
    encoder("roberta", {**SMALL, "pad_token_id": 1, "bos_token_id": 0}, pad_id=1),
    encoder(
        "distilbert",
        {"vocab_size": 64, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4},
    ),
    encoder(
        "albert", {**SMALL, "embedding_size": 16, "num_hidden_layers": 3}, expected=Expected(3)
    ),
    encoder("electra", {**SMALL, "embedding_size": 16}),
    encoder(
        "modernbert",
        {
            **SMALL,
            "num_hidden_layers": 3,
            "local_attention": 6,
            "max_position_embeddings": 64,
            "cls_token_id": 1,
            "sep_token_id": 2,
        },
        expected=Expected(
            3,
            windows=(None, (3, 3), (3, 3)),
            mask_names=("", *("sliding window of 3 on either side",) * 2),
        ),
    ),
    Family(
        "vit",
        SMALL_VIT,
        {"encoder": Expected(2)},
        inputs="image",
        sides=("none",),
    ),
    decoder("gpt2", GPT2),
    decoder("gpt2", GPT2, name="gpt2 with a head", model_class=AutoModelForCausalLM),
    decoder(
        "gpt2",
        {**GPT2, "scale_attn_by_inverse_layer_idx": True},
        name="gpt2 scaled by layer",
        scale=-1.0,  # checked by hand below: each layer has its own
    ),
    decoder("gpt_neox", {**SMALL, "max_position_embeddings": 64}),
    decoder("gptj", {**GPT2, "rotary_dim": 4}),
    decoder(
        "opt",
        {
            "vocab_size": 64,
            "hidden_size": 32,
            "ffn_dim": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "word_embed_proj_dim": 32,
            "max_position_embeddings": 64,
        },
        pad_id=1,
        scale=1.0,  # its queries come already scaled
        effective_scale=1 / math.sqrt(8),
    ),
    decoder("llama", SMALL_GROUPED, n_kv_heads=2),
    decoder(
        "mistral",
        {**SMALL_GROUPED, "sliding_window": 4},
        n_kv_heads=2,
        windows=(WINDOW_OF_4, WINDOW_OF_4),
        mask_names=("sliding window of 4", "sliding window of 4"),
    ),
    decoder("qwen2", SMALL_GROUPED, n_kv_heads=2),
    decoder("qwen3", SMALL_GROUPED, n_kv_heads=2),
    decoder(
        "gemma2",
        {
            **SMALL_GROUPED,
            "sliding_window": 4,
            "layer_types": LOCAL_THEN_FULL,
            "query_pre_attn_scalar": 24,
            "attn_logit_softcapping": 5.0,
        },
        n_kv_heads=2,
        scale=24**-0.5,
        softcap=5.0,
        windows=(WINDOW_OF_4, None),
        mask_names=NAMES_OF_LOCAL_THEN_FULL,
        has_sdpa=False,
    ),
    decoder(
        "gemma3_text",
        {
            **SMALL_GROUPED,
            "sliding_window": 4,
            "layer_types": LOCAL_THEN_FULL,
            "query_pre_attn_scalar": 24,
        },
        n_kv_heads=2,
        scale=24**-0.5,
        windows=(WINDOW_OF_4, None),
        mask_names=NAMES_OF_LOCAL_THEN_FULL,
    ),
    decoder("phi", {**SMALL, "max_position_embeddings": 64}),
    decoder("phi3", {**SMALL_GROUPED}, n_kv_heads=2),
    decoder(
        "gpt_oss",
        {
            **SMALL_GROUPED,
            "sliding_window": 4,
            "layer_types": LOCAL_THEN_FULL,
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
        },
        n_kv_heads=2,
        sinks=True,
        windows=(WINDOW_OF_4, None),
        mask_names=NAMES_OF_LOCAL_THEN_FULL,
        has_sdpa=False,
    ),
    decoder("smollm3", SMALL_GROUPED, n_kv_heads=2),
    decoder("olmo2", SMALL_GROUPED, n_kv_heads=2),
    seq2seq("t5", T5, about={"scale": 1.0, "bias": True}),
    seq2seq("bart", SMALL_SEQ2SEQ),
    seq2seq("marian", SMALL_SEQ2SEQ),
    Family(
        "whisper",
        {
            **SMALL_SEQ2SEQ,
            "num_mel_bins": 8,
            "max_source_positions": 12,
            "max_target_positions": 16,
        },
        {
            "encoder": Expected(2, scale=1.0, effective_scale=1 / math.sqrt(8)),
            "decoder": Expected(3, scale=1.0, effective_scale=1 / math.sqrt(8), causal=True),
            "cross": Expected(3, scale=1.0, effective_scale=1 / math.sqrt(8)),
        },
        inputs="sound",
    ),
]
CASES = [
    pytest.param(family, side, id=f"{family.name or family.model_type}-{side}")
    for family in FAMILIES
    for side in family.sides
]
matrix = pytest.mark.parametrize(("family", "side"), CASES)


pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass(frozen=True)
class Run:
    """One family's batch, through our attention and through its own."""

    ours: PreTrainedModel
    inputs: dict[str, Tensor]
    real: Tensor  # (batch, source length): True where there is no padding
    target_real: Tensor | None
    captures: list[Capture]
    theirs: Any

    def real_of(self, stack: str) -> tuple[Tensor, Tensor]:
        """Which queries and which keys of a stack are no padding, for each sequence."""
        source, target = self.real, self.target_real
        if target is None or stack == "encoder":
            return source, source
        return target, source if stack == "cross" else target

    def their_weights(self, stack: str) -> tuple[Tensor, ...]:
        name = "attentions" if self.target_real is None else f"{stack}_attentions"
        given: tuple[Tensor, ...] = self.theirs["cross_attentions" if stack == "cross" else name]
        return given


def batch_for(family: Family, side: str) -> tuple[dict[str, Tensor], Tensor, Tensor | None]:
    """The inputs, and where source and target are no padding."""
    if family.inputs == "image":
        pixels = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
        return {"pixel_values": pixels}, torch.ones(2, 17, dtype=torch.bool), None  # [CLS], 4 × 4
    if family.inputs == "sound":
        features = torch.randn(2, 8, 24, generator=torch.Generator().manual_seed(1))
        inputs = {"input_features": features, "decoder_input_ids": ids(2, 7, seed=2)}
        return inputs, torch.ones(2, 12, dtype=torch.bool), torch.ones(2, 7, dtype=torch.bool)
    inputs = padded(LENGTHS, side, family.pad_id, seed=1)
    real = inputs["attention_mask"].bool()
    if family.inputs == "text":
        return inputs, real, None
    target = padded(TARGET_LENGTHS, "right", family.pad_id, seed=2)
    inputs["decoder_input_ids"] = target["input_ids"]
    inputs["decoder_attention_mask"] = target["attention_mask"]
    return inputs, real, target["attention_mask"].bool()


@cache
def run(model_type: str, name: str, side: str) -> Run:
    family = next(f for f in FAMILIES if (f.model_type, f.name) == (model_type, name))
    loaded_as = "sdpa" if family.has_sdpa else "eager"
    ours = small_model(family.model_type, family.settings, loaded_as, family.model_class)
    eager = small_model(family.model_type, family.settings, "eager", family.model_class, seed=1)
    eager.load_state_dict(ours.state_dict())
    inputs, real, target_real = batch_for(family, side)
    captures = capture_inputs(
        ours, inputs, tokens_of(real), None if target_real is None else tokens_of(target_real)
    )
    with torch.no_grad():
        theirs = eager(**inputs, output_attentions=True)
    return Run(ours, inputs, real, target_real, captures, theirs)


def run_of(family: Family, side: str) -> Run:
    return run(family.model_type, family.name, side)


def written_mask(expected: Expected, layer: int, real_keys: Tensor, n_q: int) -> Tensor:
    """What a query may use, cell by cell, (n_q, n_k)."""
    n_k = len(real_keys)
    window = expected.windows[layer] if expected.windows else None
    table = torch.zeros(n_q, n_k, dtype=torch.bool)
    for q in range(n_q):
        for k in range(n_k):
            near = window is None or q - window[0] <= k <= q + window[1]
            table[q, k] = real_keys[k] and near and (k <= q or not expected.causal)
    return table


def output_of(outputs: Any) -> Tensor:
    output: Tensor = outputs["logits"] if "logits" in outputs else outputs["last_hidden_state"]
    return output


def largest(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, infinite where one is not a number."""
    return float((ours - theirs).abs().nan_to_num(math.inf).max())


def differences(family: Family, side: str) -> tuple[float, float]:
    """The largest difference of any weight, and of any output, padded queries left out."""
    its_run = run_of(family, side)
    weights = output = 0.0
    for number, its_capture in enumerate(its_run.captures):
        for name, stack in its_capture.stacks.items():
            rows = its_run.real_of(name)[0][number]
            for layer, theirs in zip(stack.layers, its_run.their_weights(name), strict=True):
                gap = largest(layer.weights()[:, rows], theirs[number][:, rows])
                weights = max(weights, gap)
        ours = its_capture.hidden if its_capture.hidden is not None else its_capture.logits
        assert ours is not None
        rows = (its_run.real if its_run.target_real is None else its_run.target_real)[number]
        output = max(output, largest(ours[rows], output_of(its_run.theirs)[number][rows]))
    return weights, output


@matrix
def test_weights_and_outputs_are_those_of_the_models_own_eager_attention(
    family: Family, side: str
) -> None:
    weights, output = differences(family, side)
    assert weights <= TOLERANCE, f"the largest difference of a weight is {weights:.1e}"
    assert output <= TOLERANCE, f"the largest difference of an output is {output:.1e}"


def test_summary_of_the_largest_differences() -> None:
    for case in CASES:
        family, side = case.values
        weights, output = differences(family, side)
        print(f"{case.id:28} weights {weights:.1e}  output {output:.1e}")


@matrix
def test_a_real_query_has_the_keys_that_its_family_allows_and_no_weight_elsewhere(
    family: Family, side: str
) -> None:
    its_run = run_of(family, side)
    for number, its_capture in enumerate(its_run.captures):
        for name, stack in its_capture.stacks.items():
            real_queries, real_keys = (real[number] for real in its_run.real_of(name))
            for at, layer in enumerate(stack.layers):
                may = written_mask(family.stacks[name], at, real_keys, layer.query_length)
                allowed = layer.allowed().expand(layer.n_heads, -1, -1)
                expected = may[real_queries].expand(layer.n_heads, -1, -1)
                assert torch.equal(allowed[:, real_queries], expected)
                weights = layer.weights()[:, real_queries]
                assert float(weights.masked_fill(expected, 0).abs().max()) == 0.0
                assert bool((weights[expected] > 0).all())
                if not family.stacks[name].sinks:
                    torch.testing.assert_close(
                        weights.sum(-1), torch.ones(weights.shape[:2]), atol=1e-5, rtol=0
                    )


@matrix
def test_stacks_have_their_names_lengths_layers_and_padding(family: Family, side: str) -> None:
    its_run = run_of(family, side)
    for number, its_capture in enumerate(its_run.captures):
        assert list(its_capture.stacks) == list(family.stacks)
        for name, expected in family.stacks.items():
            stack = its_capture.stacks[name]
            queries, keys = its_run.real_of(name)
            assert stack.name == name
            assert stack.layer_numbers == tuple(range(expected.layers))
            assert stack.n_layers == expected.layers
            assert (stack.n_heads, stack.read_only) == (4, False)
            assert stack.query_tokens.texts[:2] == ("t0", "t1")
            assert len(stack.query_tokens) == queries.shape[1]
            assert len(stack.key_tokens) == keys.shape[1]
            assert stack.padded_queries.tolist() == (~queries[number]).tolist()
            assert list(stack.key_tokens.padding) == (~keys[number]).tolist()
            for layer in stack.layers:
                assert (layer.query_length, layer.key_length) == (queries.shape[1], keys.shape[1])
                assert layer.n_heads == 4


@matrix
def test_scale_heads_and_further_terms_are_those_that_the_family_defines(
    family: Family, side: str
) -> None:
    for its_capture in run_of(family, side).captures:
        for name, expected in family.stacks.items():
            for at, layer in enumerate(its_capture.stacks[name].layers):
                assert isinstance(layer, Attention)
                scale = expected.scale
                if family.name == "gpt2 scaled by layer":
                    scale = 1 / math.sqrt(8) / (at + 1)
                effective = expected.effective_scale or scale
                assert layer.scale == pytest.approx(scale, rel=1e-6)
                assert layer.effective_scale == pytest.approx(effective, rel=1e-6)
                assert (layer.d_k, layer.n_kv_heads) == (8, expected.n_kv_heads)
                assert layer.softcap == expected.softcap
                assert (layer.sinks is not None) == expected.sinks
                assert (layer.bias is not None) == expected.bias


@matrix
def test_masks_stay_rules_and_say_what_they_are(family: Family, side: str) -> None:
    for number, its_capture in enumerate(run_of(family, side).captures):
        for name, expected in family.stacks.items():
            has_padding = not bool(run_of(family, side).real_of(name)[1][number].all())
            for at, layer in enumerate(its_capture.stacks[name].layers):
                assert isinstance(layer, Attention)
                kept = [layer.mask] if layer.mask is None else [layer.mask.rule, layer.mask]
                assert not any(isinstance(part, Tensor) for part in kept)
                assert layer.mask is None or isinstance(layer.mask, Mask)
                plain = "causal" if expected.causal else ""
                own = expected.mask_names[at] if expected.mask_names else plain
                parts = [own] * bool(own) + ["padding"] * has_padding
                said = {0: None, 1: "".join(parts), 2: "(" + " and ".join(parts) + ")"}[len(parts)]
                assert (layer.mask and layer.mask.name) == said


@matrix
def test_the_comparison_with_the_models_own_attention_finds_no_difference(
    family: Family, side: str
) -> None:
    difference = run_of(family, side).captures[0].difference
    assert difference is not None
    assert difference.weights <= TOLERANCE
    assert difference.output <= TOLERANCE


@matrix
def test_a_model_that_runs_our_attention_gives_the_outputs_that_it_gave_before(
    family: Family, side: str
) -> None:
    its_run = run_of(family, side)
    loaded_as = "sdpa" if family.has_sdpa else "eager"
    plain = small_model(family.model_type, family.settings, loaded_as, family.model_class)
    rows = its_run.real if its_run.target_real is None else its_run.target_real
    with torch.no_grad():
        before = output_of(plain(**its_run.inputs))
        after = output_of(its_run.ours(**its_run.inputs))
    assert largest(before[rows], after[rows]) <= 2e-6 * float(before[rows].abs().max())


def test_llamas_query_heads_share_key_heads_in_pairs() -> None:
    llama = next(family for family in FAMILIES if family.model_type == "llama")
    layer = run_of(llama, "right").captures[1].stacks["decoder"].layers[0]
    assert isinstance(layer, Attention)
    for head in range(4):
        by_hand = layer.query[head] @ layer.key[head // 2].T / math.sqrt(8)
        torch.testing.assert_close(layer.scores(heads=[head])[0], by_hand)


def test_a_learned_sink_takes_a_share_of_every_row() -> None:
    gpt_oss = next(family for family in FAMILIES if family.model_type == "gpt_oss")
    layer = run_of(gpt_oss, "right").captures[1].stacks["decoder"].layers[1]
    assert isinstance(layer, Attention) and layer.sinks is not None
    scores = layer.scores().masked_fill(~torch.ones(12, 12).tril().bool(), -math.inf)
    sink = layer.sinks.exp()[:, None]
    share = sink / (sink + scores.exp().sum(-1))
    torch.testing.assert_close(1 - layer.weights().sum(-1), share, atol=1e-5, rtol=1e-4)
    assert bool((share > 0.001).all())
