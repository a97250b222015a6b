"""What a pass over the tiles of a layer is made from, and what it has found so far."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from explorer.attention import Attention
from explorer.masks import one_sequence
from explorer.streaming import LOG2E, SAFE_EXPONENT, largest_exponent
from explorer.tiles import Run, Tile, Window, edges, runs, slice_of, tiles

NEVER = -1e30
"""The score of a key that a query may not use: finite, as 0 · −inf would be NaN in Σ w·s."""
FIRST = "first"
NEIGHBOURS = {"self": 0, "previous": -1, "next": 1}
"""Keys by their place, counted from the query's own."""


class Found(NamedTuple):
    """Results of a pass over `h` heads; what was not wanted is empty."""

    lse: Tensor
    """(h, rows), in nats."""
    counts: Tensor
    """(h or 1, rows): how many keys of the window the query may use."""
    mean: Tensor
    """(h, R, K): the weight on a bin's keys, averaged over its queries."""
    largest: Tensor
    """(h, R, K): a bin's largest weight."""
    forbidden: Tensor
    """(h or 1, R, K): the mask forbids every cell."""
    of_rows: dict[str, Tensor]
    """(h, rows) each: "sum" and "entropy" of the weights, "largest", "ahead" Σ w·max(j − i, 0),
    "back" Σ w·max(i − j, 0), and the weight on "first", "self", "previous" and "next" (0 where
    there is no such key)."""
    on_marked: Tensor
    """(kinds, h, rows): the weight on all keys of a kind."""


class Sizes(NamedTuple):
    """How much is looked at at once."""

    rows: int
    keys: int
    heads: int


