"""Peak memory of one call, each in a fresh process."""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Column, Row, Table
from benchmarks.timing import LostProcessError, Spread, alone

LENGTHS = (1024, 2048)
GOAL = 1.0


def peak(call: Callable[[], object]) -> int:
    """Bytes by which the process's largest resident size grows in one call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)  # free memory goes back first, else the call would be given it unseen
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")  # the high-water mark starts again from what is resident now
    before = _high_water()
    kept = call()
    grown = _high_water() - before
    del kept
    return grown


def _high_water() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def of_weights(contestant: str, length: int, mask: str) -> float:
    """The peak of one call beyond its inputs and output, in units of the weights' bytes."""
    import torch

    from benchmarks import attention

    with torch.no_grad():
        attention.contestants(64, mask)[contestant]()  # libraries and threads have started
        call = attention.contestants(length, mask)[contestant]
        grown = peak(call)
    weights = attention.N_HEADS * length * length * 4
    output = attention.N_HEADS * length * attention.HEAD_SIZE * 4
    return (grown - output) / weights


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    from benchmarks.attention import EAGER, MASKS, MHA, NAIVE, OURS, SDPA

    rows = []
    for mask in MASKS:
        for length in LENGTHS[:1] if quick else LENGTHS:
            for name in (OURS, EAGER, NAIVE, MHA, SDPA):
                try:
                    figure: Spread | str = Spread.exactly(alone(of_weights, name, length, mask))
                except LostProcessError as error:
                    figure = str(error)
                goal = GOAL if name == OURS else None
                rows.append(Row((name, mask, str(length)), (figure,), (goal,)))
    notes = (
        "The weights themselves are 1.0, except in the contestant that makes none. Growth of the "
        "largest resident size in one call, in a fresh process, less the output.",
    )
    column = Column("beyond inputs and output", "× the weights", 1)
    labels = ("contestant", "mask", "tokens")
    return [Table("Peak memory of weights and output", labels, (column,), rows, notes)]
