"""All weights and the output of 12 heads: ours, transformers' eager, naive, and torch's own."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.bert.modeling_bert import eager_attention_forward

from benchmarks.report import Column, Row, Table
from benchmarks.timing import Timed, alone, interleaved
from explorer.attention import Attention
from explorer.masks import causal

N_HEADS, HEAD_SIZE = 12, 64
LENGTHS = (128, 512, 1024, 2048)
MASKS = ("none", "causal")
TOLERANCE = 2e-5  # float32, other orders of summation

OURS, REUSED, PROJECTED = "ours", "ours, reused buffer", "ours with the same projections"
EAGER, NAIVE = "transformers' eager", "naive"
SDPA, MHA = "F.scaled_dot_product_attention", "nn.MultiheadAttention"

GOALS: dict[tuple[str, str, str], dict[int, float]] = {
    (OURS, EAGER, "none"): {512: 0.95, 1024: 0.6, 2048: 0.6},
    (REUSED, EAGER, "none"): {1024: 0.4, 2048: 0.4},
    (OURS, EAGER, "causal"): {512: 0.65, 1024: 0.4, 2048: 0.35},
    (REUSED, EAGER, "causal"): {1024: 0.25, 2048: 0.25},
    (REUSED, SDPA, "none"): dict.fromkeys(LENGTHS, 1.4),
    (REUSED, SDPA, "causal"): dict.fromkeys(LENGTHS, 1.4),
}
COMPARED = (
    ("transformers' eager attention", EAGER, (OURS, REUSED, NAIVE)),
    ("F.scaled_dot_product_attention, which gives no weights", SDPA, (REUSED, OURS, EAGER)),
    ("nn.MultiheadAttention, weights of each head", MHA, (PROJECTED,)),
)
COLUMNS = (Column("all threads, wall clock", "×", 2), Column("one thread, CPU time", "×", 2))

Call = Callable[[], tuple[Tensor | None, Tensor]]


def contestants(length: int, mask: str) -> dict[str, Call]:
    """Each gives the weights (None from the one that has none) and the output.

    Masks are made beforehand in the form that each wants, except ours, which is a rule.
    """
    generator = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 1, N_HEADS, length, HEAD_SIZE, generator=generator)
    x = torch.randn(1, length, N_HEADS * HEAD_SIZE, generator=generator)
    scale = HEAD_SIZE**-0.5
    rule = causal() if mask == "causal" else None
    forbidden = torch.ones(length, length, dtype=torch.bool).triu_(1) if rule else None
    added = None
    if forbidden is not None:
        added = torch.zeros(1, 1, length, length)
        added.masked_fill_(forbidden, torch.finfo(added.dtype).min)
    buffer = torch.empty(N_HEADS, length, length)
    layer = nn.MultiheadAttention(N_HEADS * HEAD_SIZE, N_HEADS, batch_first=True).eval()
    module = nn.Module().eval()

    def ours() -> tuple[Tensor, Tensor]:
        return Attention(query[0], key[0], value[0], rule).weights_and_output()

    def reused() -> tuple[Tensor, Tensor]:
        return Attention(query[0], key[0], value[0], rule).weights_and_output(buffer)

    def eager() -> tuple[Tensor, Tensor]:
        output, weights = eager_attention_forward(module, query, key, value, added, scaling=scale)
        return weights[0], output[0].transpose(0, 1)

    def naive() -> tuple[Tensor, Tensor]:
        scores = query[0] @ key[0].transpose(1, 2) * scale
        if forbidden is not None:
            scores = scores.masked_fill(forbidden, -torch.inf)
        weights = torch.softmax(scores, -1)
        return weights, weights @ value[0]

    def sdpa() -> tuple[None, Tensor]:
        is_causal = rule is not None
        return None, F.scaled_dot_product_attention(query, key, value, is_causal=is_causal)[0]

    def multihead() -> tuple[Tensor, Tensor]:
        output, weights = layer(x, x, x, attn_mask=forbidden, average_attn_weights=False)
        return weights[0], output[0]

    def projected() -> tuple[Tensor, Tensor]:
        parts = F.linear(x[0], layer.in_proj_weight, layer.in_proj_bias)
        q, k, v = parts.view(length, 3, N_HEADS, HEAD_SIZE).permute(1, 2, 0, 3)
        weights, output = Attention(q, k, v, rule).weights_and_output()
        joined = output.transpose(0, 1).flatten(1)
        return weights, F.linear(joined, layer.out_proj.weight, layer.out_proj.bias)

    return {
        OURS: ours,
        REUSED: reused,
        EAGER: eager,
        NAIVE: naive,
        SDPA: sdpa,
        MHA: multihead,
        PROJECTED: projected,
    }


def check(calls: dict[str, Call]) -> None:
    """Raises RuntimeError where contestants that should agree do not: a wrong one is not timed."""
    for group in ((NAIVE, OURS, REUSED, EAGER, SDPA), (MHA, PROJECTED)):
        weights, output = calls[group[0]]()
        for name in group[1:]:
            own_weights, own_output = calls[name]()
            gaps = [own_output - output]
            if own_weights is not None and weights is not None:
                gaps.append(own_weights - weights)
            worst = max(float(gap.abs().max()) for gap in gaps)
            if not worst <= TOLERANCE:
                raise RuntimeError(f"{name} differs from {group[0]} by {worst:.2g}")


def measure(
    lengths: tuple[int, ...], rounds: int, one_thread: bool
) -> dict[tuple[str, int], Timed]:
    """All contestants at each mask and length, by the clock of the thread setting."""
    if one_thread:
        torch.set_num_threads(1)
    # Our workers add up in the process's CPU time, which busy neighbours do not change.
    clock = time.process_time if one_thread else time.perf_counter
    found = {}
    with torch.no_grad():
        for length in lengths:
            for mask in MASKS:
                calls = contestants(length, mask)
                check(calls)
                found[mask, length] = interleaved(calls, rounds=rounds, clock=clock)
    return found


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    lengths = LENGTHS[:2] if quick else LENGTHS
    rounds = 5 if quick else 15
    both = [alone(measure, lengths, rounds, one_thread) for one_thread in (False, True)]
    found = []
    for title, peer, names in COMPARED:
        rows = []
        for mask in MASKS:
            for name in names:
                for length in lengths:
                    goal = GOALS.get((name, peer, mask), {}).get(length)
                    ratios = tuple(timed[mask, length].ratio(name, peer) for timed in both)
                    rows.append(Row((name, mask, str(length)), ratios, (goal, goal)))
        found.append(
            Table(
                f"Weights and output, against {title}",
                ("contestant", "mask", "tokens"),
                COLUMNS,
                rows,
                (f"{N_HEADS} heads, d_k = {HEAD_SIZE}, float32, one sequence; {rounds} rounds.",),
            )
        )
    return found
