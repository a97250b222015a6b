"""What twice the tokens cost: four times as much, under a sliding window twice."""

from __future__ import annotations

from itertools import pairwise

import torch

from benchmarks.long import SIZE
from benchmarks.long_layers import CAUSAL, HEAD_SIZE, NONE, SLIDING, layer, marks, threads
from benchmarks.report import Column, Row, Table
from benchmarks.timing import Timed, alone, interleaved
from explorer.attention import Attention
from explorer.maps import Overview, overview
from explorer.row_measures import TokenMarks

HEADS = 4
LENGTHS = {
    NONE: (4096, 8192, 16384),
    CAUSAL: (4096, 8192, 16384),
    SLIDING: (8192, 16384, 32768),
}
GOALS = {NONE: 4.4, CAUSAL: 4.4, SLIDING: 2.3}
COLUMNS = (
    Column("all threads, wall clock", "×", 2),
    Column("one thread, CPU time", "×", 2),
)


def measure(lengths: dict[str, tuple[int, ...]], rounds: int, one_thread: bool) -> dict[str, Timed]:
    """An overview at each length, the lengths in turn, by the clock of the thread setting."""
    clock = threads(one_thread)
    found = {}
    with torch.no_grad():
        for mask, chosen in lengths.items():
            overview(layer(1024, mask, HEADS), SIZE, marks=marks(1024))
            calls = {str(n): _Call(layer(n, mask, HEADS), marks(n)) for n in chosen}
            found[mask] = interleaved(calls, rounds=rounds, warm_up=0, clock=clock)
    return found


class _Call:
    """One length's overview."""

    def __init__(self, attention: Attention, tokens: TokenMarks) -> None:
        self.attention, self.tokens = attention, tokens

    def __call__(self) -> Overview:
        return overview(self.attention, SIZE, marks=self.tokens)


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    lengths = {mask: chosen[: 2 if quick else None] for mask, chosen in LENGTHS.items()}
    rounds = 1 if quick else 3
    both = [alone(measure, lengths, rounds, one_thread) for one_thread in (False, True)]
    rows = []
    for mask, chosen in lengths.items():
        for shorter, longer in pairwise(chosen):
            ratios = tuple(timed[mask].ratio(str(longer), str(shorter)) for timed in both)
            labels = (mask, f"{shorter} → {longer}")
            rows.append(Row(labels, ratios, (GOALS[mask],) * 2))
    notes = (
        f"Everything of an overview, {HEADS} heads, d_k = {HEAD_SIZE}, float32; {rounds} rounds.",
    )
    return [Table("Maps of long texts: twice the tokens", ("mask", "tokens"), COLUMNS, rows, notes)]
