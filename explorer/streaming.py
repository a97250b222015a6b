"""Attention by blocks of rows: weights, outputs and row sums without the steps in between.

`attend` in attention_steps.py is the definition and keeps every step. This gives the same numbers
in less time and memory. Three facts make it so:

- exp2 costs half of exp, so log2(e) is folded into the queries, n·d products instead of n².
- |q·k| ≤ |q||k| (Cauchy–Schwarz): where that bound is small no row maximum is needed.
- Sums divide at the end: the few outputs are normalised, not the many exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.cores import over_cores
from explorer.masks import Mask, one_sequence, up_to_own_position
from explorer.row_blocks import Block, plan

LOG2E = math.log2(math.e)
SAFE_EXPONENT = 48.0
"""exp2 of this and its sum over any row we can hold stay far inside float32: no shift needed."""
BLOCK_ELEMENTS = 1 << 19
"""Scores in one block: 2 MiB in float32, what a core's caches hold."""
BATCH_ELEMENTS = 1 << 20
"""Up to here one block over all heads at once is faster than a head for each core."""
SHARED_PENALTIES = 1 << 23
"""Up to here a mask's penalties, at most one for each cell, are kept for all heads: 32 MiB."""
WHOLE_TABLE = 256 * 512
"""Up to here the whole masked table in three calls is faster than skipping what a mask forbids."""


class Streamed(NamedTuple):
    """What one pass over the rows gives."""

    output: Float[Tensor, "n_heads query_length d_v"]
    lse: Float[Tensor, "n_heads query_length"]
    """log of each row's sum of exp(score), in nats, the sink's share included.

    A row with no key has −inf, or its sink's score alone.
    """


@torch.no_grad()
def weights_and_output(
    query: Float[Tensor, "n_heads query_length d_k"],
    key: Float[Tensor, "n_kv_heads key_length d_k"],
    value: Float[Tensor, "n_kv_heads key_length d_v"],
    *,
    scale: float,
    mask: Mask | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    weights_out: Tensor | None = None,
) -> tuple[
    Float[Tensor, "n_heads query_length key_length"], Float[Tensor, "n_heads query_length d_v"]
]:
    """All weights and the output: (n_heads, n_q, n_k) and (n_heads, n_q, d_v).

    Memory beyond the weights themselves is one block of rows. `weights_out` is a buffer for
    them: at long lengths fresh memory costs as much as the arithmetic.
    """
    n_heads, n_q, n_k = query.shape[0], query.shape[1], key.shape[1]
    compute = torch.promote_types(query.dtype, torch.float32)
    weights = weights_out
    if weights is None:
        weights = query.new_empty(n_heads, n_q, n_k, dtype=compute)
    elif weights.shape != (n_heads, n_q, n_k) or weights.dtype != compute:
        raise ValueError(
            f"weights_out: got the shape {tuple(weights.shape)} and {weights.dtype}, "
            f"but the weights are {(n_heads, n_q, n_k)} and {compute}."
        )
    plain = bias is None and softcap is None and sinks is None
    if not plain or (mask is not None and n_q * n_k > WHOLE_TABLE):
        streamed = stream(
            query,
            key,
            value,
            scale=scale,
            mask=mask,
            bias=bias,
            softcap=softcap,
            sinks=sinks,
            weights_out=weights,
        )
        return weights, streamed.output
    every = slice(0, n_heads)
    keys_t = _heads_of(key, every, n_heads).to(compute).transpose(1, 2)
    masked_rows = None
    if mask is None:
        penalty = weights[:1, :1, :1]  # with beta=0 nothing of it is read
    else:
        allowed = one_sequence(mask.block(n_q, n_k, device=query.device), n_heads)
        masked_rows = ~allowed.any(-1, keepdim=True)
        penalty = torch.zeros(allowed.shape, dtype=compute, device=query.device)
        penalty.masked_fill_(~(allowed | masked_rows), -torch.inf)
    torch.baddbmm(
        penalty,
        query.to(compute),
        keys_t,
        beta=0 if mask is None else 1,
        alpha=scale,
        out=weights,
    )
    torch.softmax(weights, -1, out=weights)
    if masked_rows is not None and bool(masked_rows.any()):
        weights.masked_fill_(masked_rows, 0.0)
    output = torch.bmm(weights, _heads_of(value, every, n_heads).to(compute))
    return weights, output.to(value.dtype)


