"""The largest errors of maps, windows and numbers, against the full table in float64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.long import SIZE
from benchmarks.long_layers import CAUSAL, HEAD_SIZE, NONE, SLIDING, layer, marks
from benchmarks.report import Column, Row, Table
from benchmarks.timing import Spread, alone
from explorer.attention import Attention
from explorer.maps import Overview, overview, window
from explorer.metrics import layer_metrics

HEADS = 12
LENGTH = 2003  # a prime number: no bin or block divides it
DEVIATIONS = (1, 4, 12)  # of the scores
GOAL = 10.0  # millionths
IN_TOKENS = ("distance", "reach_back", "reach_ahead")
COLUMNS = (
    Column("mean map", "millionths", 2),
    Column("largest weights", "millionths", 2),
    Column("window", "millionths", 2),
    Column("shares and entropy", "millionths", 2),
    Column("distances", "thousandths of a token", 2),
)
Weights = npt.NDArray[np.float64]


def full_table(attention: Attention, head: int) -> Weights:
    """One head's weights as the formula is written, in NumPy's float64."""
    query, key = (tensor[head].double().numpy() for tensor in (attention.query, attention.key))
    scores = query @ key.T / np.sqrt(query.shape[1])
    scores[~attention.allowed()[0].numpy()] = -np.inf
    weights: Weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    return weights


def pooled_table(
    weights: Weights, rows: tuple[int, ...], keys: tuple[int, ...]
) -> tuple[Weights, Weights]:
    """A table's mean and largest by bins, whose edges these are, from its finished weights."""
    starts, heights = np.array(rows[:-1]), np.diff(rows)[:, None]
    mass = np.add.reduceat(np.add.reduceat(weights, keys[:-1], axis=1), starts, axis=0) / heights
    return mass, np.maximum.reduceat(np.maximum.reduceat(weights, keys[:-1], 1), starts, 0)


def worst(mask: str, deviation: int) -> dict[str, float]:
    """The largest absolute error of each kind, over all heads."""
    attention, tokens = layer(LENGTH, mask, HEADS, deviation=deviation), marks(LENGTH)
    with torch.no_grad():
        seen = overview(attention, SIZE, marks=tokens)
        part = (LENGTH - 301, LENGTH), (LENGTH - 500, LENGTH - 200)
        whole = window(seen.attention, *part)
        found = {"mean": 0.0, "largest": 0.0, "window": 0.0}
        for head in range(HEADS):
            weights = full_table(attention, head)
            mean, largest = pooled_table(weights, seen.picture.rows, seen.picture.keys)
            exact = weights[slice(*part[0]), slice(*part[1])]
            for name, ours, true in (
                ("mean", seen.picture.mean[head], mean),
                ("largest", seen.picture.largest[head], largest),
                ("window", whole[head], exact),
            ):
                found[name] = max(found[name], float(np.abs(ours.numpy() - true).max()))
        found |= _numbers(attention, seen)
    return found


def _numbers(attention: Attention, seen: Overview) -> dict[str, float]:
    """The same of the numbers per head; theirs are measured from weights in float64."""
    precise = Attention(
        attention.query.double(), attention.key.double(), attention.value.double(), attention.mask
    )
    true = layer_metrics(precise, marks=marks(LENGTH))
    ours = seen.head_metrics()
    found = {"shares": 0.0, "tokens": 0.0}
    for name, values in true.items():
        kind = "tokens" if name in IN_TOKENS else "shares"
        given = ours[name].double()
        if not torch.equal(given.isnan(), values.isnan()):
            raise RuntimeError(f"{name} is known of other heads than in float64")
        found[kind] = max(found[kind], float((given - values).abs().nan_to_num(0.0).max()))
    return found


def worst_of(cases: list[tuple[str, int]]) -> list[dict[str, float]]:
    """The same of several masks and deviations."""
    return [worst(*case) for case in cases]


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    deviations = DEVIATIONS[-1:] if quick else DEVIATIONS
    cases = [(mask, deviation) for mask in (NONE, CAUSAL, SLIDING) for deviation in deviations]
    rows = []
    for (mask, deviation), found in zip(cases, alone(worst_of, cases), strict=True):
        units = {"tokens": 1e-3}
        figures = tuple(
            Spread.exactly(error / units.get(name, 1e-6)) for name, error in found.items()
        )
        rows.append(Row((mask, str(deviation)), figures, (GOAL,) * 4 + (1.0,)))
    notes = (
        f"{LENGTH} tokens, which no bin and no block divides; {HEADS} heads, d_k = {HEAD_SIZE}, "
        f"float32, {SIZE} × {SIZE} bins. The table: the formula in NumPy's float64, on the same "
        "float32 queries and keys. Numbers: the mean of each head.",
    )
    labels = ("mask", "deviation of the scores")
    return [Table("Maps of long texts: largest errors", labels, COLUMNS, rows, notes)]
