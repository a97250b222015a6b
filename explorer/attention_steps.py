"""Scaled dot-product attention step by step: what all else here is checked against.

softmax(QKᵀ · scale + mask) V, with scale = 1/√d_k: Vaswani et al. 2017, "Attention Is All You
Need", equation 1. The optional terms are those of real models: a bias (T5, Raffel et al. 2020), a
soft cap on the scores (Gemma 2, 2024), sinks (gpt-oss, 2025) and shared key/value heads (grouped
queries, Ainslie et al. 2023).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer import inputs
from explorer.masks import Mask

OnMaskedRow = Literal["error", "zero"]


class FullyMaskedRowError(ValueError):
    """A query may use no key at all, so its weights are not defined."""

    def __init__(self, masked_rows: Bool[Tensor, "*lead n_heads query_length"]) -> None:
        flat = masked_rows.reshape(-1, *masked_rows.shape[-2:]).any(0)  # (h, n_q)
        self.rows: dict[int, list[int]] = {
            head: flat[head].nonzero().flatten().tolist()
            for head in range(flat.shape[0])
            if bool(flat[head].any())
        }
        head, rows = next(iter(self.rows.items()))
        same = len(self.rows) == flat.shape[0] > 1 and all(r == rows for r in self.rows.values())
        which = "every head" if same else f"head {head}"
        shown = ", ".join(map(str, rows[:8])) + (" …" if len(rows) > 8 else "")
        super().__init__(
            f"mask: it leaves no key for query row {shown} in {which}, and softmax over nothing "
            'is undefined. Allow a key there, or choose on_masked_row="zero" for a row of zeros.'
        )


class AttentionSteps(NamedTuple):
    """Each step of attention. Scores and weights are float32 where the input is half precision."""

    dots: Float[Tensor, "*lead n_heads query_length key_length"]
    """q·k."""
    scores: Float[Tensor, "*lead n_heads query_length key_length"]
    """dots × scale, soft-capped and with the bias, before the mask."""
    masked_scores: Float[Tensor, "*lead n_heads query_length key_length"]
    """scores, and −inf where the query may not use the key."""
    weights: Float[Tensor, "*lead n_heads query_length key_length"]
    """softmax of each row: shares of 1. With sinks a row sums to less; the sink has the rest."""
    output: Float[Tensor, "*lead n_heads query_length d_v"]
    """weights · value, for each head, before W_O."""
    masked_rows: Bool[Tensor, "*lead n_heads query_length"]
    """True where a query has no key it may use: its weights and output are zeros."""


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask | Tensor | None = None,
    *,
    scale: float | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    on_masked_row: OnMaskedRow = "error",
) -> AttentionSteps:
    """Attention with every step kept: the definition that all else here is checked against.

    query is (..., n_heads, n_q, d_k), key (..., n_kv_heads, n_k, d_k), value (..., n_kv_heads,
    n_k, d_v), n_heads a multiple of n_kv_heads: query head h uses key/value head
    h // (n_heads / n_kv_heads). mask is True where the query may use the key: a Mask, or bool
    broadcastable to (..., n_heads, n_q, n_k). scale is 1/√d_k unless given. bias is added to the
    scores; softcap c makes them c·tanh(score / c); sinks is one more score for each head, whose
    weight is dropped.

    Raises ValueError for shapes that do not fit and for NaN or infinite input, and
    FullyMaskedRowError (a ValueError) where a query has no key, unless on_masked_row="zero".
    """
    inputs.check(query, key, value, scale, bias, softcap, sinks, on_masked_row)
    inputs.check_finite(query=query, key=key, value=value, bias=bias, sinks=sinks)
    n_heads, n_q, d_k = query.shape[-3:]
    n_k, group = key.shape[-2], n_heads // key.shape[-3]
    compute = torch.promote_types(query.dtype, torch.float32)
    keys = key.repeat_interleave(group, -3).to(compute)  # (..., n_heads, n_k, d_k)
    values = value.repeat_interleave(group, -3).to(compute)  # (..., n_heads, n_k, d_v)

    dots = query.to(compute) @ keys.transpose(-2, -1)  # (..., n_heads, n_q, n_k)
    scores = scored(dots, 1 / math.sqrt(d_k) if scale is None else scale, bias, softcap)

    allowed = _allowed(mask, n_q, n_k, scores)
    masked_scores = scores.masked_fill(~allowed, -torch.inf)
    masked_rows = ~allowed.any(-1)  # (..., n_heads, n_q)
    if on_masked_row == "error" and bool(masked_rows.any()):
        raise FullyMaskedRowError(masked_rows)

    # A row of −inf alone has no softmax; its scores stand in here and its weights are zeroed.
    softmax_in = torch.where(masked_rows[..., None], scores, masked_scores)
    if sinks is not None:
        column = sinks.to(compute)[:, None, None].expand(*scores.shape[:-1], 1)
        weights = torch.softmax(torch.cat([softmax_in, column], -1), -1)[..., :-1]
    else:
        weights = torch.softmax(softmax_in, -1)
    weights = weights.masked_fill(masked_rows[..., None], 0.0)
    output = (weights @ values).to(value.dtype)  # (..., n_heads, n_q, d_v)
    return AttentionSteps(dots, scores, masked_scores, weights, output, masked_rows)


def scored(dots: Tensor, scale: float, bias: Tensor | None, softcap: float | None) -> Tensor:
    """The scores of some dots: scaled, soft-capped, with the bias added."""
    scores = dots * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    return scores if bias is None else scores + bias.to(scores.dtype)


def _allowed(mask: Mask | Tensor | None, n_q: int, n_k: int, scores: Tensor) -> Tensor:
    """The whole mask as bool in the shape of the scores."""
    if mask is None:
        return torch.ones_like(scores, dtype=torch.bool)
    table = mask.block(n_q, n_k, device=scores.device) if isinstance(mask, Mask) else mask
    return inputs.fitted_mask(table, scores)
