"""Attention maps at the screen's size and any window of them, without the n × n table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch
from jaxtyping import Bool, Float
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
    n_rows, n_keys = int(row_bins[-1]) + 1, int(key_bins[-1]) + 1
    if n_rows == len(row_bins) and n_keys == len(key_bins):
        return attention.weights(heads)
    kept: Tensor | None = None
    for rows in _blocks(attention):
        weights = attention.weights(heads, rows)  # (h, rows, n_k)
        if kept is None:
            kept = weights.new_zeros(weights.shape[0], n_rows, n_keys)
        _put(weights, row_bins[rows], key_bins, kept, reduce)
    assert kept is not None  # a layer has at least one query
    if reduce == "mean":
        kept /= torch.bincount(row_bins, minlength=n_rows).to(kept)[:, None]
    return kept


def pooled_forbidden(
    attention: WeightedLayer, size: int = 256
) -> Bool[Tensor, "n_heads_or_1 rows keys"]:
    """True for the bins of `pooled` in which the mask forbids every key to every query."""
    row_bins, key_bins = (_bins(n, size) for n in (attention.query_length, attention.key_length))
    kept: Tensor | None = None
    for rows in _blocks(attention):
        allowed = attention.allowed(rows=rows).float()  # (h or 1, rows, n_k)
        if kept is None:
            bins = int(row_bins[-1]) + 1, int(key_bins[-1]) + 1
            kept = allowed.new_zeros(allowed.shape[0], *bins)
        _put(allowed, row_bins[rows], key_bins, kept, "max")
    assert kept is not None  # a layer has at least one query
    return kept == 0


def _blocks(attention: WeightedLayer) -> Iterator[slice]:
    """Runs of rows, each with about as many weights as are looked at at once."""
    step = max(1, BLOCK_WEIGHTS // (attention.n_heads * attention.key_length))
    for start in range(0, attention.query_length, step):
        yield slice(start, min(start + step, attention.query_length))


def _put(values: Tensor, row_bins: Tensor, key_bins: Tensor, kept: Tensor, reduce: Reduce) -> None:
    """Adds some rows' values to their bins, or keeps each bin's largest."""
    how: Literal["sum", "amax"] = "sum" if reduce == "mean" else "amax"
    across = values.new_zeros(*values.shape[:2], kept.shape[-1])
    keys = key_bins.to(values.device).expand_as(values)
    across.scatter_reduce_(2, keys, values, how)
    rows = row_bins.to(values.device)[:, None].expand_as(across)
    kept.scatter_reduce_(1, rows, across, how)


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
