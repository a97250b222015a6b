"""Blocks of rows: what a mask leaves of each, so that the rest need not be computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from explorer.masks import Mask, one_sequence


class Block(NamedTuple):
    """Some rows, the only keys they may use, and a penalty for those that they may not."""

    rows: slice
    keys: slice
    penalty: Tensor | None  # 0 or −inf for the last columns of `keys`, (n_heads or 1, rows, last)


def plan(mask: Mask | None, n_q: int, n_k: int, height: int, like: Tensor) -> Iterator[Block]:
    """The blocks of rows of a mask, without the keys that a whole block may not use."""
    for start in range(0, n_q, height):
        rows = slice(start, min(start + height, n_q))
        yield (
            Block(rows, slice(0, n_k), None) if mask is None else _block(mask, n_q, n_k, rows, like)
        )


def _block(mask: Mask, n_q: int, n_k: int, rows: slice, like: Tensor) -> Block:
    first, last = mask.key_range(rows.start, rows.stop - 1, n_q, n_k)
    open_first, open_last = mask.open_range(rows.start, rows.stop - 1, n_q, n_k)
    # For a causal mask only the triangle at the block's end is asked for.
    asked = min(max(first, open_last), last) if open_first <= first else first
    allowed = mask.block(n_q, n_k, rows, slice(asked, last), like.device)
    allowed = one_sequence(allowed, like.shape[0])  # (n_heads or 1, rows, keys)
    if asked == first < last and not bool(allowed[..., [0, -1]].any(0).any(0).all()):
        # The rule did not say how far it reaches: keep only what a row may use.
        used = allowed.any(0).any(0).nonzero().flatten().tolist() or [0, -1]
        allowed = allowed[..., used[0] : used[-1] + 1]
        first, last = first + used[0], first + used[-1] + 1
        asked = first
    # The leading columns that every row may use need no penalty.
    free = int(allowed.all(0).all(0).cumprod(0).sum())
    if asked + free == last:
        return Block(rows, slice(first, last), None)
    barred = ~allowed[..., free:]
    penalty = torch.zeros(
        barred.shape, dtype=torch.promote_types(like.dtype, torch.float32), device=like.device
    )
    return Block(rows, slice(first, last), penalty.masked_fill_(barred, -torch.inf))
