"""Attention cut into tiles: bins of the screen, blocks of rows, and what a mask leaves of each.

A tile holds whole bins of one length, so that pooling it is a sum over a view; and it lies with
its keys downwards, so that each sum runs over neighbouring queries (PERF-FACTS: 7 times faster).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from explorer.masks import Mask, one_sequence


def edges(length: int, size: int) -> tuple[int, ...]:
    """The borders of at most `size` bins: bin b holds the positions edges[b] to edges[b + 1] − 1.

    The first bins are one position longer where they can't all be equal, as in np.array_split.
    """
    bins = min(length, size)
    each, longer = divmod(length, bins)
    return tuple(b * each + min(b, longer) for b in range(bins + 1))


class Run(NamedTuple):
    """Neighbouring parts of one length; a part is a bin, or some of one where bins are long."""

    start: int
    """First position, counted from the window's own start."""
    parts: int
    length: int
    """Positions in each part."""
    bins: tuple[int, ...]
    """The bin of each part."""

    @property
    def stop(self) -> int:
        return self.start + self.parts * self.length


def slice_of(bins: tuple[int, ...]) -> slice:
    """Neighbouring bins as a slice."""
    return slice(bins[0], bins[-1] + 1)


class Tile(NamedTuple):
    """Some keys for a block of rows, and where among them the mask has to be applied."""

    keys: Run
    barred: tuple[tuple[slice, Bool[Tensor, "n_heads_or_1 keys rows"]], ...]
    """(keys of the tile, True where the query may not use the key), nothing elsewhere."""


def runs(
    length: int, size: int, largest: int, first: int = 0, stop: int | None = None
) -> list[Run]:
    """The bins that hold any of the positions from `first` to `stop` − 1, a run for each tile.

    A run is at most `largest` positions long.
    """
    stop = length if stop is None else stop
    if first >= stop:
        return []
    borders = edges(length, size)
    short = borders[-1] - borders[-2]
    found: list[Run] = []
    at, last = (bisect_right(borders, position) - 1 for position in (first, stop - 1))
    while at <= last:
        each = borders[at + 1] - borders[at]
        if each > largest:  # a bin in several tiles
            start = borders[at]
            while start < borders[at + 1]:
                some = min(largest, borders[at + 1] - start)
                found.append(Run(start, 1, some, (at,)))
                start += some
            at += 1
            continue
        alike = (length - short * (len(borders) - 1)) if each > short else len(borders) - 1
        until = min(at + max(1, largest // each), alike, last + 1)
        found.append(Run(borders[at], until - at, each, tuple(range(at, until))))
        at = until
    return found


class Window(NamedTuple):
    """The rectangle that is looked at, in a layer of n_q queries and n_k keys."""

    rows: tuple[int, int]
    keys: tuple[int, int]
    n_q: int
    n_k: int
    n_heads: int


def tiles(
    mask: Mask | None,
    window: Window,
    rows: Run,
    size: int,
    largest: int,
    device: torch.device,
) -> Iterator[Tile]:
    """The tiles of one block of rows, without those that the mask forbids as a whole."""
    n_q, n_k = window.n_q, window.n_k
    k0, k1 = window.keys
    first_row, last_row = window.rows[0] + rows.start, window.rows[0] + rows.stop - 1
    used, free = (0, n_k), (0, n_k)
    if mask is not None:
        used = mask.key_range(first_row, last_row, n_q, n_k)
        free = mask.open_range(first_row, last_row, n_q, n_k)
    first, stop = max(used[0], k0), min(used[1], k1)
    for run in runs(k1 - k0, size, largest, first - k0, stop - k0) if first < stop else ():
        if mask is None:
            yield Tile(run, ())
            continue
        start, end = k0 + run.start, k0 + run.stop
        inside = max(start, min(free[0], end)), max(start, min(free[1], end))
        asked = ((start, inside[0]), (inside[1], end)) if inside[0] < inside[1] else ((start, end),)
        barred = []
        for left, right in asked:
            if left == right:
                continue
            block = slice(first_row, last_row + 1), slice(left, right)
            allowed = one_sequence(mask.block(n_q, n_k, *block, device), window.n_heads)
            if not bool(allowed.all()):
                closed = (~allowed).transpose(1, 2).contiguous()  # (h or 1, keys, rows)
                barred.append((slice(left - start, right - start), closed))
        whole = len(barred) == 1 and barred[0][1].shape[1] == end - start
        if not (whole and bool(barred[0][1].all())):
            yield Tile(run, tuple(barred))
