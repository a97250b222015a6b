"""One pass over all weights of a layer at the screen's size, without the n × n table.

For each block of rows the scores are made tile by tile, used, and forgotten: extra memory is two
tiles and one block's bins for each worker. What makes it quick stands in streaming.py. Beside
that, Σ w·s of a row gives its entropy, lse − Σ w·s, without a logarithm for each weight.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from explorer.attention import Attention, FullyMaskedRowError
from explorer.masks import one_sequence
from explorer.streaming import LOG2E, SAFE_EXPONENT, WORKER, largest_exponent, part_of, workers
from explorer.tiles import Run, Tile, Window, edges, runs, slice_of, tiles

Progress = Callable[[float], object]
"""Is told the share that is done, 0 to 1, in the caller's thread. What it raises ends the pass."""

NEVER = -1e30
"""The score of a key that a query may not use: finite, as 0 · −inf would be NaN in Σ w·s."""
LOWEST = -1e15
"""No shift goes lower, so that NEVER stays far below it."""
SMALL = 1 << 18
"""Up to this many weights handing the work to other threads costs more than it saves."""
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
    on_features: Tensor
    """(features, h, rows): Σ w·feature."""


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


@torch.no_grad()
def passed(
    attention: Attention,
    size: int,
    *,
    heads: Sequence[int],
    rows: tuple[int, int] | None = None,
    keys: tuple[int, int] | None = None,
    lse: Tensor | None = None,
    largest: bool = True,
    of_rows: bool = False,
    features: Tensor | None = None,
    progress: Progress | None = None,
) -> Found:
    """One pass over some heads, or over a window of them, in at most size × size bins.

    With no heads it tells only what the mask leaves.

    `lse`, (heads, rows), is needed where `keys` are not all keys. Raises FullyMaskedRowError
    where a query has no key and the record says "error".
    """
    rows = rows or (0, attention.query_length)
    keys = keys or (0, attention.key_length)
    job = _Job(attention, size, tuple(heads), rows, keys, lse, largest, of_rows, features)
    total, done = rows[1] - rows[0], 0
    for block in _over_workers(job):
        done += block.stop - block.start
        if progress is not None:
            progress(done / total)
    return job.found()


def _over_workers(job: _Job) -> Iterator[Run]:
    """Each block of rows when it is done; on the CPU as many at a time as there are cores."""
    in_worker = threading.current_thread().name.startswith(WORKER)  # it might wait for ever
    if job.device.type != "cpu" or in_worker or job.cells <= SMALL:
        for block in job.blocks:
            yield job.work(block)
        return
    waiting: set[Future[Run]] = {workers().submit(job.work, block) for block in job.blocks}
    try:
        while waiting:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for each in ready:
                yield each.result()
    finally:
        job.stopped.set()
        for each in waiting:
            each.cancel()
        wait(waiting)


class _Prepared(NamedTuple):
    """A tile with what all heads share."""

    tile: Tile
    slots: slice
    """Where its parts of bins stand among those of the block."""
    features: Tensor | None
    """(1, features + 1, keys); the last is the key's place, counted from the block's first row."""
    ahead: Tensor | None
    """(keys, rows): max(j − i, 0), where some keys stand ahead and some do not."""
    all_ahead: bool


