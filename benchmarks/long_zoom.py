"""Exact windows of a long text's maps: the last step of a zoom, and the steps before it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.long import SIZE
from benchmarks.long_layers import CAUSAL, HEAD_SIZE, N_HEADS, NONE, layer, threads
from benchmarks.report import Column, Row, Table
from benchmarks.timing import Timed, alone, interleaved
from explorer.attention import Attention
from explorer.maps import window, zoomed

MASKS = (NONE, CAUSAL)
WINDOW = 128
KEPT, FRESH = "window, row sums kept", "window, row sums not kept"
GOALS = {KEPT: 5.0, FRESH: 200.0}  # ms
ZOOMS = (4096, 1024, 256)
TOLERANCE = 1e-6
COLUMNS = (
    Column("all threads, wall clock", "ms", 2),
    Column("one thread, CPU time", "ms", 2),
)


def with_lse(attention: Attention, rows: tuple[int, int]) -> Attention:
    """The record as after an overview, though only these rows' sums are true: the others idle."""
    start, stop = rows
    lse = torch.zeros(attention.n_heads, attention.query_length)
    for row in range(start, stop, WINDOW):
        some = slice(row, min(row + WINDOW, stop))
        scores = attention.scores(rows=some)
        scores.masked_fill_(~attention.allowed(rows=some), -torch.inf)
        lse[:, some] = torch.logsumexp(scores, -1)
    return attention.replace(row_lse=lse)


def contestants(
    length: int, zoom_length: int, mask: str
) -> dict[tuple[str, int, int], Callable[[], object]]:
    """By what it is, the tokens, and the side of the window. All are exact."""
    attention = layer(length, mask)
    rows, keys = (length - WINDOW, length), (length // 3, length // 3 + WINDOW)
    kept = with_lse(attention, rows)
    worst = float((window(kept, rows, keys) - window(attention, rows, keys)).abs().max())
    if not worst <= TOLERANCE:
        raise RuntimeError(f"a window without row sums differs from one with them by {worst:.2g}")
    calls: dict[tuple[str, int, int], Callable[[], object]] = {
        (KEPT, length, WINDOW): lambda: window(kept, rows, keys),
        (FRESH, length, WINDOW): lambda: window(attention, rows, keys),
    }
    other = layer(zoom_length, mask)
    longest = max(side for side in ZOOMS if side < zoom_length)
    ready = with_lse(other, (zoom_length - longest, zoom_length))
    for side in ZOOMS:
        if side < zoom_length:
            calls["zoom, row sums kept", zoom_length, side] = _zoom(ready, side)
    calls["zoom, row sums not kept", zoom_length, longest] = _zoom(other, longest)
    return calls


def _zoom(attention: Attention, side: int) -> Callable[[], object]:
    """The last rows, the keys before the middle."""
    length = attention.query_length
    rows, keys = (length - side, length), (length // 2 - side, length // 2)
    return lambda: zoomed(attention, rows, keys, SIZE)


Place = tuple[str, int, int]


def measure(
    lengths: tuple[int, int], rounds: int, one_thread: bool
) -> tuple[dict[str, Timed], dict[str, list[Place]]]:
    """Each window in turn, for each mask."""
    clock = threads(one_thread)
    found, places = {}, {}
    with torch.no_grad():
        for mask in MASKS:
            calls = contestants(*lengths, mask)
            places[mask] = list(calls)
            named = {str(place): call for place, call in calls.items()}
            found[mask] = interleaved(named, rounds=rounds, warm_up=1, clock=clock)
    return found, places


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    lengths = (8192, 4096) if quick else (32768, 16384)
    rounds = 3 if quick else 5
    (wall, places), (cpu, _) = (alone(measure, lengths, rounds, one) for one in (False, True))
    rows = []
    for mask in MASKS:
        for place in places[mask]:
            name, length, side = place
            figures = tuple(timed[mask].milliseconds(str(place)) for timed in (wall, cpu))
            labels = (name, mask, str(length), f"{side} × {side}")
            rows.append(Row(labels, figures, (GOALS.get(name), None)))
    notes = (
        f"All {N_HEADS} heads, d_k = {HEAD_SIZE}, float32; {rounds} rounds. The last rows, so that "
        "each has all keys under a causal mask too. A row's sum is its log-sum-exp, which an "
        f"overview keeps. A zoom gives {SIZE} × {SIZE} bins, mean and largest; a window single "
        "weights.",
    )
    labels = ("what", "mask", "tokens", "window")
    return [Table("Maps of long texts: zoom", labels, COLUMNS, rows, notes)]
