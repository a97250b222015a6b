"""Peak memory of an overview, each in a fresh process."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import NamedTuple

from benchmarks.memory import peak
from benchmarks.report import Column, Row, Table
from benchmarks.timing import LostProcessError, Spread, alone

LENGTHS = (16384, 32768)
QUICK_LENGTHS = (4096,)
GOAL = 100.0  # MB
COLUMNS = (
    Column("extra memory", "MB", 0),
    Column("the results", "MB", 0),
    Column("a full table", "MB", 0),
    Column("took", "s", 1),
    Column("longest without progress", "s", 2),
)


class Used(NamedTuple):
    """What one overview takes. Bytes and seconds."""

    extra: int
    results: int
    seconds: float
    silence: float  # the longest time between two reports of progress


def of_overview(length: int, mask: str) -> Used:
    """The growth of the largest resident size in one overview, less its results."""
    import torch

    from benchmarks.long import SIZE
    from benchmarks.long_layers import layer, marks
    from explorer.maps import overview

    times: list[float] = []
    kept: list[int] = []
    with torch.no_grad():
        overview(layer(512, mask), SIZE, marks=marks(512))  # libraries and threads have started
        attention, tokens = layer(length, mask), marks(length)

        def call() -> object:
            times.append(time.perf_counter())
            found = overview(
                attention,
                SIZE,
                marks=tokens,
                progress=lambda share: times.append(time.perf_counter()),
            )
            times.append(time.perf_counter())
            kept.append(bytes_beyond(found, attention))
            return found

        grown = peak(call)
    waits = [later - earlier for earlier, later in pairwise(times)]
    return Used(grown - kept[0], kept[0], times[-1] - times[0], max(waits))


def bytes_beyond(found: object, given: object) -> int:
    """Memory of all tensors in a record that are not in another; shared memory counts once."""
    given_memory = _memory(given)
    return sum(size for place, size in _memory(found).items() if place not in given_memory)


def _memory(record: object) -> dict[int, int]:
    """Bytes by address of the tensors in a record, in what it holds, and in dictionaries."""
    import torch

    if isinstance(record, torch.Tensor):
        storage = record.untyped_storage()
        return {storage.data_ptr(): storage.nbytes()}
    if isinstance(record, dict):
        parts = list(record.values())
    else:
        parts = list(getattr(record, "__dict__", {}).values())
    return {place: size for part in parts for place, size in _memory(part).items()}


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    from benchmarks.long_layers import CAUSAL, HEAD_SIZE, N_HEADS, NONE, SLIDING

    rows = []
    for mask in (NONE, CAUSAL, SLIDING):
        for length in QUICK_LENGTHS if quick else LENGTHS:
            full = Spread.exactly(N_HEADS * length * length * 4 / 1e6)
            figures: tuple[Spread | str, ...]
            try:
                used = alone(of_overview, length, mask)
                extra, results = (Spread.exactly(n / 1e6) for n in (used.extra, used.results))
                seconds, silence = (Spread.exactly(s) for s in (used.seconds, used.silence))
                figures = (extra, results, full, seconds, silence)
            except LostProcessError as error:
                figures = (str(error), "", full, "", "")
            rows.append(Row((mask, str(length)), figures, (GOAL, None, None, None, None)))
    notes = (
        f"{N_HEADS} heads, d_k = {HEAD_SIZE}, float32, all threads. Growth of the largest resident "
        "size in one overview of everything, in a fresh process, less the results: the maps, each "
        "row's log-sum-exp, and the numbers of each query.",
    )
    labels = ("mask", "tokens")
    return [Table("Maps of long texts: memory", labels, COLUMNS, rows, notes)]