@dataclass(eq=False)
class _Job:
    """A pass: what it is made from, and what has been found so far."""

    attention: Attention
    size: int
    heads: tuple[int, ...]
    rows: tuple[int, int]
    keys: tuple[int, int]
    lse: Tensor | None
    wants_largest: bool
    wants_rows: bool
    features: Tensor | None
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
        self.unsafe = [True] * a.n_heads  # where the sums are known their logarithm is the shift
        if self.lse is None and a.bias is None:
            bound = largest_exponent(a.query, a.key, self.factor, a.softcap, a.sinks)  # (n_heads,)
            self.unsafe = [not each <= SAFE_EXPONENT for each in bound.tolist()]  # NaN is unsafe
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
        n_features = 0 if self.features is None else len(self.features)
        self.on_features = self.zeros(n_features, h, n_rows)

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
            self.on_features,
        )

    @torch.no_grad()
    def work(self, block: Run) -> Run:
        """All heads of one block of rows."""
        if self.stopped.is_set():
            return block
        prepared = self._prepare(block)
        rows = slice(block.start, block.stop)
        dead = self.counts[:, rows] == 0  # (h or 1, rows)
        whole_rows = self.heads and self.keys == (0, self.window.n_k)
        if whole_rows and self.attention.on_masked_row == "error" and bool(dead.any()):
            table = dead.new_zeros(self.window.n_heads, self.window.n_q)
            table[:, self.rows[0] + block.start : self.rows[0] + block.stop] = dead
            raise FullyMaskedRowError(table)
        width = max((p.tile.keys.stop - p.tile.keys.start for p in prepared), default=0)
        cells = self.sizes.heads * width * (block.stop - block.start)
        buffers = self.empty(cells), self.empty(cells if self.wants_rows else 0)
        for start in range(0, len(self.heads), self.sizes.heads):
            if self.stopped.is_set():
                return block
            group = slice(start, min(start + self.sizes.heads, len(self.heads)))
            _add(self, block, prepared, group, _tile_sums(self, block, prepared, group, buffers))
        return block

    def empty(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=self.dtype, device=self.device)

    def _prepare(self, block: Run) -> list[_Prepared]:
        """The block's tiles, and how many keys each of its rows may use."""
        n_rows = block.stop - block.start
        own = self.rows[0] + block.start + self.window.n_k - self.window.n_q  # first row's place
        prepared, at = [], 0
        mask = self.attention.mask
        for tile in tiles(mask, self.window, block, self.size, self.sizes.keys, self.device):
            run = tile.keys
            self._count(block, tile)
            start, stop = self.keys[0] + run.start, self.keys[0] + run.stop
            features = ahead = None
            if self.wants_rows:
                places = torch.arange(start, stop, device=self.device, dtype=self.dtype) - own
                features = places[None]
                if self.features is not None:
                    given = self.features[:, start:stop].to(self.device, self.dtype)
                    features = torch.cat([given, features])
                if start < own + n_rows - 1 and stop - 1 > own:
                    queries = torch.arange(n_rows, device=self.device, dtype=self.dtype)
                    ahead = (places[:, None] - queries).clamp_(min=0)
                features = features[None]
            slots = slice(at, at + run.parts)
            prepared.append(_Prepared(tile, slots, features, ahead, start >= own + n_rows - 1))
            at += run.parts
        return prepared

    def _count(self, block: Run, tile: Tile) -> None:
        """Adds the keys that a tile leaves its rows, and the bins in which it leaves any."""
        run, rows = tile.keys, slice(block.start, block.stop)
        n_keys = run.stop - run.start
        self.counts[:, rows] += n_keys
        anything: Tensor | bool = True
        if tile.barred:
            shape = (len(self.counts), n_keys, block.stop - block.start)
            allowed = torch.ones(shape, dtype=torch.bool, device=self.device)
            for where, barred in tile.barred:
                self.counts[:, rows] -= barred.sum(1)
                allowed[:, where] = ~barred
            by_bins = allowed.view(-1, run.parts, run.length, block.parts, block.length)
            anything = by_bins.any(2).any(3).transpose(1, 2)  # (h or 1, row bins, key bins)
        with self.adding:
            self.open[:, slice_of(block.bins), slice_of(run.bins)] |= anything


@dataclass(eq=False)
class _Sums:
    """What the tiles of a block come to for g heads. All in units of log2."""

    masses: Tensor
    """(g, slots, rows): Σ exp2(score − shift) over a part of a bin."""
    tops: Tensor
    """(g, slots, rows): the largest score of a part of a bin; empty where nobody asks."""
    shifts: Tensor
    """(g, tiles, rows)."""
    products: Tensor
    """(g, tiles, rows): Σ exp2(score − shift) · (score − shift)."""
    ahead: Tensor
    """(g, tiles, rows): Σ exp2(score − shift) · max(j − i, 0)."""
    features: Tensor
    """(g, features + 1, tiles, rows): Σ exp2(score − shift) · feature."""
    scores: dict[str, Tensor]
    """(g, rows): the score of the first key, and of the neighbours; NEVER where there is none."""


