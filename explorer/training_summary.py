"""What runs did, in numbers: bands over seeds, when they got there, and which heads formed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from explorer.training import Measurement

Run = Sequence[Measurement]
THERE = 0.95
"""The accuracy at which a task counts as learnt."""
CLEAR = 0.5
"""A head is named for what it does where at least so much of its weight does it."""


class Band(NamedTuple):
    """A number over the steps: the median over seeds, the smallest and the largest."""

    steps: list[int]
    middle: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


class FoundHead(NamedTuple):
    """A head that does one thing."""

    layer: int
    head: int
    kind: str
    """"previous" or "aim", as in Measurement."""
    share: float

    @property
    def name(self) -> str:
        """As on screen: L0H2."""
        return f"L{self.layer}H{self.head}"


def band(runs: Sequence[Run], number: Callable[[Measurement], float]) -> Band:
    """The number of each run as far as all have come."""
    length = min(map(len, runs), default=0)
    values = np.array([[number(one) for one in run[:length]] for run in runs], dtype=np.float64)
    values = values.reshape(len(runs), length)
    if not length:
        nothing = np.empty(0)
        return Band([], nothing, nothing, nothing)
    steps = [one.step for one in runs[0][:length]]
    return Band(steps, np.median(values, 0), values.min(0), values.max(0))


def reached(run: Run, accuracy: float = THERE) -> int | None:
    """The first measured step with this accuracy, None where there is none."""
    return next((one.step for one in run if one.accuracy >= accuracy), None)


def found_heads(measured: Measurement) -> list[FoundHead]:
    """The heads that put most of their weight on the place before, or where the answer stands.

    Best first within each kind; none where no head does so clearly.
    """
    found = [
        FoundHead(layer, head, kind, share)
        for kind, table in (("previous", measured.previous), ("aim", measured.aim))
        for layer, heads in enumerate(table)
        for head, share in enumerate(heads)
        if share >= CLEAR
    ]
    return sorted(found, key=lambda one: (one.kind != "previous", -one.share))


def mean_over_heads(table: Sequence[Sequence[float]]) -> float:
    """The mean of a number over all heads of all layers."""
    return float(np.mean([value for heads in table for value in heads]))


def run_table(runs: dict[str, Sequence[Run]], seeds: Sequence[int]) -> pd.DataFrame:
    """A row for each model and seed: how it started, when it got there, how it ended."""
    rows = []
    for name, of_seeds in runs.items():
        for seed, run in zip(seeds, of_seeds, strict=True):
            if not run:
                continue
            first, last = run[0], run[-1]
            rows.append(
                {
                    "model": name,
                    "seed": seed,
                    "steps": last.step,
                    "95 % after": reached(run),
                    "accuracy": last.accuracy,
                    "loss": last.loss,
                    "saturated at the start": first.saturated,
                    "saturated now": last.saturated,
                    "gradient at W_Q at the start": first.gradient_q,
                    "median row gradient at the start": first.row_gradient[1],
                }
            )
    found = pd.DataFrame(rows)
    return found.astype({"95 % after": "Int64"}) if rows else found


def step_table(runs: dict[str, Sequence[Run]], seeds: Sequence[int]) -> pd.DataFrame:
    """A row for each model, seed and measurement: every number that is drawn."""
    rows = []
    for name, of_seeds in runs.items():
        for seed, run in zip(seeds, of_seeds, strict=True):
            for one in run:
                low, middle, high = one.row_gradient
                row = {"model": name, "seed": seed, "step": one.step, "loss": one.loss}
                row |= {"accuracy": one.accuracy, "gradient W_Q": one.gradient_q}
                row |= {"gradient W_K": one.gradient_k, "row gradient 10 %": low}
                row |= {"row gradient 50 %": middle, "row gradient 90 %": high}
                row |= {"saturated": one.saturated}
                for title, table in (("entropy", one.entropy), ("largest", one.largest)):
                    for layer, heads in enumerate(table):
                        for head, value in enumerate(heads):
                            row[f"{title} L{layer}H{head}"] = value
                rows.append(row)
    return pd.DataFrame(rows)
