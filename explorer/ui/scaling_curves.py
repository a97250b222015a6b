"""Curves over d_k on the page Scaling; each view calls for what it shows only."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from explorer.figures.colors import head_colors
from explorer.figures.lines import Line, lines
from explorer.saturation import QUANTILES
from explorer.scaling import POWERS, SCALED, SCALES, SIZES, UNSCALED, Scale, variance_table
from explorer.ui import frame, scaling_verdict, width
from explorer.ui.chart import chart
from explorer.ui.controls import choose_one
from explorer.ui.scaling_choice import (
    MOST_GRADIENT_KEYS,
    Choice,
    gradients,
    pairs,
    saturated,
)
from explorer.ui.scaling_upright import upright

TICKS = {d_k: f"{d_k:,}" for d_k in POWERS[::2]}
BOTH = ((UNSCALED, "unscaled"), (SCALED, "scaled by 1/√d_k"))
LEARNED = ("0.125", "0.01", "0.03", "0.3", "1", "3")
COSINES = ("10", "1", "3", "30", "100")
SMALLEST = 1e-12
"""Gradients below this are drawn at the picture's lower edge or beyond it."""


class Shown(NamedTuple):
    """A picture's place in the page, its key, and its words."""

    title: str
    key: str
    alt: str


def _draw(chosen: Choice, shown: Shown, series: list[Line], y_title: str, **more: Any) -> None:
    """One picture over d_k, the chosen size marked."""
    st.markdown(shown.title)
    figure = lines(
        series,
        x_title="d_k",
        y_title=y_title,
        theme=frame.theme(),
        x_log=True,
        x_ticks=TICKS,
        width=width.column(),
        height=280,
        **more,
    )
    key = f"scaling_chart_{shown.key}"
    chart(figure, key, shown.alt, width="stretch")
    upright(key, chosen.d_k)


def _hues(n: int) -> list[str]:
    return head_colors(n, frame.theme())


def of_softmax(chosen: Choice) -> None:
    """Effective keys with their spread; largest weight and entropy."""
    keys: list[Line] = []
    shares: list[Line] = []
    most = math.log(chosen.n_keys)
    for (scale, name), color in zip(BOTH, _hues(2), strict=True):
        found = saturated(chosen.components, chosen.n_keys, chosen.seed, scale)
        low, middle, high = found.keys
        keys.append(Line(f"{name}, median", SIZES, middle, low, high, color=color))
        shares.append(Line(f"largest weight, {name}", SIZES, found.largest, color=color))
        shares.append(
            Line(f"entropy / log n, {name}", SIZES, found.entropy / most, dash="dash", color=color)
        )
    left, right = st.columns(2, gap="large")
    with left:
        title = f"**Effective number of keys**, exp(entropy), of {chosen.n_keys:,}"
        alt = "Effective keys over d_k; the numbers stand in the table below."
        _draw(
            chosen,
            Shown(title, "keys", alt),
            keys,
            "keys, logarithmic",
            y_log=True,
            y_ticks={n: f"{n:,}" for n in (1, 2, 4, 16, 64, 256, 1024) if n <= chosen.n_keys},
            y_range=(0.93, chosen.n_keys * 1.08),
        )
    with right:
        alt = "Largest weight and entropy over d_k; the numbers stand in the table below."
        title = "**Largest weight and entropy**, mean over queries"
        _draw(chosen, Shown(title, "shares", alt), shares, "share of 1", y_range=(0, 1.03))
    st.caption(
        "The ground holds 80 % of the queries. An entropy of log n means equal weights on all n "
        "keys, one of 0 a single key."
    )


def variances(chosen: Choice) -> pd.DataFrame:
    """Measured and expected variances at every size."""
    drawn = pairs(chosen.components, chosen.n_pairs, chosen.seed)
    return variance_table(chosen.components, drawn)


def of_variance(chosen: Choice) -> None:
    """The variance over d_k, and how far it lies from the closed form."""
    table = variances(chosen)
    d_k, theory = table["d_k"].to_numpy(), table["theory"].to_numpy()
    measured, error = table["measured"].to_numpy(), 2 * table["standard_error"].to_numpy()
    series: list[Line] = []
    for (scale, name), color in zip(BOTH, _hues(2), strict=True):
        by = d_k if scale == SCALED else np.ones(len(d_k))
        low, high = (measured - error) / by, (measured + error) / by
        series.append(
            Line(f"measured, {name}", d_k, measured / by, low, high, None, True, color, True, False)
        )
        series.append(Line(f"theory, {name}", d_k, theory / by, color=color))
    left, right = st.columns(2, gap="large")
    with left:
        alt = "Variance over d_k on logarithmic axes; the numbers stand in the table below."
        title = "**Variance of the scores**, measured and expected"
        _draw(
            chosen,
            Shown(title, "variance", alt),
            series,
            "variance",
            y_log=True,
            y_ticks=_decades(np.concatenate([theory, theory / d_k])),
        )
    with right:
        off, bar = 100 * (measured / theory - 1), 100 * error / theory
        line = Line("measured", d_k, off, off - bar, off + bar, None, True, None, True, False)
        expected = Line("theory", d_k, np.zeros(len(d_k)), dash="dash")
        alt = "Measured variance against the theory, in percent, with two standard errors."
        title = "**Measured against theory**, bars of 2 standard errors"
        _draw(
            chosen, Shown(title, "off", alt), [line, expected], "difference, %", hover="%{y:.2f} %"
        )
    furthest = float(np.max(np.abs(table["measured"] - theory) / table["standard_error"]))
    plain = chosen.components.assumed and chosen.components.family != "student"
    st.caption(
        f"{chosen.n_pairs:,} pairs. The furthest point lies {furthest:.1f} standard errors from "
        "theory. Neighbouring points share components, so they err together. Scaling divides the "
        "variance by d_k."
        + ("" if plain else " Where large products are rare, a sample underrates its own error.")
    )


