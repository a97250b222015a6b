"""The views of the page Scaling: numbers, pictures at one d_k, and curves over all of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from explorer.figures.distribution import Panel, distributions, sorted_weights
from explorer.saturation import softmax
from explorer.scaling import SCALED, UNSCALED, scores
from explorer.ui import controls, frame, scaling_curves, scaling_verdict, width
from explorer.ui.scaling_choice import Choice, choose, keyed, pairs, saturated
from explorer.ui.still_picture import still_picture

__all__ = ["at_this_size", "choose", "headline", "in_words", "over_sizes"]

VIEWS = {
    "softmax": "What softmax makes of it",
    "variance": "Variance of q·k",
    "gradient": "What is left of the gradient",
    "scales": "Other scales",
}


def headline(chosen: Choice) -> None:
    """Four numbers at this d_k: without the scale, and with it."""
    place = chosen.place
    found = [
        saturated(chosen.components, chosen.n_keys, chosen.seed, scale)
        for scale in (UNSCALED, SCALED)
    ]
    drawn = pairs(chosen.components, chosen.n_pairs, chosen.seed).dots[place]
    deviation = float(drawn.std())
    numbers = (
        ("Standard deviation of scores", [deviation, deviation / math.sqrt(chosen.d_k)]),
        ("Largest weight, mean", [float(one.largest[place]) for one in found]),
        (f"Effective keys of {chosen.n_keys:,}, mean", [float(f.mean_keys[place]) for f in found]),
        ("Gradient through softmax, median", [float(one.jacobian[1, place]) for one in found]),
    )
    for column, (label, (without, with_scale)) in zip(st.columns(4), numbers, strict=True):
        value = f"{scaling_verdict.number(without)} → {scaling_verdict.number(with_scale)}"
        column.metric(label, value, help=scaling_verdict.HELP[label.partition(" ")[0]])


def at_this_size(chosen: Choice) -> None:
    """The scores and one row of weights at this d_k; unscaled above, scaled below."""
    drawn = pairs(chosen.components, chosen.n_pairs, chosen.seed).at(chosen.d_k)
    row = keyed(chosen.components, chosen.n_keys, chosen.seed).at(chosen.d_k)
    histograms, bars = [], []
    for scale, name in ((UNSCALED, "unscaled"), (SCALED, "scaled by 1/√d_k")):
        values = scores(drawn, scale).ravel()
        spread = f"standard deviation {scaling_verdict.number(float(values.std()))}"
        histograms.append(Panel(name, values, spread))
        weights = softmax(scores(row, scale)[0, chosen.row])
        largest = f"largest weight {scaling_verdict.number(float(weights.max()))}"
        bars.append(Panel(name, weights, largest))
    theme, pixels = frame.theme(), width.column()
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(f"**The scores** of {chosen.n_pairs:,} pairs of q and k")
        still_picture(
            distributions(histograms, x_title="score", theme=theme, width=pixels),
            key="scaling_chart_scores",
            alt=f"Histograms at d_k {chosen.d_k}. " + _notes(histograms),
        )
    with right:
        st.markdown(f"**One query's weights** over its {chosen.n_keys:,} keys, after softmax")
        still_picture(
            sorted_weights(bars, theme=theme, width=pixels),
            key="scaling_chart_weights",
            alt=f"Weights at d_k {chosen.d_k}, the largest first. " + _notes(bars),
        )


def _notes(panels: list[Panel]) -> str:
    return ", ".join(f"{panel.name}: {panel.note}" for panel in panels) + "."


def in_words(chosen: Choice) -> None:
    """What the drawn components do to the argument for 1/√d_k."""
    text = scaling_verdict.verdict(chosen.components, chosen.d_k)
    if chosen.components.assumed:
        st.markdown(text)
    else:
        st.warning(text, icon=":material/balance:")


def over_sizes(chosen: Choice) -> None:
    """Curves over all sizes: one of four views, and its numbers as a table."""
    view = controls.choose_one("scaling_view", VIEWS, label="Over all d_k", buttons=True)
    if view == "softmax":
        scaling_curves.of_softmax(chosen)
    elif view == "variance":
        scaling_curves.of_variance(chosen)
    elif view == "gradient":
        scaling_curves.of_gradient(chosen)
    else:
        scaling_curves.of_scales(chosen)
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(_table(chosen), hide_index=True)
    queries = keyed(chosen.components, chosen.n_keys, chosen.seed).dots.shape[1]
    st.caption(
        f"Drawn with seed {chosen.seed}: {chosen.n_pairs:,} independent pairs for the variance, "
        f"{queries:,} queries with {chosen.n_keys:,} keys each for softmax. A smaller d_k takes "
        "the first components of the same vectors."
    )


def _table(chosen: Choice) -> pd.DataFrame:
    table = scaling_curves.variances(chosen)
    shown: dict[str, Any] = {
        "d_k": table["d_k"],
        "variance, measured": table["measured"],
        "± standard error": table["standard_error"],
        "variance, theory": table["theory"],
        "mean of q·k": table["mean"],
    }
    for scale, name in ((UNSCALED, "unscaled"), (SCALED, "scaled")):
        found = saturated(chosen.components, chosen.n_keys, chosen.seed, scale)
        shown |= {
            f"largest weight, {name}": found.largest,
            f"entropy in nats, {name}": found.entropy,
            f"effective keys, {name}": found.mean_keys,
            f"Jacobian norm, median, {name}": found.jacobian[1],
        }
    return pd.DataFrame(shown).apply(_rounded)


def _rounded(column: pd.Series[float]) -> pd.Series[float]:
    """Four significant digits, which is what the standard errors bear."""
    if column.name == "d_k":
        return column
    return column.map(lambda value: float(np.format_float_scientific(value, 3)))
