"""The sums of a block of rows over its tiles, and what they come to when divided by each row's own.

Softmax without a second pass: each tile has a shift of its own where scores are large, and the
sums of all tiles are brought to one shift at the end of the block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.pooled_pass import FIRST, NEIGHBOURS, NEVER, Pass, Prepared
from explorer.streaming import LOG2E, part_of
from explorer.tiles import Run, slice_of

LOWEST = -1e15
"""No shift goes lower, so that NEVER stays far below it."""


@dataclass(eq=False)
class TileSums:
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
    """(g, tiles, rows): Σ exp2(score − shift) · max(j − i, 0), of tiles with keys on both sides."""
    places: Tensor
    """(g, tiles, rows): Σ exp2(score − shift) · (the key's place − that of the first row)."""
    marked: Tensor
    """(g, kinds, tiles, rows): Σ exp2(score − shift) over the keys of a kind."""
    scores: dict[str, Tensor]
    """(g, rows): the score of the first key, and of the neighbours; NEVER where there is none."""


def tile_sums(
    job: Pass, block: Run, prepared: list[Prepared], group: slice, buffers: tuple[Tensor, Tensor]
) -> TileSums:
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
    sums = TileSums(
        job.empty(g, n_slots, n_rows),
        job.empty(g, n_slots if with_tops else 0, n_rows),
        job.zeros(g, len(prepared), n_rows),
        job.zeros(g, len(prepared), n_rows),
        job.zeros(g, len(prepared), n_rows),
        job.zeros(g, len(prepared), n_rows),
        job.zeros(g, len(job.on_marked), len(prepared), n_rows),
        {name: job.zeros(g, n_rows) + NEVER for name in (FIRST, *NEIGHBOURS) if job.wants_rows},
    )
    for number, (tile, penalties, slots, places, marked, ahead, _) in enumerate(prepared):
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
        for where, penalty in penalties:
            part, most = s[:, where], penalty if len(penalty) == 1 else penalty[heads]
            if most.dtype == torch.bool:
                part.masked_fill_(most, NEVER)
            else:
                torch.minimum(part, most, out=part)
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
        assert places is not None
        sums.places[:, number] = torch.bmm(places.expand(g, -1, -1), x)[:, 0]
        for kind, of_kind in enumerate(marked):
            if len(of_kind):  # often few: a product with all keys would read all of them
                torch.sum(x.index_select(1, of_kind), 1, out=sums.marked[:, kind, number])
        torch.sum(s.mul_(x), 1, out=sums.products[:, number])
        if ahead is not None:
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


def add(job: Pass, block: Run, prepared: list[Prepared], group: slice, sums: TileSums) -> None:
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
        own = masses.sum(1)  # (g, rows)
        total = own if sink is None else own + torch.exp2(sink - top)
        lse = (total.log2().to(job.row_lse.dtype) + top) / LOG2E
        share = torch.where(total > 0, total.reciprocal(), 0.0)[:, None]
        masses *= share  # weights from here on
        factors = factors * share
        if job.wants_rows:
            job.of_rows["sum"][group, rows] = own * share[:, 0]
    job.row_lse[group, rows] = lse
    log2 = _log2_known(lse).to(job.dtype)
    if sums.tops.numel():
        sums.tops -= log2[:, None]

    by_bins = (len(heads), -1, block.parts, block.length)
    bins = slice_of(block.bins)
    columns = [key_bin for one in prepared for key_bin in one.tile.keys.bins]
    at = torch.tensor(columns, dtype=torch.int64, device=job.device)
    if job.wants_largest and n_tiles:
        tops = sums.tops.view(by_bins).amax(3).exp2_().transpose(1, 2)  # (g, row bins, slots)
    with job.adding:  # a long bin is cut into several blocks of rows
        if n_tiles:
            pooled = masses.view(by_bins).sum(3).transpose(1, 2)  # (g, row bins, slots)
            job.sums[group, bins].index_add_(2, at, pooled)
            if job.wants_largest:
                job.maxima[group, bins].scatter_reduce_(2, at.expand_as(tops), tops, "amax")
    if not job.wants_rows:
        return
    kept = job.of_rows
    mass = kept["sum"][group, rows]  # (g, rows)
    on_scores = (sums.products * factors).sum(1)  # Σ w·s, in log2
    if shifted:
        on_scores += (sums.shifts[:, tile_of] * masses).sum(1)
    on_places = sums.places * factors  # (g, tiles, rows)
    places = torch.arange(masses.shape[2], device=job.device, dtype=job.dtype)
    ahead = (sums.ahead * factors).sum(1)
    after = [one.all_ahead for one in prepared]  # False, …, True
    if any(after):
        first = after.index(True)
        beyond = masses[:, prepared[first].slots.start :].sum(1)
        ahead += on_places[:, first:].sum(1) - places * beyond
    kept["entropy"][group, rows] = ((log2 * mass - on_scores) / LOG2E).clamp(min=0)
    kept["ahead"][group, rows] = ahead
    kept["back"][group, rows] = (ahead - on_places.sum(1) + places * mass).clamp(min=0)
    if n_tiles:
        kept["largest"][group, rows] = torch.exp2(sums.tops.amax(1))
    for name, scores in sums.scores.items():
        kept[name][group, rows] = torch.exp2(scores - log2)
    on_marked = (sums.marked * factors[:, None]).sum(2)  # (g, kinds, rows)
    job.on_marked[:, group, rows] = on_marked.transpose(0, 1)