def _tile_sums(
    job: _Job, block: Run, prepared: list[_Prepared], group: slice, buffers: tuple[Tensor, Tensor]
) -> _Sums:
    """Makes each tile of scores for some heads and keeps its sums."""
    a, heads = job.attention, list(job.heads[group])
    rows = slice(job.rows[0] + block.start, job.rows[0] + block.stop)
    g, n_rows = len(heads), block.stop - block.start
    own = rows.start + job.window.n_k - job.window.n_q  # the first row's place among the keys
    queries = (a.query[heads, rows].to(job.dtype) * job.factor).transpose(1, 2).contiguous()
    key_heads = [head // (a.n_heads // a.n_kv_heads) for head in heads]
    of_keys = slice(key_heads[0], key_heads[0] + 1) if g == 1 else key_heads  # a slice is no copy
    n_slots = prepared[-1].slots.stop if prepared else 0
    shifted = any(job.unsafe[head] for head in heads)
    known = None if job.lse is None else _log2_known(job.lse[group, block.start : block.stop])
    with_tops = job.wants_largest or job.wants_rows or (shifted and known is None)
    n_features = 1 + len(job.on_features) if job.wants_rows else 0
    sums = _Sums(
        job.empty(g, n_slots, n_rows),
        job.empty(g, n_slots if with_tops else 0, n_rows),
        job.zeros(g, len(prepared), n_rows),
        job.zeros(g, len(prepared), n_rows),
        job.zeros(g, len(prepared), n_rows),
        job.zeros(g, n_features, len(prepared), n_rows),
        {name: job.zeros(g, n_rows) + NEVER for name in (FIRST, *NEIGHBOURS) if job.wants_rows},
    )
    for number, (tile, slots, features, ahead, all_ahead) in enumerate(prepared):
        run = tile.keys
        keys = slice(job.keys[0] + run.start, job.keys[0] + run.stop)
        shape = (g, run.stop - run.start, n_rows)
        s = buffers[0][: math.prod(shape)].view(shape)
        torch.bmm(a.key[of_keys, keys].to(job.dtype), queries, out=s)  # (g, keys, rows)
        if a.softcap is not None:
            s.tanh_().mul_(a.softcap * LOG2E)
        if a.bias is not None:
            bias = a.bias if a.bias.shape[0] == 1 else a.bias[heads]
            s += part_of(bias, rows, keys).transpose(1, 2).to(s.dtype) * LOG2E
        for where, barred in tile.barred:
            s[:, where].masked_fill_(barred if len(barred) == 1 else barred[heads], NEVER)
        by_bins = (g, run.parts, run.length, n_rows)
        if with_tops:
            torch.amax(s.view(by_bins), 2, out=sums.tops[:, slots])
        if job.wants_rows:
            _keep_scores(s, keys, own, sums.scores)
        if shifted:
            if known is None:
                shift = sums.tops[:, slots].amax(1).clamp_(min=LOWEST)
            else:
                shift = known
            sums.shifts[:, number] = shift
            s -= shift[:, None]
        if not job.wants_rows:
            torch.sum(s.exp2_().view(by_bins), 2, out=sums.masses[:, slots])
            continue
        x = torch.exp2(s, out=buffers[1][: math.prod(shape)].view(shape))
        torch.sum(x.view(by_bins), 2, out=sums.masses[:, slots])
        assert features is not None
        sums.features[:, :, number] = torch.bmm(features.expand(g, -1, -1), x)
        torch.sum(s.mul_(x), 1, out=sums.products[:, number])
        if all_ahead:
            mass = sums.masses[:, slots].sum(1)
            places = torch.arange(n_rows, device=s.device, dtype=s.dtype)
            sums.ahead[:, number] = sums.features[:, -1, number] - places * mass
        elif ahead is not None:
            torch.sum(torch.mul(x, ahead, out=s), 1, out=sums.ahead[:, number])
    return sums


def _log2_known(lse: Tensor) -> Tensor:
    return (lse * LOG2E).masked_fill(lse == -torch.inf, 0.0)


def _keep_scores(s: Tensor, keys: slice, own: int, kept: dict[str, Tensor]) -> None:
    """Copies the scores of the first key and of each row's neighbours out of a tile."""
    if keys.start == 0:
        kept[FIRST].copy_(s[:, 0])
    n_rows = s.shape[2]
    for name, step in NEIGHBOURS.items():
        down = own + step - keys.start  # the first row's key, counted from the tile's first
        first, stop = max(0, -down), min(n_rows, s.shape[1] - down)
        if first < stop:
            kept[name][:, first:stop] = torch.diagonal(s, -down, 1, 2)


def _add(job: _Job, block: Run, prepared: list[_Prepared], group: slice, sums: _Sums) -> None:
    """Divides by each row's own sum, and puts what comes out in its place."""
    a, heads = job.attention, list(job.heads[group])
    rows = slice(block.start, block.stop)
    n_tiles, masses = len(prepared), sums.masses  # (g, slots, rows)
    shifted = n_tiles > 0 and any(job.unsafe[head] for head in heads)
    tile_of = [tile for tile, one in enumerate(prepared) for _ in one.tile.keys.bins]
    if job.lse is not None:
        lse = job.lse[group, rows]  # (g, rows)
        factors = torch.exp2(sums.shifts - _log2_known(lse)[:, None]).to(job.dtype)
        masses *= factors[:, tile_of]
    else:
        top = job.zeros(len(heads), masses.shape[2])
        sink = None if a.sinks is None else a.sinks[heads].to(job.dtype)[:, None] * LOG2E  # (g, 1)
        factors = torch.ones_like(sums.shifts)
        if shifted:
            top = sums.shifts.amax(1)
            top = top if sink is None else torch.maximum(top, sink)
            factors = torch.exp2(sums.shifts - top[:, None])
            masses *= factors[:, tile_of]
        total = masses.sum(1)  # (g, rows)
        total = total if sink is None else total + torch.exp2(sink - top)
        lse = (total.log2().to(job.row_lse.dtype) + top) / LOG2E
        share = torch.where(total > 0, total.reciprocal(), 0.0)[:, None]
        masses *= share  # weights from here on
        factors = factors * share
    job.row_lse[group, rows] = lse
    log2 = _log2_known(lse).to(job.dtype)

    by_bins = (len(heads), -1, block.parts, block.length)
    bins = slice_of(block.bins)
    columns = [key_bin for one in prepared for key_bin in one.tile.keys.bins]
    at = torch.tensor(columns, dtype=torch.int64, device=job.device)
    if job.wants_largest and n_tiles:
        tops = (sums.tops - log2[:, None]).view(by_bins).amax(3).exp2_().transpose(1, 2)
    with job.adding:  # a long bin is cut into several blocks of rows
        if n_tiles:
            pooled = masses.view(by_bins).sum(3).transpose(1, 2)  # (g, row bins, slots)
            job.sums[group, bins].index_add_(2, at, pooled)
            if job.wants_largest:
                job.maxima[group, bins].scatter_reduce_(2, at.expand_as(tops), tops, "amax")
    if not job.wants_rows:
        return
    kept, mass = job.of_rows, masses.sum(1)
    on_scores = (sums.products * factors).sum(1)  # Σ w·s, in log2
    if shifted:
        on_scores += (sums.shifts[:, tile_of] * masses).sum(1)
    on_features = (sums.features * factors[:, None]).sum(2)  # (g, features + 1, rows)
    places = torch.arange(masses.shape[2], device=job.device, dtype=job.dtype)
    ahead = (sums.ahead * factors).sum(1)
    kept["sum"][group, rows] = mass
    kept["entropy"][group, rows] = ((log2 * mass - on_scores) / LOG2E).clamp(min=0)
    kept["ahead"][group, rows] = ahead
    kept["back"][group, rows] = (ahead - on_features[:, -1] + places * mass).clamp(min=0)
    if n_tiles:
        kept["largest"][group, rows] = torch.exp2(sums.tops.amax(1) - log2)
    for name, scores in sums.scores.items():
        kept[name][group, rows] = torch.exp2(scores - log2)
    job.on_features[:, group, rows] = on_features[:, :-1].transpose(0, 1)
