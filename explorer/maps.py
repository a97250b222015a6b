"""Attention maps at the screen's size and any window of them, without the n × n table."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.masks import Positions
from explorer.metrics import BLOCK_WEIGHTS, WeightedLayer

Reduce = Literal["mean", "max"]


def pooled(
    attention: WeightedLayer,
    size: int = 256,
    reduce: Reduce = "mean",
    heads: Positions = None,
) -> Float[Tensor, "n_heads rows keys"]:
    """Each head's map in at most size × size bins, computed from every weight.

    "mean" keeps mass: a bin is the weight that its queries give its keys, averaged over the
    queries, so each row of bins sums to what the rows sum to, 1. "max" keeps needles: a bin is
    its largest weight. Fewer tokens than bins leave the map as it is. Bins differ by at most one
    token in length. Raises ValueError for size < 1 or an unknown reduce.
    """
    if size < 1:
        raise ValueError(f"size: got {size}; a map has at least 1 bin.")
    if reduce not in ("mean", "max"):
        raise ValueError(f'reduce: got "{reduce}"; it is "mean" or "max".')
    row_bins, key_bins = (_bins(n, size) for n in (attention.query_length, attention.key_length))
    n_rows = int(row_bins[-1]) + 1
    n_keys = int(key_bins[-1]) + 1
    if n_rows == len(row_bins) and n_keys == len(key_bins):
        return attention.weights(heads)
    n_heads = attention.n_heads
    step = max(1, BLOCK_WEIGHTS // (n_heads * attention.key_length))
    kept: Tensor | None = None
    for start in range(0, attention.query_length, step):
        rows = slice(start, min(start + step, attention.query_length))
        weights = attention.weights(heads, rows)  # (h, rows, n_k)
        if kept is None:
            kept = weights.new_zeros(weights.shape[0], n_rows, n_keys)
        across = weights.new_zeros(*weights.shape[:2], n_keys)
        keys = key_bins.to(weights.device)
        into = row_bins[rows].to(weights.device)
        if reduce == "mean":
            kept.index_add_(1, into, across.index_add_(2, keys, weights))
        else:
            kept.index_reduce_(1, into, across.index_reduce_(2, keys, weights, "amax"), "amax")
    assert kept is not None  # a layer has at least one query
    if reduce == "mean":
        kept /= torch.bincount(row_bins, minlength=n_rows).to(kept)[:, None]
    return kept


def _bins(length: int, size: int) -> Tensor:
    """The bin of each position: consecutive, as equal as whole tokens allow."""
    return torch.arange(length) * min(size, length) // length


def window(
    attention: WeightedLayer,
    rows: tuple[int, int],
    keys: tuple[int, int],
    heads: Positions = None,
) -> Float[Tensor, "n_heads rows keys"]:
    """A rectangle of each head's weights, exactly: rows r0 to r1 - 1, keys k0 to k1 - 1.

    Raises ValueError where it is empty or reaches outside the map.
    """
    for name, (start, stop), length in (
        ("rows", rows, attention.query_length),
        ("keys", keys, attention.key_length),
    ):
        if not 0 <= start < stop <= length:
            raise ValueError(
                f"{name}: got ({start}, {stop}), but a window needs 0 ≤ start < stop ≤ {length}."
            )
    return attention.weights(heads, slice(*rows), slice(*keys))
