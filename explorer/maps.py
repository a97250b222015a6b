"""Attention maps at the screen's size and any window of them, without the n × n table.

`overview` makes one pass over all weights of a layer and keeps what a screen can show, the numbers
of each query, and each row's log-sum-exp. With that, `zoomed` and `window` give any part exactly,
at a cost that does not depend on the length of the text.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer import maps_of_weights
from explorer.attention import Attention
from explorer.masks import Positions, positions
from explorer.metrics import WeightedLayer
from explorer.pooled_pass import Found
from explorer.pooling import Progress, passed
from explorer.row_measures import TokenMarks
from explorer.row_numbers import marked_keys, numbers_of
from explorer.tiles import edges

__all__ = [
    "Overview",
    "Picture",
    "Progress",
    "Reduce",
    "edges",
    "overview",
    "pooled",
    "pooled_forbidden",
    "window",
    "zoomed",
]

Reduce = Literal["mean", "max"]


@dataclass(frozen=True, eq=False)
class Picture:
    """A part of each head's map in bins, computed from every weight in it."""

    rows: tuple[int, ...]
    """The borders of the bins of queries: bin b holds the queries rows[b] to rows[b + 1] − 1."""
    keys: tuple[int, ...]
    """The borders of the bins of keys."""
    mean: Float[Tensor, "n_heads row_bins key_bins"]
    """The weight that a bin's queries give its keys, averaged over the queries. It keeps mass:
    over all keys a row of bins sums to what the rows sum to, 1."""
    largest: Float[Tensor, "n_heads row_bins key_bins"]
    """A bin's largest weight: needles stay visible."""
    forbidden: Bool[Tensor, "n_heads_or_1 row_bins key_bins"]
    """True where the mask forbids every key of the bin to every query of it."""


@dataclass(frozen=True, eq=False)
class Overview:
    """What one pass over all weights of a layer gives."""

    attention: WeightedLayer
    """The layer; an `Attention` record with its row_lse, so that any part of it is cheap now."""
    picture: Picture
    """The whole map."""
    per_query: dict[str, Float[Tensor, "n_heads query_length"]]
    """The quick metrics of metric_table.py by name; NaN where a query can't be judged."""

    def head_metrics(
        self, padded_queries: Bool[Tensor, " query_length"] | None = None
    ) -> dict[str, Float[Tensor, " n_heads"]]:
        """Each head's mean over the queries that can be judged and are no padding."""
        found = {}
        for name, values in self.per_query.items():
            counted = values.double()
            if padded_queries is not None:
                counted = counted.masked_fill(padded_queries.to(values.device), torch.nan)
            found[name] = counted.nanmean(-1)
        return found


def overview(
    attention: WeightedLayer,
    size: int = 256,
    *,
    marks: TokenMarks | None = None,
    same_sequence: bool = True,
    progress: Progress | None = None,
) -> Overview:
    """One pass over all weights of a layer: its picture in at most size × size bins, its numbers.

    `marks` are the tokens of row_measures.marks_of, for the numbers that need tokens;
    `same_sequence` is False for cross-attention. `progress` is told the share done, and what it
    raises ends the pass. Raises ValueError for size < 1, and FullyMaskedRowError where a query
    has no key and the record says "error".
    """
    _check(size)
    n_q, n_k = attention.query_length, attention.key_length
    if not isinstance(attention, Attention):
        found, per_query = maps_of_weights.overview(attention, size, marks, same_sequence, progress)
        return Overview(attention, _picture(found, (0, n_q), (0, n_k), size), per_query)
    marked = None if marks is None else marked_keys(marks)
    found = passed(
        attention,
        size,
        heads=range(attention.n_heads),
        of_rows=True,
        marked=marked,
        progress=_part_of(progress, 0.0, 0.9),
    )
    kept = dataclasses.replace(attention, row_lse=found.lse)
    per_query = numbers_of(kept, found, marks, same_sequence, _part_of(progress, 0.9, 1.0))
    if progress is not None:
        progress(1.0)
    return Overview(kept, _picture(found, (0, n_q), (0, n_k), size), per_query)