def stream(
    query: Float[Tensor, "n_heads query_length d_k"],
    key: Float[Tensor, "n_kv_heads key_length d_k"],
    value: Float[Tensor, "n_kv_heads key_length d_v"],
    *,
    scale: float,
    mask: Mask | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    weights_out: Tensor | None = None,
) -> Streamed:
    """Output and log-sum-exp of every row; no n × n table exists unless `weights_out` is one.

    A row with no allowed key gives zeros.
    """
    n_heads, n_q, _ = query.shape
    n_k, d_v = key.shape[1], value.shape[2]
    compute = torch.promote_types(query.dtype, torch.float32)
    output = query.new_empty(n_heads, n_q, d_v, dtype=compute)
    lse = query.new_empty(n_heads, n_q, dtype=compute)
    one_by_one = query.device.type == "cpu" and n_heads * n_q * n_k > BATCH_ELEMENTS
    height = BLOCK_ELEMENTS // max(n_k * (1 if one_by_one else n_heads), 1)
    rows = min(max(height, 16), 256)
    # All heads share the blocks' penalties, unless together they could be a table of n × n.
    kept = list(plan(mask, n_q, n_k, rows, query)) if n_q * n_k <= SHARED_PENALTIES else None

    @torch.no_grad()
    def work(heads: slice) -> None:
        _stream_heads(
            query[heads].to(compute),
            _heads_of(key, heads, n_heads).to(compute),
            _heads_of(value, heads, n_heads).to(compute),
            plan(mask, n_q, n_k, rows, query) if kept is None else kept,
            scale,
            None if bias is None else _chosen(bias, heads),
            softcap,
            None if sinks is None else _chosen(sinks, heads),
            heads,
            None if weights_out is None else weights_out[heads],
            output[heads],
            lse[heads],
        )

    if one_by_one:
        for _ in over_cores(work, [slice(head, head + 1) for head in range(n_heads)]):
            pass
    else:
        work(slice(0, n_heads))
    return Streamed(output.to(value.dtype), lse)