def sizes_for(device: torch.device, n_heads: int, n_rows: int, n_keys: int) -> Sizes:
    """What fits a core's caches, or an eighth of a GPU's free memory."""
    if device.type == "cpu":  # 2 MiB: measured the best of 128 × 512 to 1024 × 1024
        heads = (512 * 1024) // (min(n_rows, 512) * min(n_keys, 1024))
        return Sizes(512, 1024, max(1, min(n_heads, heads)))
    cells = 1 << 24
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        cells = min(max(free // 64, 1 << 20), 1 << 27)  # two tiles of 4 bytes a cell
    rows = 1024
    heads = max(1, min(n_heads, cells // (rows * 512)))
    return Sizes(rows, max(512, cells // (rows * heads)), heads)


class Prepared(NamedTuple):
    """A tile with what all heads share."""

    tile: Tile
    penalties: tuple[tuple[slice, Tensor], ...]
    """(keys of the tile, the most that a score may be there, or True where the mask bars the key),
    (h or 1, keys, rows) each."""
    slots: slice
    """Where its parts of bins stand among those of the block."""
    places: Tensor | None
    """(1, 1, keys), counted from the place of the block's first row."""
    marked: tuple[Tensor, ...]
    """The keys of each kind, counted from the tile's first."""
    ahead: Tensor | None
    """(keys, rows): max(j − i, 0), where some keys stand ahead, some do not, and the mask leaves
    any of them."""
    all_ahead: bool


@dataclass(eq=False)
class Pass:
    """A pass: what it is made from, and what has been found so far."""

    attention: Attention
    size: int
    heads: tuple[int, ...]
    rows: tuple[int, int]
    keys: tuple[int, int]
    lse: Tensor | None
    wants_largest: bool
    wants_rows: bool
    marked: Tensor | None
    """(kinds, n_k): the keys whose weight is summed, a row for each kind."""
    stopped: threading.Event = field(default_factory=threading.Event)
    adding: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        a, h = self.attention, len(self.heads)
        n_q, n_k = a.query_length, a.key_length
        n_rows, n_keys = self.rows[1] - self.rows[0], self.keys[1] - self.keys[0]
        self.device, self.cells = a.query.device, h * n_rows * n_keys
        self.dtype = torch.promote_types(a.query.dtype, torch.float32)
        self.sizes = sizes_for(self.device, h, n_rows, n_keys)
        self.window = Window(self.rows, self.keys, n_q, n_k, a.n_heads)
        self.blocks = runs(n_rows, self.size, self.sizes.rows)
        scale = a.scale or 0.0  # a record always has one
        self.factor = scale * LOG2E if a.softcap is None else scale / a.softcap
        self.finite = False  # whether every score is known to be a number
        self.unsafe = [True] * a.n_heads  # where the sums are known their logarithm is the shift
        if self.lse is None and a.bias is None:
            bound = largest_exponent(a.query, a.key, self.factor, a.softcap, a.sinks)  # (n_heads,)
            self.unsafe = [not each <= SAFE_EXPONENT for each in bound.tolist()]  # NaN is unsafe
            self.finite = a.softcap is None and bool(bound.isfinite().all())
        lead = 1
        if a.mask is not None:
            corner = a.mask.block(n_q, n_k, slice(0, 1), slice(0, 1), self.device)
            lead = len(one_sequence(corner, a.n_heads))
        self.row_edges, self.key_edges = edges(n_rows, self.size), edges(n_keys, self.size)
        bins = len(self.row_edges) - 1, len(self.key_edges) - 1
        self.sums = self.zeros(h, *bins)
        self.maxima = self.zeros(h if self.wants_largest else 0, *bins)
        self.open = torch.zeros(lead, *bins, dtype=torch.bool, device=self.device)
        self.counts = torch.zeros(lead, n_rows, dtype=torch.int64, device=self.device)
        # Of scores near 60 float32 keeps 6 digits, and a weight no more: see Attention.weights.
        exact = self.dtype if self.device.type == "mps" else torch.float64  # mps has none
        self.row_lse = torch.zeros(h, n_rows, dtype=exact, device=self.device)
        names = ("sum", "entropy", "largest", "ahead", "back", FIRST, *NEIGHBOURS)
        self.of_rows = {name: self.zeros(h, n_rows) for name in names if self.wants_rows}
        self.on_marked = self.zeros(0 if self.marked is None else len(self.marked), h, n_rows)

    def zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=self.dtype, device=self.device)

    def found(self) -> Found:
        per_bin = torch.tensor(self.row_edges, device=self.device).diff()
        own = list(self.heads) if self.heads and len(self.counts) > 1 else slice(None)
        return Found(
            self.row_lse,
            self.counts[own],
            self.sums / per_bin[:, None],
            self.maxima,
            ~self.open[own],
            self.of_rows,
            self.on_marked,
        )

    def empty(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=self.dtype, device=self.device)

    def prepare(self, block: Run) -> list[Prepared]:
        """The block's tiles, and how many keys each of its rows may use."""
        n_rows = block.stop - block.start
        own = self.rows[0] + block.start + self.window.n_k - self.window.n_q  # first row's place
        prepared, at = [], 0
        mask = self.attention.mask
        for tile in tiles(mask, self.window, block, self.size, self.sizes.keys, self.device):
            run = tile.keys
            allowed = self._allowed(tile, n_rows)
            self._count(block, tile, allowed)
            start, stop = self.keys[0] + run.start, self.keys[0] + run.stop
            places = ahead = None
            marked: tuple[Tensor, ...] = ()
            if self.wants_rows:
                places = torch.arange(start, stop, device=self.device, dtype=self.dtype) - own
                if self.marked is not None:
                    kinds = self.marked[:, start:stop].to(self.device)
                    marked = tuple(kind.nonzero().flatten() for kind in kinds)
                if start < own + n_rows - 1 and stop - 1 > own:
                    queries = torch.arange(n_rows, device=self.device, dtype=self.dtype)
                    ahead = (places[:, None] - queries).clamp_(min=0)
                    if allowed is not None and not bool(((ahead > 0) & allowed).any()):
                        ahead = None
                places = places[None, None]
            slots, all_ahead = slice(at, at + run.parts), start >= own + n_rows - 1
            penalties = tuple((where, self._penalty(barred)) for where, barred in tile.barred)
            prepared.append(Prepared(tile, penalties, slots, places, marked, ahead, all_ahead))
            at += run.parts
        return prepared

    def _allowed(self, tile: Tile, n_rows: int) -> Tensor | None:
        """What the mask leaves of a tile, (h or 1, keys, rows); None where it leaves all."""
        if not tile.barred:
            return None
        shape = len(self.counts), tile.keys.stop - tile.keys.start, n_rows
        allowed = torch.ones(shape, dtype=torch.bool, device=self.device)
        for where, barred in tile.barred:
            allowed[:, where] = ~barred
        return allowed

    def _penalty(self, barred: Tensor) -> Tensor:
        """The most that a score may be, NEVER where the mask bars the key: a minimum is ten times
        quicker than a filling. What is not a number would stay so, and large masks take more
        memory than a tile: there it is `barred` itself."""
        if not self.finite or barred.numel() > self.sizes.rows * self.sizes.keys:
            return barred
        most = torch.full_like(barred, torch.inf, dtype=self.dtype)
        return most.masked_fill_(barred, NEVER)

    def _count(self, block: Run, tile: Tile, allowed: Tensor | None) -> None:
        """Adds the keys that a tile leaves its rows, and the bins in which it leaves any."""
        run, rows = tile.keys, slice(block.start, block.stop)
        self.counts[:, rows] += run.stop - run.start
        anything: Tensor | bool = True
        if allowed is not None:
            for _, barred in tile.barred:
                self.counts[:, rows] -= barred.sum(1)
            by_bins = allowed.view(-1, run.parts, run.length, block.parts, block.length)
            anything = by_bins.any(2).any(3).transpose(1, 2)  # (h or 1, row bins, key bins)
        with self.adding:
            self.open[:, slice_of(block.bins), slice_of(run.bins)] |= anything
