"""W_O of every family: our heads joined by it are what the model's own layer puts out."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from explorer.attention import Attention
from explorer.capture import capture_inputs
from explorer.masks import causal
from explorer.multihead import MultiHeadAttention
from explorer.output_projection import OutputWatch
from tests import test_capture as families
from tests.small_models import SMALL_GROUPED, ids, small_model, tokens_of

# What the families call it, read from their code.
W_O = re.compile(
    r"(attention\.output\.dense|out_lin|attention\.dense|attn\.Wo|attn\.c_proj|out_proj|o_proj"
    r"|self_attn\.dense|Attention\.o)$"
)


pytestmark = pytest.mark.usefixtures("one_thread")  # families keep their runs: all alike


def outputs_by_hooks(model: nn.Module, inputs: dict[str, Tensor]) -> dict[str, list[Tensor]]:
    """What the modules called W_O put out in one forward pass, by stack and in their order."""
    found: dict[str, list[Tensor]] = {}

    def keep(kind: str) -> Any:
        def hook(module: nn.Module, given: Any, output: Tensor) -> None:
            found.setdefault(kind, []).append(output)

        return hook

    handles = []
    for path, module in model.named_modules():
        if W_O.search(path):
            cross = re.search("encoder_attn|EncDecAttention", path)
            side = re.search(r"(^|\.)(encoder|decoder)\.", path)
            kind = "cross" if cross else side[2] if side else ""
            handles.append(module.register_forward_hook(keep(kind)))
    with torch.no_grad():
        model(**inputs)
    for handle in handles:
        handle.remove()
    return found


@pytest.mark.parametrize(
    "family", families.FAMILIES, ids=lambda family: family.name or family.model_type
)
def test_the_heads_joined_are_what_the_models_layer_puts_out(family: families.Family) -> None:
    run = families.run_of(family, family.sides[0])
    theirs = outputs_by_hooks(run.ours, run.inputs)
    seen = 0
    for sequence, captured in enumerate(run.captures):
        for kind, stack in captured.stacks.items():
            expected = theirs.get(kind, theirs.get(""))
            assert expected is not None, f"no W_O was hooked for {kind}: {list(theirs)}"
            assert len(expected) == len(stack.layers)
            for layer, output in zip(stack.layers, expected, strict=True):
                assert isinstance(layer, Attention)
                torch.testing.assert_close(
                    layer.joined(), output[sequence], atol=2e-5, rtol=1e-4, msg=f"{kind}"
                )
                seen += 1
    assert seen >= 2 * len(run.captures)


def test_a_gate_between_the_heads_and_w_o_leaves_the_layer_without_one() -> None:
    settings = {
        **SMALL_GROUPED,
        "layer_types": ["full_attention", "full_attention"],
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    }
    model = small_model("qwen3_next", settings)
    inputs = {"input_ids": ids(1, 6)}
    captured = capture_inputs(model, inputs, tokens_of(torch.ones(1, 6)))[0]
    layer = captured.stacks["decoder"].layers[0]
    assert isinstance(layer, Attention)
    assert layer.output_weight is None
    with pytest.raises(ValueError, match="no W_O"):
        layer.joined()


def test_it_is_a_view_of_the_models_own_parameter() -> None:
    run = families.run_of(families.FAMILIES[0], "right")
    layer = run.captures[0].stacks["encoder"].layers[0]
    assert isinstance(layer, Attention)
    own = run.ours.get_submodule("encoder.layer.0.attention.output.dense").weight
    assert layer.output_weight is not None
    assert layer.output_weight.data_ptr() == own.data_ptr()
    torch.testing.assert_close(layer.output_weight[2, 3], own[:, 2 * 8 + 3])


def test_a_second_capture_of_the_same_model_has_it_too() -> None:
    run = families.run_of(families.FAMILIES[0], "right")
    again = capture_inputs(run.ours, run.inputs, tokens_of(run.real))[0]
    before = run.captures[0].stacks["encoder"].layers
    for layer, same in zip(again.stacks["encoder"].layers, before, strict=True):
        assert isinstance(layer, Attention) and isinstance(same, Attention)
        torch.testing.assert_close(layer.joined(), same.joined())


def test_our_own_layers_record_gives_the_layers_output() -> None:
    layer = MultiHeadAttention(12, 4, d_k=2, d_v=5, n_kv_heads=2, d_out=7, seed=1)
    x = torch.randn(6, 12, generator=torch.Generator().manual_seed(0))
    record = layer.attention(x, mask=causal())
    torch.testing.assert_close(record.joined(), layer(x, mask=causal()))


def test_a_map_of_something_else_of_the_same_size_is_not_taken() -> None:
    output = torch.arange(24.0).reshape(1, 3, 4, 2)
    first, second = nn.Linear(8, 5), nn.Linear(8, 6)
    with torch.no_grad(), OutputWatch() as watch:
        watch.expect(0, output)
        first(output.reshape(1, 3, 8) + 0)  # a copy: something was done to it
        assert watch.found == {}
        second(output.reshape(1, 3, 8))
    assert watch.found[0].weight.shape == (4, 2, 6)
    assert watch.found[0].bias is second.bias


def test_a_w_o_that_does_not_fit_the_heads_is_refused() -> None:
    one = torch.ones(2, 3, 4)
    with pytest.raises(ValueError, match=r"output_weight.*\(2, 4, d_out\)"):
        Attention(one, one, one, output_weight=torch.ones(4, 2, 8))
