"""Real heads against the assumption behind 1/√d_k: every number from NumPy on full tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from torch import Tensor
from transformers import AutoConfig, AutoModel

from explorer.attention import Attention
from explorer.capture import GivenWeights, Stack, capture_inputs
from explorer.head_findings import finding
from explorer.head_scaling import (
    SCALES,
    SOFTMAX,
    layer_softmax,
    layer_variances,
    predicted_variance,
    rescaled,
    softmax_table,
    times,
    variance_table,
)
from explorer.masks import Mask, causal, custom, padding, sliding_window
from explorer.score_histogram import score_histogram
from tests.small_models import (
    SMALL,
    SMALL_GROUPED,
    SMALL_SEQ2SEQ,
    SMALL_T5,
    ids,
    padded,
    small_model,
    tokens_of,
)


def attention(
    n_heads: int = 2, n_q: int = 5, n_k: int = 5, n_kv_heads: int | None = None, **options: Any
) -> Attention:
    kv = n_kv_heads or n_heads
    shapes = (n_heads, n_q, 4), (kv, n_k, 4), (kv, n_k, 3)
    return Attention(*(torch.randn(*shape) + 0.3 for shape in shapes), **options)


@dataclass
class SmallStack:
    layers: list[Any]
    padded_queries: Tensor = field(default_factory=lambda: torch.zeros(5, dtype=torch.bool))
    layer_numbers: tuple[int, ...] = (3,)
    name: str = "encoder"


# Written out in NumPy, from the definitions and on full tables


def numpy_of(
    layer: Attention, scale: float, padded_queries: np.ndarray | None = None
) -> list[dict[str, float]]:
    """Each head's numbers with this whole factor on q·k, pair after pair."""
    q = layer.query.double().numpy() / layer.prescale
    k = layer.key.double().numpy()
    n_heads, n_q, _ = q.shape
    n_k, group = k.shape[1], n_heads // k.shape[0]
    mask = layer.allowed().expand(n_heads, n_q, n_k).numpy()
    bias = np.zeros((1, 1, 1)) if layer.bias is None else layer.bias.double().numpy()
    bias = np.broadcast_to(bias, (n_heads, n_q, n_k))
    found = []
    for h in range(n_heads):
        rows = [
            i
            for i in range(n_q)
            if mask[h, i].sum() > 1 and not (padded_queries is not None and padded_queries[i])
        ]
        dots = q[h] @ k[h // group].T
        scores = dots * scale
        if layer.softcap is not None:
            scores = layer.softcap * np.tanh(scores / layer.softcap)
        scores = scores + bias[h]
        numbers: dict[str, float] = {"queries": len(rows)}
        for name, table in (("dots", dots), ("scores", scores)):
            every = np.concatenate([table[i, mask[h, i]] for i in rows])
            numbers[f"{name}_mean"] = every.mean()
            numbers[f"{name}_variance"] = every.var()
            numbers[f"{name}_row_variance"] = np.mean([table[i, mask[h, i]].var() for i in rows])
        used = [j for j in range(n_k) if any(mask[h, i, j] for i in rows)]
        queries, keys = q[h][rows], k[h // group][used]
        pair, row = 0.0, 0.0
        for c in range(q.shape[-1]):
            mq, vq = queries[:, c].mean(), queries[:, c].var()
            mk, vk = keys[:, c].mean(), keys[:, c].var()
            pair += (vq + mq**2) * (vk + mk**2) - mq**2 * mk**2
            row += (vq + mq**2) * vk
        numbers |= {"dots_predicted": pair, "dots_row_predicted": row}
        numbers |= {"scores_predicted": pair * scale**2, "scores_row_predicted": row * scale**2}
        softmax: dict[str, list[float]] = {name: [] for name in SOFTMAX}
        for i in rows:
            top = scores[i, mask[h, i]]
            if layer.sinks is not None:
                top = np.append(top, float(layer.sinks[h].detach()))
            weights = np.exp(top - top.max()) / np.exp(top - top.max()).sum()
            weights = weights[: mask[h, i].sum()]
            spread = -sum(w * math.log(w) for w in weights if w > 0)
            softmax["entropy"].append(spread)
            softmax["entropy_share"].append(spread / math.log(mask[h, i].sum()))
            softmax["largest_weight"].append(weights.max())
            softmax["effective_keys"].append(math.exp(spread))
        found.append(numbers | {name: np.mean(values) for name, values in softmax.items()})
    return found


def check(layer: Attention, padded_queries: Tensor | None = None) -> None:
    """All numbers of a layer, with its own scale and with four others, against NumPy's."""
    flags = None if padded_queries is None else padded_queries.numpy()
    every = [*SCALES.values(), times(0.25), times(4)]
    for scale in every:
        expected = numpy_of(layer, scale.of(layer), flags)
        found = layer_softmax(layer, scale, padded_queries)
        if scale is SCALES["own"]:
            found |= layer_variances(layer, padded_queries)
        for name, values in found.items():
            wanted = [numbers[name] for numbers in expected]
            np.testing.assert_allclose(
                values.numpy(), wanted, rtol=2e-5, atol=2e-5, err_msg=f"{name}, {scale.title}"
            )


MASKS: dict[str, Mask | None] = {
    "none": None,
    "causal": causal(),
    "window": causal() & sliding_window(3),
    "padding": padding([4]),
}


@given(
    length=st.integers(2, 8),
    mask=st.sampled_from(sorted(MASKS)),
    softcap=st.sampled_from([None, 2.0]),
    bias=st.booleans(),
    sinks=st.booleans(),
    prescale=st.sampled_from([1.0, 0.5]),
    seed=st.integers(0, 99),
)
def test_numbers_are_those_of_numpy(
    length: int,
    mask: str,
    softcap: float | None,
    bias: bool,
    sinks: bool,
    prescale: float,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    options: dict[str, Any] = {"mask": MASKS[mask], "softcap": softcap, "prescale": prescale}
    options |= {"bias": torch.randn(4, length, length)} if bias else {}
    options |= {"sinks": torch.randn(4)} if sinks else {}
    if mask == "padding" and length < 4:
        return
    check(attention(4, length, length, n_kv_heads=2, **options))


def test_padded_queries_are_left_out() -> None:
    layer = attention(mask=padding([3]))
    check(layer, torch.arange(5) >= 3)
    every = layer_variances(layer)["queries"].tolist()
    some = layer_variances(layer, torch.arange(5) >= 3)["queries"].tolist()
    assert (every, some) == ([5, 5], [3, 3])


def test_a_row_with_one_key_is_left_out() -> None:
    layer = attention(mask=causal())
    assert layer_variances(layer)["queries"].tolist() == [4, 4]
    check(layer)


def test_a_single_token_has_no_numbers() -> None:
    layer = attention(n_q=1, n_k=1)
    numbers = {**layer_variances(layer), **layer_softmax(layer, SCALES["own"])}
    assert numbers.pop("queries").tolist() == [0, 0]
    assert all(bool(values.isnan().all()) for values in numbers.values())
    table = variance_table(SmallStack([layer], torch.zeros(1, dtype=torch.bool)))
    assert finding(table) is None
    assert score_histogram(layer, 0) is None


def test_a_row_without_keys_is_left_out_and_no_error() -> None:
    rows = torch.tensor([[True, True, False], [False] * 3, [True, True, True]])
    layer = attention(n_q=3, n_k=3, mask=custom(rows))
    assert layer_variances(layer)["queries"].tolist() == [2, 2]
    check(layer)


def test_numbers_that_are_none_leave_out_their_row_alone() -> None:
    layer = attention()
    layer.query[0, 2] = math.nan
    found = layer_variances(layer)
    assert found["queries"].tolist() == [4, 5]
    assert found["scores_row_variance"].isfinite().all()
    assert layer_softmax(layer, SCALES["one"])["entropy"].isfinite().all()


def test_blocks_of_rows_give_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = attention(3, 11, 11, mask=causal(), softcap=3.0)
    whole = {**layer_variances(layer), **layer_softmax(layer, SCALES["one"])}
    histogram = score_histogram(layer, 1)
    monkeypatch.setattr("explorer.head_scaling.BLOCK_PAIRS", 3 * 11 * 2)  # two rows at a time
    again = {**layer_variances(layer), **layer_softmax(layer, SCALES["one"])}
    for name, values in again.items():
        torch.testing.assert_close(values, whole[name], rtol=1e-6, atol=1e-8)
    pieces = score_histogram(layer, 1)
    assert histogram is not None and pieces is not None
    np.testing.assert_allclose(pieces.density, histogram.density)


# What is predicted


def test_two_values_by_hand() -> None:
    # One component. q is 1 and 3: mean 2, mean of squares 5. k is 0 and 2: mean 1, variance 1.
    q, k = torch.tensor([[1.0], [3.0]]), torch.tensor([[0.0], [2.0]])
    pairs, rows = predicted_variance(q, k)
    assert float(pairs) == pytest.approx(5 * 2 - 4 * 1)  # dots 0, 2, 0, 6: mean 2, variance 6
    assert float(rows) == pytest.approx(5 * 1)  # rows 0, 2 and 0, 6: variances 1 and 9
    layer = Attention(q[None], k[None], k[None])
    found = layer_variances(layer)
    assert float(found["dots_variance"]) == pytest.approx(6)
    assert float(found["dots_row_variance"]) == pytest.approx(5)


@pytest.mark.parametrize(("mean", "size"), [(0.0, 1.0), (0.5, 1.0), (0.0, 2.0), (1.0, 0.5)])
def test_independent_components_have_the_closed_form(mean: float, size: float) -> None:
    # Var(q·k) = d((s² + m²)² − m⁴) for equal means and variances; for a fixed q, d(s² + m²)s².
    d, n = 64, 1500
    q, k = (mean + size * torch.randn(1, n, d) for _ in range(2))
    layer = Attention(q, k, k)
    found = {name: float(values) for name, values in layer_variances(layer).items()}
    pairs = d * ((size**2 + mean**2) ** 2 - mean**4)
    rows = d * (size**2 + mean**2) * size**2
    # The vectors are shared by the pairs: relative error √(2/n² + 4/(d·n)), four of them, and as
    # much again for the mean's part.
    within = 8 * math.sqrt(2 / n**2 + 4 / (d * n))
    for name, wanted in (("", pairs), ("row_", rows)):
        assert found[f"dots_{name}variance"] == pytest.approx(wanted, rel=within)
        assert found[f"dots_{name}predicted"] == pytest.approx(wanted, rel=within)
    table = variance_table(SmallStack([layer], torch.zeros(n, dtype=torch.bool)))
    if (mean, size) == (0, 1):
        assert float(table["scores_assumed"][0]) == pytest.approx(1)
        assert float(table["scores_variance"][0]) == pytest.approx(1, rel=within)


def test_components_that_go_together_spread_more_than_size_alone() -> None:
    shared = torch.randn(1, 200, 1)
    q, k = shared.expand(1, 200, 16), torch.randn(1, 200, 1).expand(1, 200, 16)
    layer = Attention(q.contiguous(), k.contiguous(), k.contiguous())
    found = layer_variances(layer)
    # q·k is 16 times one product: its variance has 16² and not 16.
    assert float(found["dots_variance"] / found["dots_predicted"]) == pytest.approx(16, rel=1e-4)


# Real models


def stacks(kind: str, settings: dict[str, Any], **inputs: Tensor) -> dict[str, Stack]:
    length = inputs["input_ids"].shape[1]
    target = inputs.get("decoder_input_ids")
    tokens = tokens_of(inputs.get("attention_mask", torch.ones(1, length)))
    targets = None if target is None else tokens_of(torch.ones(1, target.shape[1]))
    model = small_model(kind, settings)
    return dict(capture_inputs(model, inputs, tokens, targets)[0].stacks)


GEMMA = {
    **SMALL_GROUPED,
    "query_pre_attn_scalar": 24,
    "attn_logit_softcapping": 2.0,
    "sliding_window": 4,
    "layer_types": ["sliding_attention", "full_attention"],
}
OPT = {
    **SMALL,
    "ffn_dim": 48,
    "word_embed_proj_dim": 32,
    "max_position_embeddings": 64,
    "do_layer_norm_before": True,
}
GPT2 = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
SINKS = {**SMALL_GROUPED, "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 4}


@pytest.mark.parametrize(
    ("kind", "settings", "scale", "call", "assumed"),
    [
        ("gpt2", GPT2, 8**-0.5, 8**-0.5, 1.0),
        ("llama", SMALL_GROUPED, 8**-0.5, 8**-0.5, 1.0),
        ("gemma2", GEMMA, 24**-0.5, 24**-0.5, 8 / 24),
        ("opt", OPT, 8**-0.5, 1.0, 1.0),
        ("gpt_oss", SINKS, 8**-0.5, 8**-0.5, 1.0),
        ("bert", SMALL, 8**-0.5, 8**-0.5, 1.0),
    ],
)
def test_a_model_of_each_kind_has_its_true_scale_and_numpys_numbers(
    kind: str, settings: dict[str, Any], scale: float, call: float, assumed: float
) -> None:
    (stack,) = stacks(kind, settings, input_ids=ids(1, 9)).values()
    table = variance_table(stack)
    assert table[["layer", "head"]].to_numpy().tolist() == [
        [n, h] for n in (0, 1) for h in range(4)
    ]
    assert set(table["d_k"]) == {8}
    np.testing.assert_allclose(table["scale"], scale, rtol=1e-6)
    np.testing.assert_allclose(table["call_scale"], call, rtol=1e-6)
    np.testing.assert_allclose(table["scores_assumed"], assumed, rtol=1e-6)
    for layer in stack.layers:
        assert isinstance(layer, Attention)
        check(layer)


def test_t5_scales_nothing_in_all_three_stacks() -> None:
    inputs = {"input_ids": ids(1, 7), "decoder_input_ids": ids(1, 4, seed=1)}
    found = stacks("t5", SMALL_T5, **inputs)
    assert set(found) == {"encoder", "decoder", "cross"}
    for stack in found.values():
        table = variance_table(stack)
        assert set(table["scale"]) == {1.0}
        assert set(table["scores_assumed"]) == {8.0}
        for layer in stack.layers:
            assert isinstance(layer, Attention)
            check(layer)
    cross = found["cross"]
    assert (cross.layers[0].query_length, cross.layers[0].key_length) == (4, 7)
    assert len(variance_table(cross)) == 3 * 4
    own, without = (softmax_table(cross, SCALES[name]) for name in ("own", "one"))
    np.testing.assert_allclose(own["entropy"], without["entropy"])


def test_whispers_query_carries_its_scale() -> None:
    settings = {**SMALL_SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 10}
    settings |= {"max_target_positions": 20, "vocab_size": 64}
    model = AutoModel.from_config(AutoConfig.for_model("whisper", **settings)).eval()
    inputs = {"input_features": torch.randn(1, 8, 20), "decoder_input_ids": ids(1, 5)}
    kept = capture_inputs(model, inputs, tokens_of(torch.ones(1, 10)), tokens_of(torch.ones(1, 5)))[
        0
    ].stacks
    for stack in kept.values():
        table = variance_table(stack)
        np.testing.assert_allclose(table["scale"], 8**-0.5, rtol=1e-6)
        for layer in stack.layers:
            assert isinstance(layer, Attention)
            check(layer)


def test_padding_in_the_batch_changes_no_number() -> None:
    inputs = padded([9, 5], "right")
    model = small_model("bert", SMALL)
    together = capture_inputs(model, inputs, tokens_of(inputs["attention_mask"]))[1].stacks
    alone_ids = {name: tensor[1:, :5] for name, tensor in inputs.items()}
    alone = capture_inputs(model, alone_ids, tokens_of(alone_ids["attention_mask"]))[0].stacks
    found, expected = (variance_table(each["encoder"]) for each in (together, alone))
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-4, atol=1e-5)
    found, expected = (
        softmax_table(each["encoder"], SCALES["inverse"]) for each in (together, alone)
    )
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-4, atol=1e-5)


def test_the_capture_is_unchanged() -> None:
    (stack,) = stacks("gpt2", GPT2, input_ids=ids(1, 6)).values()
    before = [layer.weights().clone() for layer in stack.layers]
    variance_table(stack)
    softmax_table(stack, times(3))
    for layer, weights in zip(stack.layers, before, strict=True):
        torch.testing.assert_close(layer.weights(), weights, rtol=0, atol=0)


def test_weights_alone_are_refused_with_the_reason() -> None:
    given_alone = GivenWeights(torch.full((2, 5, 5), 0.2))
    with pytest.raises(ValueError, match="need the queries and keys"):
        variance_table(SmallStack([given_alone]))
    with pytest.raises(ValueError, match="need the queries and keys"):
        softmax_table(SmallStack([given_alone]), SCALES["one"])


# Scales, findings, histogram


def test_a_scale_replaces_the_whole_factor_where_a_part_was_in_the_query() -> None:
    layer = attention(scale=1.0, prescale=0.5)
    assert SCALES["own"].of(layer) == 0.5
    q, k = layer.query / 0.5, layer.key
    expected = torch.softmax(q @ k.transpose(1, 2) * 0.25, -1)
    torch.testing.assert_close(rescaled(layer, SCALES["inverse"]).weights(), expected)


def test_entropy_is_scipys_and_a_larger_scale_is_sharper() -> None:
    layer = attention(1, 6, 6)
    expected = scipy_entropy(layer.weights()[0].double().numpy(), axis=-1).mean()
    found = [float(layer_softmax(layer, times(f))["entropy"]) for f in (0.1, 1, 10)]
    assert found[1] == pytest.approx(expected, abs=1e-6)
    assert found[0] > found[1] > found[2]


def test_the_finding_counts_heads_and_names_the_ends() -> None:
    layer = attention(4, 5, 5)
    table = variance_table(SmallStack([layer]))
    table["scores_row_variance"] = [0.5, 3.0, 9.0, math.nan]
    table["scores_assumed"] = 1.0
    table["dots_row_variance"] = [2.0, 12.0, 36.0, math.nan]
    table["dots_row_predicted"] = [4.0, 4.0, 4.0, math.nan]
    table["dots_assumed"] = 8.0
    found = finding(table)
    assert found is not None
    assert (found.heads, found.above, found.more_than_size) == (3, 2, 2)
    assert found.low == (0.5, 3, 0) and found.high == (9.0, 3, 2)
    assert (found.size, found.together) == (0.5, 3.0)


def test_the_histogram_is_that_of_the_rows_deviations() -> None:
    layer = attention(2, 7, 7, mask=causal())
    found = score_histogram(layer, 1, bins=9)
    assert found is not None
    scores, allowed = layer.scores()[1].double().numpy(), layer.allowed()[0].numpy()
    apart = np.concatenate(
        [scores[i, allowed[i]] - scores[i, allowed[i]].mean() for i in range(1, 7)]
    )
    counts, _ = np.histogram(apart.clip(found.edges[0], found.edges[-1]), found.edges)
    np.testing.assert_allclose(found.density * (found.edges[1] - found.edges[0]), counts / 27)
    assert found.edges[4] < 0 < found.edges[5]
    assert found.edges[-1] == pytest.approx(abs(apart).max(), rel=1e-6)


def test_scores_that_are_all_equal_have_a_histogram_of_one_bar() -> None:
    layer = attention(1, 3, 3)
    found = score_histogram(layer.replace(query=torch.zeros(1, 3, 4)), 0, bins=5)
    assert found is not None
    assert np.count_nonzero(found.density) == 1 and found.density[2] > 0
