"""Multi-head attention of our own: W_Q, W_K, W_V, the heads, W_O.

MultiHead(Q, K, V) = Concat(head_1 … head_h) W_O: Vaswani et al. 2017, section 3.2.2.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from explorer.attention import Attention, attend
from explorer.masks import Mask


class MultiHeadAttention(nn.Module):
    """Heads that project a sequence to queries, keys and values, attend, and join by W_O.

    d_k and d_v are d_model / n_heads unless given; d_out is d_model. With n_kv_heads below
    n_heads, groups of query heads share a key/value head. A seed makes the projections
    reproducible. The projections have no bias and are drawn with variance 1/d_model, so that
    normalised input gives queries and keys of unit variance, as the argument for 1/√d_k assumes.

    Raises ValueError where sizes are below 1 or do not divide.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        d_out: int | None = None,
        n_kv_heads: int | None = None,
        seed: int | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        sizes = {"d_model": d_model, "n_heads": n_heads, "n_kv_heads": n_kv_heads}
        optional = {"d_k": d_k, "d_v": d_v, "d_out": d_out}
        for name, size in (sizes | optional).items():
            if size is not None and size < 1:
                raise ValueError(f"{name}: got {size}; it must be at least 1.")
        if n_heads % n_kv_heads:
            raise ValueError(
                f"n_kv_heads: got {n_kv_heads}, but the {n_heads} query heads must divide evenly "
                "among the key/value heads."
            )
        if (d_k is None or d_v is None) and d_model % n_heads:
            raise ValueError(
                f"n_heads: got {n_heads}, which does not divide d_model = {d_model}; choose "
                "another number, or give d_k and d_v."
            )
        self.d_model, self.n_heads, self.n_kv_heads = d_model, n_heads, n_kv_heads
        self.d_k = d_model // n_heads if d_k is None else d_k
        self.d_v = d_model // n_heads if d_v is None else d_v
        self.d_out = d_model if d_out is None else d_out
        self.W_Q = nn.Linear(d_model, n_heads * self.d_k, bias=False, device=device)
        self.W_K = nn.Linear(d_model, n_kv_heads * self.d_k, bias=False, device=device)
        self.W_V = nn.Linear(d_model, n_kv_heads * self.d_v, bias=False, device=device)
        self.W_O = nn.Linear(n_heads * self.d_v, self.d_out, bias=False, device=device)
        self.reset_parameters(seed)

    def reset_parameters(self, seed: int | None = None) -> None:
        """Draws the projections anew: normal, mean 0, variance 1/(input size)."""
        generator = torch.Generator()
        if seed is None:
            generator.seed()
        else:
            generator.manual_seed(seed)
        with torch.no_grad():
            for layer in (self.W_Q, self.W_K, self.W_V, self.W_O):
                # Drawn on the CPU, so that a seed means the same on every device.
                drawn = torch.randn(layer.weight.shape, generator=generator)
                layer.weight.copy_(drawn * layer.in_features**-0.5)

    def project(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of x, and keys and values of the context (of x itself where there is none).

        (..., n_heads, n_q, d_k), (..., n_kv_heads, n_k, d_k) and (..., n_kv_heads, n_k, d_v).
        """
        context = x if context is None else context
        for name, sequence in (("x", x), ("context", context)):
            if sequence.ndim < 2 or sequence.shape[-1] != self.d_model:
                raise ValueError(
                    f"{name}: got the shape {tuple(sequence.shape)}, but d_model = {self.d_model} "
                    f"needs (..., positions, {self.d_model})."
                )
        query = self.W_Q(x).unflatten(-1, (self.n_heads, self.d_k))
        key = self.W_K(context).unflatten(-1, (self.n_kv_heads, self.d_k))
        value = self.W_V(context).unflatten(-1, (self.n_kv_heads, self.d_v))
        return query.transpose(-3, -2), key.transpose(-3, -2), value.transpose(-3, -2)

    def join(self, output: Float[Tensor, "*lead n_heads query_length d_v"]) -> Tensor:
        """The heads' outputs side by side, times W_O: (..., n_q, d_out)."""
        return self.W_O(output.transpose(-3, -2).flatten(-2))  # type: ignore[no-any-return]

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        mask: Mask | Tensor | None = None,
    ) -> Tensor:
        """The layer's output, (..., n_q, d_out). With a context: cross-attention."""
        query, key, value = self.project(x, context)
        return self.join(attend(query, key, value, mask).output)

    @torch.no_grad()
    def attention(
        self,
        x: Tensor,
        context: Tensor | None = None,
        mask: Mask | None = None,
    ) -> Attention:
        """The record of this layer on one sequence x, (n_q, d_model)."""
        for name, sequence in (("x", x), ("context", context)):
            if sequence is not None and sequence.ndim != 2:
                raise ValueError(
                    f"{name}: got the shape {tuple(sequence.shape)}, but a record is one sequence: "
                    f"(positions, {self.d_model})."
                )
        query, key, value = self.project(x, context)
        weight = self.W_O.weight.t().view(self.n_heads, self.d_v, self.d_out)
        return Attention(query, key, value, mask, output_weight=weight)
