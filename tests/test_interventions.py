"""Interventions inside real families, against the same done by other means: hooks, masks, hands."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from explorer.attention import Attention
from explorer.capture import Capture, capture_inputs
from explorer.changed_attention import ChangedAttention, changed
from explorer.interventions import Intervention
from explorer.masks import causal, custom, everything, sliding_window
from tests import test_capture as families
from tests.small_models import SMALL, SMALL_GROUPED, ids, padded, small_model, tokens_of
from tests.test_output_projection import W_O

TEN = ("bert", "roberta", "albert", "gpt2", "opt", "llama", "mistral", "gemma2", "gpt_oss", "t5")
OF_TEN = [family for family in families.FAMILIES if (family.name or family.model_type) in TEN]


pytestmark = pytest.mark.usefixtures("one_thread")


def captured(family: families.Family) -> tuple[Capture, families.Run]:
    run = families.run_of(family, family.sides[0])
    return run.captures[0], run


def output(capture: Capture) -> Tensor:
    found = capture.hidden if capture.hidden is not None else capture.logits
    assert found is not None
    return found


def hooked(run: families.Run, hook: Any, modules: re.Pattern[str]) -> Tensor:
    """The output of the first sequence with a hook before each module whose path fits."""
    handles = [
        module.register_forward_pre_hook(lambda module, given, path=path: hook(path, given))
        for path, module in run.ours.named_modules()
        if modules.search(path)
    ]
    with torch.no_grad():
        found = families.output_of(run.ours(**run.inputs))[0]
    for handle in handles:
        handle.remove()
    return found


def layer_of(path: str) -> int:
    """The layer's number in a module's path; 0 for a module that all layers share."""
    match = re.search(r"(?<![^.])\d+(?![^.])", path)
    return int(match[0]) if match else 0


def test_the_ten_families_are_there() -> None:
    assert len(OF_TEN) == 10


@pytest.mark.parametrize("family", OF_TEN, ids=lambda family: family.model_type)
def test_without_interventions_the_output_is_the_same_to_the_last_bit(
    family: families.Family,
) -> None:
    capture, _ = captured(family)
    again = capture.changed([])
    assert torch.equal(output(again), output(capture))
    assert all(
        isinstance(layer, Attention) for stack in again.stacks.values() for layer in stack.layers
    )


@pytest.mark.parametrize("family", OF_TEN, ids=lambda family: family.model_type)
def test_a_change_by_nothing_leaves_all_heads_that_it_does_not_name_to_the_last_bit(
    family: families.Family,
) -> None:
    capture, _ = captured(family)
    stack = next(iter(capture.stacks))
    again = capture.changed([Intervention(stack, (0,), (1,), scale_times=1.0)])
    first = again.stacks[stack].layers[0]
    own = capture.stacks[stack].layers[0]
    assert isinstance(first, ChangedAttention) and isinstance(own, Attention)
    plain = own.output()
    others = [0, 2, 3]
    assert torch.equal(first.output(plain)[others], plain[others])
    torch.testing.assert_close(first.output(plain), plain, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(output(again), output(capture), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("family", OF_TEN, ids=lambda family: family.model_type)
def test_a_head_switched_off_is_its_slice_before_w_o_set_to_zero(
    family: families.Family,
) -> None:
    capture, run = captured(family)
    stack = next(iter(capture.stacks))
    first = capture.stacks[stack].layers[0]
    size = first.output_weight.shape[1]  # type: ignore[union-attr]

    def without_head_2(path: str, given: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        shared = not re.search(r"\.\d+\.", f".{path}.")  # ALBERT: one module for all layers
        in_stack = stack != "encoder" or "decoder" not in path
        if not in_stack or (layer_of(path) != 0 and not shared):
            return None
        x = given[0].clone()
        x[..., 2 * size : 3 * size] = 0
        return (x,)

    layers = None if family.model_type == "albert" else (0,)
    ours = capture.changed([Intervention(stack, layers, (2,), output="off")])
    theirs = hooked(run, without_head_2, W_O)
    assert not torch.allclose(output(ours), output(capture), atol=1e-3)
    torch.testing.assert_close(output(ours), theirs, atol=2e-5, rtol=1e-4)


PROJECT_Q = re.compile(r"(self\.query|q_proj|SelfAttention\.q)$")


@pytest.mark.parametrize(
    "family",
    [f for f in OF_TEN if f.model_type in ("bert", "roberta", "opt", "llama", "mistral", "t5")],
    ids=lambda family: family.model_type,
)
def test_twice_the_scale_is_twice_the_queries(family: families.Family) -> None:
    capture, run = captured(family)

    def double(module: nn.Module, given: Any, queries: Tensor) -> Tensor:
        return 2 * queries

    handles = [
        module.register_forward_hook(double)
        for path, module in run.ours.named_modules()
        if PROJECT_Q.search(path)
    ]
    assert len(handles) >= 2
    with torch.no_grad():
        theirs = families.output_of(run.ours(**run.inputs))[0]
    for handle in handles:
        handle.remove()
    of_itself = [name for name in capture.stacks if name != "cross"]
    ours = capture.changed([Intervention(name, scale_times=2.0) for name in of_itself])
    torch.testing.assert_close(output(ours), theirs, atol=5e-5, rtol=1e-4)
    assert not torch.allclose(output(ours), output(capture), atol=1e-3)


@pytest.mark.parametrize("name", ["gpt2", "llama", "phi"])
def test_a_decoder_with_causal_off_is_the_model_run_with_a_full_mask(name: str) -> None:
    family = next(f for f in families.FAMILIES if f.model_type == name)
    model = small_model(family.model_type, family.settings)
    inputs = {"input_ids": ids(1, 8)}
    capture = capture_inputs(model, inputs, tokens_of(torch.ones(1, 8)))[0]
    ours = capture.changed([Intervention("decoder", mask=everything())])
    eager = small_model(family.model_type, family.settings, "eager")
    with torch.no_grad():  # a written-out mask that adds nothing anywhere
        theirs = eager(**inputs, attention_mask=torch.zeros(1, 1, 8, 8))
    torch.testing.assert_close(output(ours), families.output_of(theirs)[0], atol=1e-5, rtol=1e-4)


def test_a_mask_that_is_replaced_leaves_padding_forbidden() -> None:
    model = small_model("llama", SMALL_GROUPED)
    inputs = padded((5, 8), "left")
    capture = capture_inputs(model, inputs, tokens_of(inputs["attention_mask"]))[0]
    layer = (
        capture.changed([Intervention("decoder", mask=everything())]).stacks["decoder"].layers[0]
    )
    assert layer.allowed()[:, :, :3].sum() == 0
    assert bool(layer.allowed()[:, :, 3:].all())


def test_a_window_besides_the_causal_mask_leaves_min_of_position_and_width() -> None:
    capture, _ = captured(next(f for f in OF_TEN if f.model_type == "gpt2"))
    window = Intervention("decoder", and_mask=sliding_window(3))
    layer = capture.changed([window]).stacks["decoder"].layers[1]
    weights = layer.weights()[:, 3:]  # the first sequence is padded on the left
    real = [min(row + 1, 3) for row in range(9)]
    assert (weights > 0).sum(-1).tolist() == [real] * 4


def one_layer() -> Attention:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 4, 3, generator=generator) for _ in range(3))
    return Attention(q, k, v, causal())


def with_change(**what: Any) -> ChangedAttention:
    found = changed(one_layer(), ("decoder", 0), [Intervention("decoder", **what)])
    assert found is not None
    return found


def test_keys_that_are_barred_get_no_weight_and_the_rest_is_softmax_of_the_others() -> None:
    layer = with_change(without_keys=(1,))
    scores = one_layer().scores()[0, 3]
    expected = torch.softmax(scores[[0, 2, 3]], -1)
    torch.testing.assert_close(layer.weights()[0, 3, [0, 2, 3]], expected)
    assert layer.weights()[:, :, 1].abs().max() == 0


def test_a_query_left_without_a_key_has_zeros_and_is_counted() -> None:
    layer = with_change(without_keys=(0,))
    assert layer.masked_rows()[:, 0].all()
    assert not layer.masked_rows()[:, 1:].any()
    assert layer.weights()[:, 0].abs().max() == 0
    assert layer.output()[:, 0].abs().max() == 0


def test_uniform_weighs_the_allowed_keys_alike() -> None:
    layer = with_change(uniform=True, heads=(1,))
    expected = torch.tensor([[1, 0, 0, 0], [1 / 2] * 2 + [0] * 2, [1 / 3] * 3 + [0], [1 / 4] * 4])
    torch.testing.assert_close(layer.weights([1])[0], expected)
    torch.testing.assert_close(layer.weights([0]), one_layer().weights([0]))
    means = torch.stack([one_layer().value[1, : row + 1].mean(0) for row in range(4)])
    torch.testing.assert_close(layer.output()[1], means)


def test_a_weight_that_is_set_is_there_and_the_others_share_the_rest_in_their_proportions() -> None:
    own = one_layer().weights()[0, 2]
    layer = with_change(heads=(0,), set_weights=((2, 0, 0.75),))
    weights = layer.weights()[0, 2]
    assert weights[0] == 0.75
    assert float(weights.sum()) == pytest.approx(1)
    assert float(weights[1] / weights[2]) == pytest.approx(float(own[1] / own[2]), rel=1e-5)
    torch.testing.assert_close(layer.output()[0, 2], weights @ one_layer().value[0])


def test_without_renormalising_the_others_stay_as_they_are() -> None:
    own = one_layer().weights()[1, 3]
    weights = with_change(set_weights=((3, 1, 0.0),), renormalise=False).weights()[1, 3]
    assert weights[1] == 0
    torch.testing.assert_close(weights[[0, 2, 3]], own[[0, 2, 3]])


def test_a_set_weight_may_stand_on_a_forbidden_key() -> None:
    weights = with_change(set_weights=((0, 3, 0.5),)).weights()[0, 0]
    assert weights.tolist() == [0.5, 0, 0, 0.5]


def test_a_key_whose_value_is_zero_keeps_its_weight_and_brings_nothing() -> None:
    own = one_layer()
    layer = with_change(zero_values=(0, 2))
    torch.testing.assert_close(layer.weights(), own.weights())
    expected = own.weights()[:, :, [1, 3]] @ own.value[:, [1, 3]]
    torch.testing.assert_close(layer.output(), expected)


def test_the_mean_output_is_the_same_for_every_query() -> None:
    own = one_layer().output()
    output = with_change(output="mean", heads=(1,)).output()
    torch.testing.assert_close(output[1], own[1].mean(0).expand(4, -1))
    torch.testing.assert_close(output[0], own[0])


def test_scale_rules_are_of_the_whole_factor() -> None:
    own = one_layer()
    for rule, factor in (("1", 1.0), ("1/d_k", 1 / 3), ("1/√d_k", 3**-0.5)):
        scores = with_change(scale_rule=rule, scale_times=2.0).scores()
        torch.testing.assert_close(scores, own.dots() * factor * 2)
    prescaled = own.replace(prescale=0.5, scale=1.0)
    layer = changed(prescaled, ("decoder", 0), [Intervention("decoder", scale_rule="1/d_k")])
    assert layer is not None
    torch.testing.assert_close(layer.scores(), prescaled.dots() / 3 / 0.5)


def test_several_are_applied_one_after_the_other() -> None:
    own = one_layer()
    both = [
        Intervention("decoder", scale_times=2.0),
        Intervention("decoder", heads=(0,), scale_times=3.0, zero_values=(0,)),
        Intervention("decoder", layers=(7,), output="off"),
    ]
    layer = changed(own, ("decoder", 0), both)
    assert layer is not None
    torch.testing.assert_close(layer.scores()[0], own.scores()[0] * 6)
    torch.testing.assert_close(layer.scores()[1], own.scores()[1] * 2)


def test_patching_takes_the_heads_output_over_from_another_text() -> None:
    capture, run = captured(next(f for f in OF_TEN if f.model_type == "gpt2"))
    other = capture_inputs(run.ours, {"input_ids": ids(1, 12, 9)}, tokens_of(torch.ones(1, 12)))[0]
    theirs = other.stacks["decoder"].layers[0]
    assert isinstance(theirs, Attention)
    patch = Intervention("decoder", (0,), (3,), output_of={("decoder", 0): theirs})
    layer = capture.changed([patch]).stacks["decoder"].layers[0]
    torch.testing.assert_close(layer.output()[3], theirs.output()[3])  # type: ignore[union-attr]
    short = theirs.replace(query=theirs.query[:, :5])
    with pytest.raises(ValueError, match="5 tokens, this one 12"):
        capture.changed([Intervention("decoder", (0,), (3,), output_of={("decoder", 0): short})])


def test_custom_masks_and_a_mask_for_each_head_are_understood() -> None:
    table = torch.stack([torch.eye(4), torch.ones(4, 4)]).bool()
    own = one_layer().replace(mask=custom(table))
    layer = changed(own, ("decoder", 0), [Intervention("decoder", scale_times=2.0)])
    assert layer is not None
    assert torch.equal(layer.allowed(), table)
    torch.testing.assert_close(layer.weights()[0], torch.eye(4))


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ({"scale_rule": "2"}, "scale_rule"),
        ({"scale_times": float("nan")}, "scale_times"),
        ({"set_weights": ((0, 0, 1.5),)}, "between 0 and 1"),
        ({"set_weights": ((0, 0, 0.7), (0, 1, 0.7))}, "sum to 1.400"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(what: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Intervention("decoder", **what)


@pytest.mark.parametrize(
    "what",
    [
        {"heads": (2,)},
        {"without_keys": (4,)},
        {"zero_values": (-1,)},
        {"set_weights": ((4, 0, 1.0),)},
    ],
)
def test_heads_and_positions_that_are_not_there_are_refused(what: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="positions run from 0"):
        with_change(**what)


def test_a_stack_that_is_not_there_is_refused() -> None:
    capture, _ = captured(OF_TEN[0])
    with pytest.raises(ValueError, match="cross; there is encoder"):
        capture.changed([Intervention("cross", output="off")])


def test_an_undone_change_leaves_no_trace() -> None:
    model = small_model("bert", SMALL, "sdpa")
    inputs = {"input_ids": ids(1, 7)}
    with torch.no_grad():
        before = families.output_of(model(**inputs))
    capture = capture_inputs(model, inputs, tokens_of(torch.ones(1, 7)))[0]
    weights = [layer.weights().clone() for layer in capture.stacks["encoder"].layers]
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    capture.changed([Intervention("encoder", output="off", zero_values=(0,), scale_times=3.0)])
    with torch.no_grad():
        assert torch.equal(families.output_of(model(**inputs)), before)
    assert torch.equal(output(capture.changed([])), output(capture))
    for layer, was in zip(capture.stacks["encoder"].layers, weights, strict=True):
        assert torch.equal(layer.weights(), was)
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


def test_fifty_runs_at_once_with_different_changes_never_mix() -> None:
    model = small_model("gpt2", families.GPT2, "sdpa")
    capture = capture_inputs(model, {"input_ids": ids(1, 9)}, tokens_of(torch.ones(1, 9)))[0]
    changes = [
        Intervention("decoder", (n % 2,), (n % 4,), scale_times=1 + n / 10, zero_values=(n % 9,))
        for n in range(50)
    ]
    alone = [output(capture.changed([change])) for change in changes]
    assert len({tuple(found.flatten().tolist()) for found in alone}) == 50
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda change: output(capture.changed([change])), changes))
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other)