def output_and_lse(
    query: Float[Tensor, "n_heads query_length d_k"],
    key: Float[Tensor, "n_kv_heads key_length d_k"],
    value: Float[Tensor, "n_kv_heads key_length d_v"],
    *,
    scale: float,
    mask: Mask | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Streamed:
    """The same as `stream`, through torch's fused kernel where it can do this attention.

    That kernel is what F.scaled_dot_product_attention runs on the CPU, to the last bit, and it
    hands out the row sums as well. It is torch's own but not public, so its absence is no error.
    """
    n_heads, n_q, d_k = query.shape
    is_causal = mask is not None and mask.rule is up_to_own_position and n_q == key.shape[1]
    fused = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
    fits = query.device.type == "cpu" and d_k == value.shape[2] and (mask is None or is_causal)
    # The kernel reads each vector as adjacent numbers, whatever the strides say.
    fits = fits and all(tensor.stride(-1) == 1 for tensor in (query, key, value))
    # Of a row that holds NaN the kernel makes zeros, and the fault would go unseen.
    fits = fits and all(bool(t.sum(dtype=torch.float32).isfinite()) for t in (query, key))
    if fused is None or not fits or any(term is not None for term in (bias, softcap, sinks)):
        return stream(
            query, key, value, scale=scale, mask=mask, bias=bias, softcap=softcap, sinks=sinks
        )
    every = slice(0, n_heads)
    output, lse = fused(
        query[None],
        _heads_of(key, every, n_heads)[None],
        _heads_of(value, every, n_heads)[None],
        0.0,
        is_causal,
        scale=scale,
    )
    return Streamed(output[0], lse[0])


def _stream_heads(
    query: Tensor,  # (g, n_q, d_k), float32 or float64
    key: Tensor,  # (g, n_k, d_k)
    value: Tensor,  # (g, n_k, d_v)
    blocks: Iterable[Block],
    scale: float,
    bias: Tensor | None,
    softcap: float | None,
    sinks: Tensor | None,
    heads: slice,
    weights: Tensor | None,
    output: Tensor,
    lse: Tensor,
) -> None:
    """One pass over some heads; results go into `weights`, `output` and `lse`."""
    factor = scale * LOG2E if softcap is None else scale / softcap
    queries, keys_t = query * factor, key.transpose(1, 2)
    sink = None if sinks is None else sinks.to(query.dtype)[:, None, None] * LOG2E  # (g, 1, 1)
    bound = largest_exponent(query, key, factor, softcap, sinks).max()
    shift_rows = bias is not None or not bool(bound <= SAFE_EXPONENT)  # NaN: the careful way
    # One buffer for all blocks: fresh memory for each would cost as much as its arithmetic.
    buffer = queries.new_empty(0)
    for rows, keys, penalty in blocks:
        shape = (len(queries), rows.stop - rows.start, keys.stop - keys.start)
        if math.prod(shape) > len(buffer):
            buffer = queries.new_empty(math.prod(shape))
        s = buffer[: math.prod(shape)].view(shape)
        torch.bmm(queries[:, rows], keys_t[:, :, keys], out=s)  # (g, r, c), in units of log2
        if softcap is not None:
            s = s.tanh_().mul_(softcap * LOG2E)
        if bias is not None:
            s += part_of(bias, rows, keys).to(s.dtype) * LOG2E
        if penalty is not None:
            s[..., s.shape[-1] - penalty.shape[-1] :] += _chosen(penalty, heads)
        top = None
        if shift_rows and s.shape[-1]:
            top = s.amax(-1, keepdim=True)
            top = top if sink is None else torch.maximum(top, sink)
            top.masked_fill_(top == -torch.inf, 0.0)
            s -= top
        s.exp2_()
        total = s.sum(-1, keepdim=True)  # (g, r, 1)
        if sink is not None:
            total += (sink if top is None else sink - top).exp2()
        share = torch.where(total > 0, total.reciprocal(), 0.0)
        torch.mul(torch.bmm(s, value[:, keys]), share, out=output[:, rows])
        total.log2_()
        lse[:, rows] = ((total if top is None else total + top) / LOG2E).squeeze(-1)
        if weights is not None:
            torch.mul(s, share, out=weights[:, rows, keys])
            weights[:, rows, : keys.start].zero_()
            weights[:, rows, keys.stop :].zero_()


def largest_exponent(
    query: Tensor, key: Tensor, factor: float, softcap: float | None, sinks: Tensor | None
) -> Tensor:
    """A bound on |score| in units of log2 for each head, (n_heads,), without a bias.

    |q·k| ≤ |q||k| (Cauchy–Schwarz); `factor` is what q is multiplied with. NaN where an input is.
    """
    if softcap is not None:
        bound = torch.full((len(query),), softcap * LOG2E, device=query.device)
    else:
        compute = torch.promote_types(query.dtype, torch.float32)
        longest = [
            torch.linalg.vector_norm(t, dim=-1, dtype=compute).amax(-1) for t in (query, key)
        ]
        bound = longest[0] * longest[1].repeat_interleave(len(query) // len(key)) * abs(factor)
    return bound if sinks is None else torch.maximum(bound, sinks.float().abs() * LOG2E)


def part_of(table: Tensor, rows: slice, keys: slice) -> Tensor:
    """A block of a table (n_heads or 1, n_q or 1, n_k or 1)."""
    table = table if table.shape[-2] == 1 else table[..., rows, :]
    return table if table.shape[-1] == 1 else table[..., keys]


def _chosen(per_head: Tensor, heads: slice) -> Tensor:
    """The part of some heads, of a tensor with one entry for each head or one for all."""
    return per_head if per_head.shape[0] == 1 else per_head[heads]


def _heads_of(shared: Tensor, heads: slice, n_heads: int) -> Tensor:
    """Keys or values for some query heads: query head h uses key/value head h // group."""
    group = n_heads // shared.shape[0]
    if group == 1:
        return shared[heads]
    which = torch.arange(heads.start, heads.stop, device=shared.device) // group
    return shared[which]
