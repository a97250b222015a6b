"""One pass over all weights of a layer at the screen's size, without the n × n table.

For each block of rows the scores are made tile by tile, used, and forgotten: extra memory is two
tiles and one block's bins for each worker. What makes it quick stands in streaming.py. Beside
that, Σ w·s of a row gives its entropy, lse − Σ w·s, without a logarithm for each weight.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

import torch
from torch import Tensor

from explorer.attention import Attention, FullyMaskedRowError
from explorer.cores import WORKER, workers
from explorer.pooled_pass import Found, Pass
from explorer.tile_sums import add, tile_sums
from explorer.tiles import Run

Progress = Callable[[float], object]
"""Is told the share that is done, 0 to 1, in the caller's thread. What it raises ends the pass."""

SMALL = 1 << 18
"""Up to this many weights handing the work to other threads costs more than it saves."""


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
    marked: Tensor | None = None,
    progress: Progress | None = None,
) -> Found:
    """One pass over some heads, or over a window of them, in at most size × size bins.

    With no heads it tells only what the mask leaves.

    `lse`, (heads, rows), is needed where `keys` are not all keys. Raises FullyMaskedRowError
    where a query has no key and the record says "error".
    """
    rows = rows or (0, attention.query_length)
    keys = keys or (0, attention.key_length)
    job = Pass(attention, size, tuple(heads), rows, keys, lse, largest, of_rows, marked)
    total, done = rows[1] - rows[0], 0
    for block in _over_workers(job):
        done += block.stop - block.start
        if progress is not None:
            progress(done / total)
    return job.found()


def _over_workers(job: Pass) -> Iterator[Run]:
    """Each block of rows when it is done; on the CPU as many at a time as there are cores."""
    in_worker = threading.current_thread().name.startswith(WORKER)  # it might wait for ever
    if job.device.type != "cpu" or in_worker or job.cells <= SMALL:
        for block in job.blocks:
            yield _work(job, block)
        return
    left = list(reversed(job.blocks))
    waiting: set[Future[Run]] = set()
    try:
        while True:
            # Few at a time: others wait for the same workers, and would else wait for all blocks.
            while left and len(waiting) <= torch.get_num_threads():
                waiting.add(workers().submit(_work, job, left.pop()))
            if not waiting:
                return
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for each in ready:
                yield each.result()
    finally:
        job.stopped.set()
        for each in waiting:
            each.cancel()
        wait(waiting)


@torch.no_grad()
def _work(job: Pass, block: Run) -> Run:
    """All heads of one block of rows."""
    if job.stopped.is_set():
        return block
    prepared = job.prepare(block)
    dead = job.counts[:, block.start : block.stop] == 0  # (h or 1, rows)
    whole_rows = job.heads and job.keys == (0, job.window.n_k)
    if whole_rows and job.attention.on_masked_row == "error" and bool(dead.any()):
        table = dead.new_zeros(job.window.n_heads, job.window.n_q)
        table[:, job.rows[0] + block.start : job.rows[0] + block.stop] = dead
        raise FullyMaskedRowError(table)
    width = max((one.tile.keys.stop - one.tile.keys.start for one in prepared), default=0)
    cells = job.sizes.heads * width * (block.stop - block.start)
    buffers = job.empty(cells), job.empty(cells if job.wants_rows else 0)
    for start in range(0, len(job.heads), job.sizes.heads):
        if job.stopped.is_set():
            return block
        group = slice(start, min(start + job.sizes.heads, len(job.heads)))
        add(job, block, prepared, group, tile_sums(job, block, prepared, group, buffers))
    return block
