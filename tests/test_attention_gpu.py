"""The same numbers on a CUDA device. Skipped, with the reason, where there is none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.attention import Attention
from explorer.masks import Mask, causal, padding, sliding_window
from explorer.multihead import MultiHeadAttention

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"softcap": 20.0},
        {"sinks": torch.tensor([0.5, -0.5, 1.0, 0.0])},
        {"softcap": 20.0, "sinks": torch.tensor([0.5, -0.5, 1.0, 0.0])},
        {"bias": torch.linspace(-1, 1, 300)[None, None, :]},
    ],
    ids=lambda terms: " and ".join(terms) or "plain",
)
@pytest.mark.parametrize("mask", [None, causal(), sliding_window(9) & padding(200, "left")])
def test_the_device_gives_the_same_numbers(mask: Mask | None, terms: dict[str, Any]) -> None:
    tensors = torch.randn(4, 300, 32), *torch.randn(2, 2, 300, 32)
    here = Attention(*tensors, mask, on_masked_row="zero", **terms)
    moved = {name: t.cuda() if isinstance(t, torch.Tensor) else t for name, t in terms.items()}
    there = Attention(*(t.cuda() for t in tensors), mask, on_masked_row="zero", **moved)
    steps = here.steps()
    kept, output = there.with_row_lse()
    close: dict[str, Any] = {"rtol": 1e-3, "atol": 1e-3}  # a device may round products to TF32
    for weights in (there.weights(), kept.weights(), there.weights(rows=slice(0, 300))):
        assert weights.is_cuda
        torch.testing.assert_close(weights.cpu(), steps.weights, **close)
    for ours in (there.output(), output, there.weights_and_output()[1], there.steps().output):
        torch.testing.assert_close(ours.cpu(), steps.output, **close)


def test_a_seed_means_the_same_on_every_device() -> None:
    here, there = (
        MultiHeadAttention(16, 2, seed=5),
        MultiHeadAttention(16, 2, seed=5, device="cuda"),
    )
    assert torch.equal(here.W_Q.weight, there.W_Q.weight.cpu())
