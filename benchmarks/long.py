"""A layer's whole overview, and its mean map alone, against torch's fused attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.long_layers import CAUSAL, HEAD_SIZE, N_HEADS, NONE, layer, marks, threads
from benchmarks.report import Column, Row, Table
from benchmarks.timing import Timed, alone, interleaved
from explorer.maps import overview, pooled

SIZE = 256  # bins a side
MASKS = (NONE, CAUSAL)
SDPA = "F.scaled_dot_product_attention"
EVERYTHING, NO_TOKENS, MEAN = "everything", "everything but what tokens need", "mean map alone"
GOALS = {EVERYTHING: 1.0, NO_TOKENS: 1.0, MEAN: 0.75}
JUDGED = (8192, 16384)  # tokens at which there is a goal


class Plan(NamedTuple):
    """How much is measured at a length: long ones take a minute a round."""

    length: int
    n_heads: int
    rounds: int


PLANS = (
    Plan(2048, N_HEADS, 7),
    Plan(4096, N_HEADS, 5),
    Plan(8192, N_HEADS, 3),
    Plan(16384, N_HEADS, 2),
    Plan(32768, 2, 1),
)
QUICK_PLANS = (Plan(2048, N_HEADS, 2), Plan(4096, 4, 1))
COLUMNS = (
    Column("all threads, wall clock", "×", 2),
    Column("one thread, CPU time", "×", 2),
    Column("all threads, wall clock", "s", 2),
)


def contestants(
    length: int,
    mask: str,
    n_heads: int,
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> dict[str, Callable[[], object]]:
    """Torch's attention, which gives outputs and no weights, and ours, which gives no outputs."""
    attention = layer(length, mask, n_heads, device=device, dtype=dtype)
    tokens = marks(length)

    def sdpa() -> Tensor:
        tensors = (attention.query[None], attention.key[None], attention.value[None])
        return F.scaled_dot_product_attention(*tensors, is_causal=mask == CAUSAL)

    return {
        SDPA: sdpa,
        EVERYTHING: lambda: overview(attention, SIZE, marks=tokens),
        NO_TOKENS: lambda: overview(attention, SIZE),
        MEAN: lambda: pooled(attention, SIZE, "mean"),
    }


def measure(plans: tuple[Plan, ...], one_thread: bool) -> dict[tuple[int, str], Timed]:
    """All contestants at each length and mask, by the clock of the thread setting."""
    clock = threads(one_thread)
    found = {}
    with torch.no_grad():
        for length, n_heads, rounds in plans:
            for mask in MASKS:
                for call in contestants(1024, mask, n_heads).values():
                    call()  # threads have started, libraries are loaded
                calls = contestants(length, mask, n_heads)
                found[length, mask] = interleaved(calls, rounds=rounds, warm_up=0, clock=clock)
    return found


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    plans = QUICK_PLANS if quick else PLANS
    wall, cpu = (alone(measure, plans, one_thread) for one_thread in (False, True))
    rows = []
    for mask in MASKS:
        for name in (EVERYTHING, NO_TOKENS, MEAN):
            for plan in plans:
                at = plan.length, mask
                goal = GOALS[name] if plan.length in JUDGED else None
                ratios = wall[at].ratio(name, SDPA), cpu[at].ratio(name, SDPA)
                labels = (name, mask, *(str(number) for number in plan))
                rows.append(Row(labels, (*ratios, wall[at].seconds_of(name)), (goal, goal, None)))
    notes = (
        f"d_k = {HEAD_SIZE}, float32; causal against causal. Everything: mean and largest weight "
        f"of {SIZE} × {SIZE} bins, each row's log-sum-exp, and all quick numbers of each query. "
        "What tokens need: weight on special tokens, punctuation, the same token and what followed "
        "it; the tokens are as frequent as words are.",
        "Warmed up at 1024 tokens only. Heads and rounds are fewer where a round takes a minute.",
    )
    labels = ("ours", "mask", "tokens", "heads", "rounds")
    return [Table(f"Maps of long texts, against {SDPA}", labels, COLUMNS, rows, notes)]
