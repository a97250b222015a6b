"""What the page Training says of a run, with the run's own numbers, and when scaling matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from explorer.training import Measurement
from explorer.training_summary import FoundHead, Run, found_heads, mean_over_heads, reached
from explorer.ui.words import plain

Models = dict[str, Sequence[Run]]


def percent(value: float) -> str:
    """A share as whole per cent: "97 %"."""
    return f"{100 * value:.0f}\u00a0%"


def outcome(name: str, runs: Sequence[Run]) -> str:
    """One model's way in a sentence: when it learnt the task, or how far it came."""
    ends = [run[-1].accuracy for run in runs if run]
    if not ends:
        return f"**{plain(name)}** has no measurement."
    arrived = [step for run in runs if (step := reached(run)) is not None]
    span = _span(ends, percent)
    of_seeds = f" with {len(runs)} seeds" if len(runs) > 1 else ""
    if not arrived:
        return f"**{plain(name)}** did not learn the task{of_seeds}: it ended at {span} accuracy."
    at = _span(arrived, lambda step: f"{step:.0f}")
    if len(arrived) < len(runs):
        return (
            f"**{plain(name)}** reached 95\u00a0% with {len(arrived)} of {len(runs)} seeds, after "
            f"{at} steps; it ended at {span} accuracy."
        )
    return (
        f"**{plain(name)}** reached 95\u00a0% accuracy{of_seeds} after {at} steps "
        f"and ended at {span}."
    )


def _span(values: Sequence[float] | Sequence[int], write: Callable[[float], str]) -> str:
    """The median, and from the smallest to the largest where these read differently."""
    low, middle, high = write(min(values)), write(float(np.median(values))), write(max(values))
    return f"{middle}" if low == high else f"{middle} ({low} to {high})"


def heads(measured: Measurement, task: str) -> str:
    """The heads that formed, by what they do and how much."""
    found = found_heads(measured)
    if not found:
        return "No head gives half of its weight to one thing."
    return f"{'; '.join(_of_head(each, task) for each in found[:4])}."


def _of_head(found: FoundHead, task: str) -> str:
    if found.kind == "previous":
        return f"{found.name} looks at the previous token ({found.share:.2f})"
    if task == "recall":
        return f"{found.name} finds the pair of the key that is asked for ({found.share:.2f})"
    return f"{found.name} is an induction head ({found.share:.2f})"


def start_table(models: dict[str, Measurement]) -> None:
    """How both models start, in numbers."""
    rows: dict[str, Callable[[Measurement], str]] = {
        "standard deviation of the scores": lambda one: f"{one.score_deviation:.2f}",
        "largest weight of a row, mean": lambda one: f"{mean_over_heads(one.largest):.2f}",
        "entropy of a row, mean": lambda one: f"{mean_over_heads(one.entropy):.2f} nats",
        "saturated rows": lambda one: percent(one.saturated),
        "gradient norm at W_Q": lambda one: f"{one.gradient_q:.2g}",
        "gradient at one row of scores, median": lambda one: f"{one.row_gradient[1]:.2g}",
    }
    shown = {name: [write(one) for write in rows.values()] for name, one in models.items()}
    st.dataframe(pd.DataFrame(shown, index=list(rows)).rename_axis("before the first step"))


def compared_starts(models: dict[str, Measurement]) -> str:
    """What the two starts say about the gradient, in a sentence; empty where they are alike."""
    (first_name, first), (name, second) = models.items()
    big, small = max(first, second, key=_row), min(first, second, key=_row)
    big_name, small_name = (first_name, name) if big is first else (name, first_name)
    if _row(big) < 3 * _row(small):
        return ""
    weights = small.gradient_q / big.gradient_q if big.gradient_q else np.inf
    times = _row(big) / _row(small) if _row(small) else np.inf
    many = f"{times:,.0f} times" if times < 1e4 else "more than 10,000 times"
    if weights > 1.5:
        return (
            f"Mind the two gradients. At W_Q the norm is **{weights:.1f} times larger** with "
            f"{plain(small_name)}: a few rows that are not saturated carry it. The median row of "
            f"scores gets **{many} less** than with {plain(big_name)}."
        )
    return (
        f"The median row of scores gets **{many} less** gradient with {plain(small_name)} than "
        f"with {plain(big_name)}."
    )


def _row(measured: Measurement) -> float:
    return measured.row_gradient[1]


def when_it_matters() -> None:
    """When scaling matters and when it does not."""
    st.subheader("When 1/√d_k matters, and when not", anchor=False)
    st.markdown(
        "- **It matters when the scores start wide.** With queries and keys of unit variance q·k "
        "has the variance d_k. At d_k = 256 softmax starts with nearly all weight on one key, and "
        "a saturated row passes hardly any gradient back. Training may never get out of there.\n"
        "- **At a small d_k going without costs steps**, not the result: see d_k = 16.\n"
        "- **It does not matter when the scores start small anyway.** With small first weights "
        "the unscaled model learns too. The cause of the trouble is the scores' first variance; "
        "the factor is the simple way to set it, whatever d_k is.\n"
        "- **Gradients do not vanish everywhere.** The norm at the weights can be larger without "
        "scaling: a few rows carry large, erratic gradients. What vanishes is the gradient of the "
        "typical row, so this page shows both.\n"
        "- **A saturated row is no fault in itself.** A trained head that is sure of its key is "
        "saturated rightly. It is a fault at the start, before anything is learnt.\n"
        "- These are small models, one optimiser (AdamW) and one batch size. Another learning "
        "rate can move the steps: try it."
    )