def zoomed(
    attention: WeightedLayer,
    rows: tuple[int, int],
    keys: tuple[int, int],
    size: int = 256,
    *,
    heads: Positions = None,
    progress: Progress | None = None,
) -> Picture:
    """A window of each head's map, exactly, in at most size × size bins.

    The window holds the queries r0 to r1 − 1 and the keys k0 to k1 − 1. Up to `size` of each
    stand alone, and `mean` and `largest` are both their weights. A record without row_lse costs
    a pass over these queries' rows more. Raises ValueError for a window that is empty or reaches
    outside the map.
    """
    _check(size)
    _check_window(attention, rows, keys)
    chosen = positions(heads, attention.n_heads, "heads").tolist()
    if rows[1] - rows[0] <= size and keys[1] - keys[0] <= size:
        weights = window(attention, rows, keys, chosen)
        barred = ~attention.allowed(chosen, slice(*rows), slice(*keys))
        borders = tuple(range(rows[0], rows[1] + 1)), tuple(range(keys[0], keys[1] + 1))
        return Picture(*borders, weights, weights, barred)
    if not isinstance(attention, Attention):
        found = maps_of_weights.pooled(attention, size, chosen, rows, keys, progress)
        return _picture(found, rows, keys, size)
    lse = None
    if keys != (0, attention.key_length):
        lse = _lse(attention, chosen, rows)
    found = passed(attention, size, heads=chosen, rows=rows, keys=keys, lse=lse, progress=progress)
    return _picture(found, rows, keys, size)


def pooled(
    attention: WeightedLayer,
    size: int = 256,
    reduce: Reduce = "mean",
    heads: Positions = None,
) -> Float[Tensor, "n_heads row_bins key_bins"]:
    """Each head's map in at most size × size bins: `Picture.mean`, or `.largest` for "max".

    Fewer tokens than bins leave the map as it is. Raises ValueError for size < 1 or an unknown
    reduce.
    """
    _check(size)
    if reduce not in ("mean", "max"):
        raise ValueError(f'reduce: got "{reduce}"; it is "mean" or "max".')
    n_q, n_k = attention.query_length, attention.key_length
    if n_q <= size and n_k <= size:
        return attention.weights(heads)
    chosen = positions(heads, attention.n_heads, "heads").tolist()
    if isinstance(attention, Attention):
        found = passed(attention, size, heads=chosen, largest=reduce == "max")
    else:
        found = maps_of_weights.pooled(attention, size, chosen, (0, n_q), (0, n_k))
    return found.mean if reduce == "mean" else found.largest


def pooled_forbidden(
    attention: WeightedLayer, size: int = 256
) -> Bool[Tensor, "n_heads_or_1 row_bins key_bins"]:
    """True for the bins of `pooled` in which the mask forbids every key to every query."""
    _check(size)
    if not isinstance(attention, Attention):
        return maps_of_weights.forbidden(attention, size)
    return passed(attention, size, heads=()).forbidden


def window(
    attention: WeightedLayer,
    rows: tuple[int, int],
    keys: tuple[int, int],
    heads: Positions = None,
) -> Float[Tensor, "n_heads rows keys"]:
    """A rectangle of each head's weights, exactly: rows r0 to r1 - 1, keys k0 to k1 - 1.

    Raises ValueError where it is empty or reaches outside the map.
    """
    _check_window(attention, rows, keys)
    if not isinstance(attention, Attention) or keys == (0, attention.key_length):
        return attention.weights(heads, slice(*rows), slice(*keys))
    chosen = positions(heads, attention.n_heads, "heads").tolist()
    cells = max(rows[1] - rows[0], keys[1] - keys[0])  # a bin for each
    lse = _lse(attention, chosen, rows)
    found = passed(attention, cells, heads=chosen, rows=rows, keys=keys, lse=lse, largest=False)
    return found.mean


def _part_of(progress: Progress | None, start: float, stop: float) -> Progress | None:
    """The progress of a part of the work, as a share of all of it."""
    if progress is None:
        return None
    return lambda share: progress(start + (stop - start) * share)


def _lse(
    attention: Attention, heads: list[int], rows: tuple[int, int]
) -> Float[Tensor, "n_heads rows"]:
    """The log-sum-exp of some rows: kept, or found tile by tile."""
    if attention.row_lse is not None:
        return attention.row_lse[heads, rows[0] : rows[1]]
    return passed(attention, 1, heads=heads, rows=rows, largest=False).lse


def _picture(found: Found, rows: tuple[int, int], keys: tuple[int, int], size: int) -> Picture:
    down, across = (
        tuple(start + each for each in edges(stop - start, size)) for start, stop in (rows, keys)
    )
    return Picture(down, across, found.mean, found.largest, found.forbidden)


def _check(size: int) -> None:
    if size < 1:
        raise ValueError(f"size: got {size}; a map has at least 1 bin.")


def _check_window(attention: WeightedLayer, rows: tuple[int, int], keys: tuple[int, int]) -> None:
    for name, (start, stop), length in (
        ("rows", rows, attention.query_length),
        ("keys", keys, attention.key_length),
    ):
        if not 0 <= start < stop <= length:
            raise ValueError(
                f"{name}: got ({start}, {stop}), but a window needs 0 ≤ start < stop ≤ {length}."
            )
