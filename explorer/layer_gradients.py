"""What reaches a layer's queries and keys when it learns: gradients of our own attention.

One example is one sequence of random tokens; its last token asks, and the loss is the squared error
of the layer's output for it against a random target. Each example's gradient is kept by itself:
a mean over examples hides that most of them receive nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from explorer.attention import attend
from explorer.cores import workers
from explorer.multihead import MultiHeadAttention

D_MODEL = 32
EXAMPLES = 64
CHUNK = 2**20
"""Numbers in the keys of the examples that are run together."""


class Gradients(NamedTuple):
    """Norms for each size and example: (n_sizes, n_examples)."""

    sizes: tuple[int, ...]
    query: npt.NDArray[np.float64]
    """Of ∂loss/∂q."""
    key: npt.NDArray[np.float64]
    """Of ∂loss/∂k, over all keys of the example."""


def layer_gradients(
    n_keys: int,
    seed: int,
    *,
    scaled: bool,
    sizes: Sequence[int],
    n_examples: int = EXAMPLES,
) -> Gradients:
    """Gradients at q and k of one head of each size d_k, with 1/√d_k or without.

    The projections have outputs of unit variance, tokens are normal; all float64. Raises
    ValueError where there are no keys, sizes or examples.
    """
    if n_keys < 1 or n_examples < 1 or not sizes or min(sizes) < 1:
        raise ValueError(
            f"n_keys, n_examples, sizes: got {n_keys}, {n_examples}, {tuple(sizes)}; at least 1 of "
            "each would work."
        )
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randn(n_examples, n_keys, D_MODEL, generator=generator).double()
    target = torch.randn(n_examples, 1, D_MODEL, generator=generator).double()
    # In a worker, whose operations use one thread: many small ones stall where they use several.
    jobs = [workers().submit(_norms, tokens, target, d_k, seed, scaled) for d_k in sizes]
    found = [job.result() for job in jobs]
    query, key = (torch.stack(part).numpy() for part in zip(*found, strict=True))
    return Gradients(tuple(sizes), query, key)


def _norms(
    tokens: Tensor, target: Tensor, d_k: int, seed: int, scaled: bool
) -> tuple[Tensor, Tensor]:
    """Each example's norm of ∂loss/∂q and of ∂loss/∂k."""
    layer = MultiHeadAttention(D_MODEL, 1, d_k=d_k, d_v=D_MODEL, seed=seed).double()
    scale = 1 / math.sqrt(d_k) if scaled else 1.0
    together = max(1, CHUNK // (tokens.shape[1] * d_k))
    norms = []
    parts = (torch.split(part, together) for part in (tokens, target))
    for x, wanted in zip(*parts, strict=True):
        with torch.no_grad():
            query, key, value = layer.project(x[:, -1:], x)  # (b, 1, 1, d_k), (b, 1, n, d_k) …
        query.requires_grad_()
        key.requires_grad_()
        with torch.enable_grad():
            output = layer.join(attend(query, key, value, scale=scale).output)  # (b, 1, d_model)
            # Each example's own mean of squares; their sum keeps the examples' gradients apart.
            loss = (output - wanted).square().mean((1, 2)).sum()
            of_query, of_key = torch.autograd.grad(loss, (query, key))
        norms.append((of_query.flatten(1).norm(dim=1), of_key.flatten(1).norm(dim=1)))
    first, second = zip(*norms, strict=True)
    return torch.cat(first), torch.cat(second)
