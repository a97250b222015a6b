"""Inputs and configurations that broke other tools: each row of CASES.md that a capture touches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from explorer.attention import Attention
from explorer.capture import (
    Capture,
    GivenWeights,
    Stack,
    capture,
    capture_batch,
    capture_inputs,
)
from explorer.models import LoadedModel, ModelError, load
from tests.small_models import (
    SMALL,
    SMALL_GROUPED,
    SMALL_SEQ2SEQ,
    ids,
    padded,
    small_model,
    tokens_of,
)

GPT2 = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64} | {
    "bos_token_id": 1,
    "eos_token_id": 2,
}
BLOOM = {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4}
FALCON = {**SMALL, "multi_query": True}
LONGFORMER = {**SMALL, "attention_window": 4, "sep_token_id": 3, "max_position_embeddings": 64}
OFF_THE_INTERFACE: dict[str, tuple[dict[str, Any], str]] = {
    "bloom": (BLOOM, "decoder"),
    "falcon": (FALCON, "decoder"),
    "gpt_neo": (
        {
            "vocab_size": 64,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        "decoder",
    ),
    "mpnet": ({**SMALL, "pad_token_id": 1, "bos_token_id": 0}, "encoder"),
    "deberta-v2": (
        {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
        "encoder",
    ),
    "xlnet": (
        {"vocab_size": 64, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, "d_head": 8},
        "encoder",
    ),
}


pytestmark = pytest.mark.usefixtures("one_thread")


def captured(
    model: PreTrainedModel, lengths: tuple[int, ...] = (9, 12), side: str = "right", seed: int = 0
) -> list[Capture]:
    inputs = padded(lengths, side, seed=seed)
    return capture_inputs(model, inputs, tokens_of(inputs["attention_mask"]))


def only(its_capture: Capture) -> Stack:
    (stack,) = its_capture.stacks.values()
    return stack


def record(its_capture: Capture, layer: int = 0) -> Attention:
    found = only(its_capture).layers[layer]
    assert isinstance(found, Attention)
    return found


def save_words(folder: Path) -> None:
    """A tokenizer of whole words, saved to a folder."""
    words = ["[UNK]", "[PAD]", "</s>", "the", "cat", "sat", "die", "Katze"]
    backend = Tokenizer(WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]", eos_token="</s>"
    ).save_pretrained(folder)


# The way a model was loaded, and the mode it was left in


def test_the_bundled_model_gives_every_layer_and_head_of_a_sentence(minilm: LoadedModel) -> None:
    its_capture = capture(minilm, "The cat sat on the mat.")
    stack = only(its_capture)
    assert (stack.name, len(stack.layers), stack.n_heads, stack.n_layers) == ("encoder", 6, 12, 6)
    texts = ("[CLS]", "the", "cat", "sat", "on", "the", "mat", ".", "[SEP]")
    assert stack.query_tokens.raws == stack.key_tokens.raws == texts
    assert its_capture.hidden is not None and its_capture.hidden.shape == (9, 384)
    assert its_capture.max_difference is not None and its_capture.max_difference < 1e-5


def test_a_batch_on_either_side_gives_each_text_what_it_has_alone(minilm: LoadedModel) -> None:
    texts = ["The cat sat on the mat.", "A dog."]
    for side in ("left", "right"):
        for text, together in zip(texts, capture_batch(minilm, texts, side), strict=True):
            real = ~only(together).padded_queries
            alone = capture(minilm, text)
            assert int(real.sum()) == len(alone.tokens)
            assert bool(real[0 if side == "right" else -1])
            for layer, number in zip(only(together).layers, range(6), strict=True):
                weights = layer.weights()[:, real]
                assert float(weights[:, :, ~real].sum()) == 0.0
                if side == "right":  # this model's positions count the padding on the left
                    expected = only(alone).layers[number].weights()
                    torch.testing.assert_close(weights[:, :, real], expected, atol=1e-5, rtol=0)


def test_a_model_loaded_plainly_needs_no_eager_attention(minilm: LoadedModel) -> None:
    fresh = load("minilm", device="cpu")
    assert fresh.model.config._attn_implementation == "sdpa"
    assert len(only(capture(fresh, "plain")).layers) == 6


@pytest.mark.parametrize("whole", [True, False])
def test_a_model_left_in_train_mode_does_not_drop_weights(whole: bool) -> None:
    settings = {**SMALL, "attention_probs_dropout_prob": 0.5, "hidden_dropout_prob": 0.5}
    model = small_model("bert", settings, "sdpa")
    (model if whole else model.encoder.layer[1]).train()  # type: ignore[union-attr,operator]
    first, again = captured(model)[1], captured(model)[1]
    assert not any(part.training for part in model.modules())
    assert first.hidden is not None and again.hidden is not None
    assert torch.equal(first.hidden, again.hidden)
    for layer in only(first).layers:
        torch.testing.assert_close(layer.weights().sum(-1), torch.ones(4, 12))


@pytest.mark.parametrize(
    ("model_type", "settings"), [("bert", SMALL), ("gpt2", GPT2), ("llama", SMALL_GROUPED)]
)
def test_without_padding_our_attention_is_sdpa_to_the_last_bit(
    model_type: str, settings: dict[str, Any]
) -> None:
    plain, ours = (small_model(model_type, settings, "sdpa") for _ in range(2))
    inputs = {"input_ids": ids(2, 12)}
    both = capture_inputs(ours, inputs, tokens_of(torch.ones(2, 12)))
    with torch.no_grad():
        expected = plain(**inputs).last_hidden_state
    for its_capture, theirs in zip(both, expected, strict=True):
        assert its_capture.hidden is not None and torch.equal(its_capture.hidden, theirs)


# Models without attention, or with it in some layers


def test_a_model_without_attention_is_refused_with_the_reason() -> None:
    settings = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    model = small_model("mamba", settings | special)
    with pytest.raises(ModelError, match=r"MambaModel gives no attention weights: it has no att"):
        captured(model)


@pytest.mark.parametrize("with_attention", [(1, 3), (3,), (0, 2)])
def test_a_hybrid_keeps_the_true_numbers_of_its_layers(with_attention: tuple[int, ...]) -> None:
    kinds = ["full_attention" if at in with_attention else "conv" for at in range(4)]
    model = small_model(
        "lfm2", {**SMALL_GROUPED, "num_hidden_layers": 4, "layer_types": kinds}, "sdpa"
    )
    stack = only(captured(model)[1])
    assert (stack.name, stack.layer_numbers, stack.n_layers) == ("decoder", with_attention, 4)
    assert stack.layer(with_attention[-1]) is stack.layers[-1]
    without = next(at for at in range(4) if at not in with_attention)
    with pytest.raises(KeyError, match=f"layer {without} has no attention; these have"):
        stack.layer(without)


def test_a_hybrid_with_no_attention_layer_is_refused() -> None:
    model = small_model("lfm2", {**SMALL_GROUPED, "layer_types": ["conv", "conv"]}, "sdpa")
    with pytest.raises(ModelError, match="gives no attention weights: it has no attention"):
        captured(model)


# Weights that are no map of tokens by tokens


@pytest.mark.parametrize(
    "length",
    [12, 5],  # its band is 5 wide, so 5 tokens would give a square that is no map of tokens
)
def test_banded_weights_are_refused_even_where_they_look_square(length: int) -> None:
    model = small_model("longformer", LONGFORMER)
    with pytest.raises(ModelError, match=r"LongformerModel gives weights of the shape .* so they"):
        captured(model, (length,))


def test_windows_in_the_batch_axis_are_refused() -> None:
    settings = {"image_size": 16, "patch_size": 2, "embed_dim": 16, "depths": [1, 1]}
    model = small_model("swin", settings | {"num_heads": [2, 4], "window_size": 4}, "sdpa")
    images = {"pixel_values": torch.randn(2, 3, 16, 16)}
    with pytest.raises(ModelError, match=r"SwinModel cuts its input into parts"):
        capture_inputs(model, images, tokens_of(torch.ones(2, 64)))


def test_outputs_named_attentions_that_are_no_weights_are_refused() -> None:
    settings = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2}
    model = small_model("rwkv", settings | {"bos_token_id": 1, "eos_token_id": 2})
    with pytest.raises(ModelError, match="RwkvModel gives weights of the shape"):
        capture_inputs(model, {"input_ids": ids(1, 6)}, tokens_of(torch.ones(1, 6)))


# Families that compute attention in their own code


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("model_type", OFF_THE_INTERFACE)
def test_a_family_off_the_interface_gives_its_own_weights_read_only(
    model_type: str, side: str
) -> None:
    settings, kind = OFF_THE_INTERFACE[model_type]
    model = small_model(model_type, settings)
    eager = small_model(model_type, settings)
    inputs = padded((9, 12), side)
    with torch.no_grad():
        theirs = eager(**inputs, output_attentions=True)
    captures = capture_inputs(model, inputs, tokens_of(inputs["attention_mask"]))
    for number, its_capture in enumerate(captures):
        stack = its_capture.stacks[kind]
        assert (list(its_capture.stacks), stack.name) == ([kind], kind)
        assert stack.read_only and stack.layer_numbers == (0, 1) and stack.n_layers == 2
        assert its_capture.difference is None and its_capture.max_difference is None
        assert "can't be changed here" in its_capture.notes[-1]
        for layer, weights in zip(stack.layers, theirs.attentions, strict=True):
            assert isinstance(layer, GivenWeights)
            assert (layer.n_heads, layer.query_length, layer.key_length) == (4, 12, 12)
            assert torch.equal(layer.weights(), weights[number])
        assert its_capture.hidden is not None
        assert torch.equal(its_capture.hidden, theirs.last_hidden_state[number])


def test_a_family_off_the_interface_that_was_loaded_with_sdpa_is_switched_to_eager() -> None:
    model = small_model("falcon", FALCON, "sdpa")
    eager = small_model("falcon", FALCON, "eager")
    inputs = padded((9, 12), "left")
    with torch.no_grad():
        theirs = eager(**inputs, output_attentions=True).attentions
    its_capture = capture_inputs(model, inputs, tokens_of(inputs["attention_mask"]))[0]
    assert only(its_capture).read_only
    for layer, weights in zip(only(its_capture).layers, theirs, strict=True):
        torch.testing.assert_close(layer.weights(), weights[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("model_type", "settings", "kinds"),
    [
        ("doge", {**SMALL_GROUPED, "keep_window_size": 64}, {"decoder": 2}),
        (
            "bigbird_pegasus",
            {**SMALL_SEQ2SEQ, "attention_type": "original_full"},
            {"encoder": 2, "decoder": 3, "cross": 3},
        ),
    ],
)
def test_a_family_on_the_interface_that_works_on_its_mask_is_shown_read_only(
    model_type: str, settings: dict[str, Any], kinds: dict[str, int]
) -> None:
    model, eager = (small_model(model_type, settings, kind) for kind in ("eager", "eager"))
    inputs = padded((9, 12), "right")
    target = None
    if "cross" in kinds:
        inputs["decoder_input_ids"] = ids(2, 7)
        target = tokens_of(torch.ones(2, 7))
    with torch.no_grad():
        theirs = eager(**inputs, output_attentions=True)
    for _ in range(2):  # once it is known, it is not tried again
        its_capture = capture_inputs(model, inputs, tokens_of(inputs["attention_mask"]), target)[1]
        found = {name: stack.n_layers for name, stack in its_capture.stacks.items()}
        assert found == kinds and all(stack.read_only for stack in its_capture.stacks.values())
        for name, stack in its_capture.stacks.items():
            key = {"cross": "cross_attentions"}.get(name, f"{name}_attentions")
            given = theirs[key if "cross" in kinds else "attentions"]
            for layer, weights in zip(stack.layers, given, strict=True):
                assert torch.equal(layer.weights(), weights[1])


def test_given_weights_know_which_keys_had_none() -> None:
    layer = only(captured(small_model("bloom", BLOOM), (6,))[0]).layers[0]
    assert torch.equal(layer.allowed()[0], torch.ones(6, 6).tril().bool())
    assert torch.equal(layer.allowed(rows=[1])[0], torch.tensor([[True, True, *[False] * 4]]))
    assert not bool(layer.masked_rows().any())


def test_fewer_weights_than_layers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("bloom", BLOOM)
    forward = model.forward

    def forgetful(**inputs: Any) -> Any:
        outputs = forward(**inputs)
        outputs.attentions = outputs.attentions[:1]
        return outputs

    monkeypatch.setattr(model, "forward", forgetful)
    with pytest.raises(ModelError, match="weights for 1 of its 2 layers and does not say for"):
        captured(model)


def test_two_towers_run_our_attention_though_their_own_file_has_none() -> None:
    stack = only(captured(small_model("dpr", SMALL, "sdpa"))[0])
    assert not stack.read_only and (stack.name, stack.layer_numbers) == ("encoder", (0, 1))


# Encoder–decoders


def test_a_target_gives_decoder_and_cross_attention_their_own_tokens(tmp_path: Path) -> None:
    settings = {**SMALL_SEQ2SEQ, "pad_token_id": 1, "bos_token_id": 0, "decoder_start_token_id": 2}
    config = transformers.BartConfig(**settings)
    transformers.BartForConditionalGeneration(config).save_pretrained(tmp_path)
    save_words(tmp_path)
    loaded = load(str(tmp_path), device="cpu")
    its_capture = capture(loaded, "the cat sat", target="die Katze")
    source, target = ("the", "cat", "sat"), ("</s>", "die", "Katze")
    found = {
        name: (stack.query_tokens.raws, stack.key_tokens.raws, stack.layer_numbers)
        for name, stack in its_capture.stacks.items()
    }
    assert found == {
        "encoder": (source, source, (0, 1)),
        "decoder": (target, target, (0, 1, 2)),
        "cross": (target, source, (0, 1, 2)),
    }
    only_start = capture(loaded, "the cat sat")
    assert only_start.stacks["cross"].query_tokens.raws == ("</s>",)
    assert only_start.stacks["cross"].layers[0].weights().shape == (4, 1, 3)
    assert its_capture.logits is not None and its_capture.logits.shape == (3, 64)
    assert its_capture.max_difference is not None and its_capture.max_difference < 1e-5


def test_the_encoder_alone_of_an_encoder_decoder_is_an_encoder() -> None:
    settings = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2}
    config = transformers.T5Config(**settings, num_heads=4)
    encoder = transformers.T5EncoderModel._from_config(config, attn_implementation="sdpa").eval()
    assert only(captured(encoder)[0]).name == "encoder"


# Precision


@pytest.mark.parametrize(
    ("model_type", "settings"),
    [
        ("gpt2", GPT2),
        ("llama", SMALL_GROUPED),
        ("mistral", {**SMALL_GROUPED, "sliding_window": 4}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_with_left_padding_has_no_nan(
    model_type: str, settings: dict[str, Any], dtype: torch.dtype
) -> None:
    half = captured(small_model(model_type, settings, "sdpa").to(dtype), (3, 12), "left")
    whole = captured(small_model(model_type, settings, "sdpa"), (3, 12), "left")
    for ours, exact in zip(half, whole, strict=True):
        real = ~only(ours).padded_queries
        assert ours.hidden is not None and bool(ours.hidden[real].isfinite().all())
        for layer, at in zip(only(ours).layers, range(2), strict=True):
            weights = layer.weights()
            assert weights.dtype == torch.float32 and bool(weights.isfinite().all())
            sums = weights[:, real].sum(-1)
            torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-3, rtol=0)
            expected = only(exact).layers[at].weights()[:, real]
            torch.testing.assert_close(weights[:, real], expected, atol=0.06, rtol=0)


@pytest.mark.parametrize(("model_type", "settings"), [("gpt2", GPT2), ("bloom", BLOOM)])
def test_weights_of_a_bfloat16_model_go_to_numpy(model_type: str, settings: dict[str, Any]) -> None:
    model = small_model(model_type, settings).to(torch.bfloat16)
    table = only(captured(model, (6,))[0]).layers[0].weights().numpy()
    assert table.shape == (4, 6, 6) and abs(float(table.sum()) - 4 * 6) < 0.2


# Masks and padding


@pytest.mark.parametrize("side", ["left", "right"])
def test_rows_of_padding_are_known_in_every_stack(side: str) -> None:
    for model_type, settings in (("bert", SMALL), ("gpt2", GPT2)):
        first, second = captured(small_model(model_type, settings, "sdpa"), (3, 5), side)
        expected = [True, True, False, False, False]
        assert only(first).padded_queries.tolist() == expected[:: 1 if side == "left" else -1]
        assert only(second).padded_queries.tolist() == [False] * 5


def test_a_padded_query_on_the_left_has_no_weight_at_all_and_none_on_the_future() -> None:
    its_record = record(captured(small_model("gpt2", GPT2, "sdpa"), (3, 5), "left")[0])
    assert its_record.masked_rows().tolist() == [[True, True, False, False, False]]
    assert float(its_record.weights()[:, :2].abs().sum()) == 0.0
    torch.testing.assert_close(its_record.weights()[:, 2:].sum(-1), torch.ones(4, 3))


def test_long_padding_does_not_count_as_a_difference_from_the_model() -> None:
    # The window of a padded query holds padding only, so eager attention makes 1/n of it.
    settings = {**SMALL_GROUPED, "sliding_window": 4, "pad_token_id": 0}
    layer_types = {"layer_types": ["sliding_attention", "full_attention"]}
    model = small_model("gemma2", settings | layer_types)
    for side in ("left", "right"):
        difference = captured(model, (3, 12), side)[0].difference
        assert difference is not None and max(difference) < 1e-5


@pytest.mark.parametrize(
    ("model_type", "settings", "kind"),
    [
        ("bert", SMALL, "encoder"),
        (
            "distilbert",
            {"vocab_size": 64, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4},
            "encoder",
        ),
        ("gpt2", GPT2, "decoder"),
        ("opt", {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}, "decoder"),
        ("bloom", BLOOM, "decoder"),
        ("xlnet", OFF_THE_INTERFACE["xlnet"][0], "encoder"),
    ],
)
@pytest.mark.parametrize("lengths", [(1,), (1, 4), (2, 4)])
def test_the_kind_of_a_stack_does_not_hang_on_the_text(
    model_type: str, settings: dict[str, Any], kind: str, lengths: tuple[int, ...]
) -> None:
    for side in ("left", "right"):
        for its_capture in captured(small_model(model_type, settings), lengths, side):
            assert only(its_capture).name == kind


def test_one_token_alone_has_all_its_weight_on_itself() -> None:
    for layer in only(captured(small_model("gpt2", GPT2, "sdpa"), (1,))[0]).layers:
        assert layer.weights().tolist() == [[[1.0]]] * 4


# A capture is a value


@pytest.mark.parametrize(("model_type", "settings"), [("gpt2", GPT2), ("bloom", BLOOM)])
def test_editing_weights_does_not_change_the_capture(
    model_type: str, settings: dict[str, Any]
) -> None:
    layer = only(captured(small_model(model_type, settings), (6,))[0]).layers[0]
    everything: tuple[dict[str, Any], ...] = ({}, {"heads": [1]}, {"rows": slice(0, 3)})
    before = [layer.weights(**chosen).clone() for chosen in everything]
    for chosen in everything:
        layer.weights(**chosen).fill_(7.0)
    layer.allowed().logical_not()
    for chosen, expected in zip(everything, before, strict=True):
        assert torch.equal(layer.weights(**chosen), expected)


def test_the_comparison_finds_a_difference_where_there_is_one() -> None:
    model = small_model("gpt2", GPT2, "sdpa")
    its_capture = captured(model)[1]
    with torch.no_grad():
        model.h[1].attn.c_attn.weight.mul_(1.5)  # type: ignore[union-attr]
    difference = its_capture.difference
    assert difference is not None
    assert difference.weights > 0.01 and difference.output > 0.01


def test_the_comparison_does_not_overlook_what_is_not_a_number() -> None:
    model = small_model("bert", SMALL, "sdpa")
    its_capture = captured(model)[1]
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.fill_(torch.nan)  # type: ignore[union-attr]
    assert its_capture.difference == (torch.inf, torch.inf)


# Many at once


def test_threads_that_share_a_model_never_mix() -> None:
    model = small_model("gpt2", GPT2, "sdpa")

    def weights_of(number: int) -> Tensor:
        lengths = (4 + number % 5, 9 + number % 3)
        stacks = [only(one) for one in captured(model, lengths, "left", seed=number)]
        return torch.cat([layer.weights().flatten() for stack in stacks for layer in stack.layers])

    with ThreadPoolExecutor(4) as pool:  # first, so that the switch to ours is a race as well
        together = list(pool.map(weights_of, range(40)))
    one_by_one = [weights_of(number) for number in range(40)]
    for concurrent, serial in zip(together, one_by_one, strict=True):
        assert concurrent.shape == serial.shape
        torch.testing.assert_close(concurrent, serial, atol=1e-6, rtol=0)
    assert not torch.equal(together[0], together[15])  # texts of the same lengths, but others


def test_a_comparison_in_one_thread_leaves_captures_in_others_alone() -> None:
    model = small_model("bert", SMALL, "sdpa")
    captures = [captured(model, seed=seed)[0] for seed in range(12)]

    def measure(seed: int) -> tuple[float, bool]:
        difference = captures[seed].difference
        assert difference is not None
        again = captured(model, seed=seed)[0]
        same = torch.equal(record(again).query, record(captures[seed]).query)
        return max(difference), same and isinstance(record(again), Attention)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(measure, range(12)))
    assert all(difference < 1e-5 and same for difference, same in found)