def _decades(values: npt.NDArray[np.float64]) -> dict[float, str]:
    """A tick for each power of ten that the values need, and one beyond."""
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    powers = range(int(low), int(high) + 1)
    return {10.0**p: f"1e{p}" if p > 5 else f"{10.0**p:,.6g}" for p in powers}


def of_gradient(chosen: Choice) -> None:
    """What softmax lets through, and what arrives at q and k of a real layer."""
    hues = _hues(2)
    norms: list[Line] = []
    for (scale, name), color in zip(BOTH, hues, strict=True):
        found = saturated(chosen.components, chosen.n_keys, chosen.seed, scale)
        low, middle, high = found.jacobian
        norms.append(Line(f"{name}, median", SIZES, middle, low, high, color=color))
        norms.append(Line(f"{name}, mean", SIZES, found.mean_jacobian, dash="dash", color=color))
    which = {"query": "∂loss/∂q", "key": "∂loss/∂k"}
    at = choose_one("gradient_at", which, label="Gradient of the layer at", buttons=True)
    left, right = st.columns(2, gap="large")
    with left:
        alt = "Norm of softmax's Jacobian over d_k; the numbers stand in the table below."
        title = "**Softmax's Jacobian**, its norm: what passes from weights to scores"
        _gradient_picture(chosen, Shown(title, "jacobian", alt), norms)
    arrived = [gradients(chosen.n_keys, chosen.seed, scaled) for scaled in (False, True)]
    with right:
        series: list[Line] = []
        for found_at, (_, name), color in zip(arrived, BOTH, hues, strict=True):
            examples = found_at.query if at == "query" else found_at.key
            low, middle, high = np.quantile(examples, QUANTILES, axis=1)
            series.append(Line(f"{name}, median", POWERS, middle, low, high, color=color))
            mean = examples.mean(1)
            series.append(Line(f"{name}, mean", POWERS, mean, dash="dash", color=color))
        alt = f"{which[at]} of an attention layer over d_k, with and without the scale."
        title = f"**{which[at]}** of our own attention layer, its norm per example"
        _gradient_picture(chosen, Shown(title, "layer", alt), series)
    near = min(POWERS, key=lambda size: abs(math.log(size / chosen.d_k)))
    st.markdown(scaling_verdict.gradients(arrived[0], arrived[1], near, at))
    few = min(chosen.n_keys, MOST_GRADIENT_KEYS)
    st.caption(
        f"Grounds hold 80 % of the queries or examples. The layer is ours: one head, projections "
        f"of unit variance, {arrived[0].query.shape[1]} random sequences of {few} tokens, seed "
        f"{chosen.seed}; the loss is the squared error against a random target. It does not follow "
        "the components chosen above: its projections make its own."
    )


def _gradient_picture(chosen: Choice, shown: Shown, series: list[Line]) -> None:
    ticks = {10.0**p: f"1e{p}" if p else "1" for p in range(-12, 3, 2)}
    _draw(
        chosen,
        shown,
        series,
        "norm, logarithmic",
        y_log=True,
        y_range=(SMALLEST, 30),
        y_ticks=ticks,
        hover="%{y:.2~e}",
    )


def of_scales(chosen: Choice) -> None:
    """Five ways from q·k to a score, side by side."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        learned = choose_one(
            "learned",
            {number: f"{number} · q·k" for number in LEARNED},
            label="One learned number",
            help="A model may learn one factor for q·k. It fits one d_k: 0.125 is 1/√64.",
        )
        cosine = choose_one(
            "cosine",
            {number: f"{number} · cos(q, k)" for number in COSINES},
            label="Cosine (QK-norm)",
            help="Queries and keys are brought to length 1 first; a learned factor gives the "
            "scores their size. Without one, they'd lie between -1 and 1.",
        )
    numbers: dict[str, float] = {"learned": float(learned), "cosine": float(cosine)}
    found = {
        title: saturated(
            chosen.components, chosen.n_keys, chosen.seed, Scale(name, numbers.get(name, 1))
        )
        for name, title in SCALES.items()
    }
    left, right = st.columns(2, gap="large")
    with left:
        alt = "Standard deviation of the scores over d_k for five scales."
        title = "**Standard deviation of a query's scores** over its keys"
        spreads = [Line(name, SIZES, one.deviation) for name, one in found.items()]
        ticks = {10.0**p: f"{10.0**p:g}" for p in range(-3, 4)}
        _draw(
            chosen,
            Shown(title, "spreads", alt),
            spreads,
            "standard deviation",
            y_log=True,
            y_ticks=ticks,
        )
    with right:
        alt = "Effective number of keys over d_k for five scales."
        title = f"**Effective number of keys**, mean, of {chosen.n_keys:,}"
        keys = [Line(name, SIZES, one.mean_keys) for name, one in found.items()]
        _draw(chosen, Shown(title, "scale_keys", alt), keys, "keys", y_range=(0, chosen.n_keys))
    st.dataframe(
        pd.DataFrame(
            {
                f"scale, at d_k = {chosen.d_k:,}": list(found),
                "standard deviation": [one.deviation[chosen.place] for one in found.values()],
                "largest weight": [one.largest[chosen.place] for one in found.values()],
                "effective keys": [one.mean_keys[chosen.place] for one in found.values()],
            }
        ).round(4),
        hide_index=True,
    )
    st.markdown(scaling_verdict.SCALES)
