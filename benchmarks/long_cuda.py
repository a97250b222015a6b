"""The same maps on a CUDA device, in float32 and bfloat16. Skipped where there is none."""

from __future__ import annotations

import time

import torch

from benchmarks.long import EVERYTHING, MASKS, MEAN, NO_TOKENS, SDPA, contestants
from benchmarks.long_layers import HEAD_SIZE, N_HEADS
from benchmarks.report import Column, Row, Table
from benchmarks.timing import Spread, Timed, alone, interleaved

LENGTHS = (2048, 8192, 16384, 32768)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
COLUMNS = (
    Column("time", "ms", 2),
    Column("time / SDPA", "×", 2),
    Column("peak extra memory", "MB", 0),
)


def measure(
    length: int, mask: str, dtype: str, rounds: int, device: str = "cuda"
) -> tuple[Timed, dict[str, float]]:
    """Times by contestant, and bytes by which the device's allocated memory peaks in one call."""
    on_device = device == "cuda"

    def clock() -> float:
        if on_device:
            torch.cuda.synchronize()  # what was asked for is done
        return time.perf_counter()

    peaks = {}
    with torch.no_grad():
        calls = contestants(length, mask, N_HEADS, device=device, dtype=DTYPES[dtype])
        timed = interleaved(calls, rounds=rounds, warm_up=2, clock=clock)
        for name, call in calls.items():
            if on_device:
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                call()
                peaks[name] = float(torch.cuda.max_memory_allocated() - before)
    return timed, peaks


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    if not torch.cuda.is_available():
        skipped.append("maps of long texts on a GPU: torch sees no CUDA device here")
        return []
    rows = []
    rounds = 3 if quick else 7
    for dtype in DTYPES:
        for mask in MASKS:
            for length in LENGTHS[:1] if quick else LENGTHS:
                timed, peaks = alone(measure, length, mask, dtype, rounds)
                for name in (SDPA, EVERYTHING, NO_TOKENS, MEAN):
                    rows.append(_row((name, mask, dtype, str(length)), name, timed, peaks))
    device = torch.cuda.get_device_name()
    notes = (
        f"{device}, {N_HEADS} heads, d_k = {HEAD_SIZE}; {rounds} rounds; results included in the "
        "memory.",
    )
    labels = ("contestant", "mask", "numbers", "tokens")
    return [Table(f"Maps of long texts on {device}", labels, COLUMNS, rows, notes)]


def _row(labels: tuple[str, ...], name: str, timed: Timed, peaks: dict[str, float]) -> Row:
    memory = Spread.exactly(peaks[name] / 1e6)
    return Row(labels, (timed.milliseconds(name), timed.ratio(name, SDPA), memory))
