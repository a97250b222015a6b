"""What the page Scaling says in words; every number in them is computed."""

from __future__ import annotations

import math

import numpy as np

from explorer.components import DEGREES, Components
from explorer.layer_gradients import Gradients

HELP = {
    "Standard": "Measured over independent pairs of q and k. Without the scale it is √d_k for "
    "components of mean 0 and variance 1; with it, 1.",
    "Largest": "The mean, over queries, of each query's largest weight.",
    "Effective": "exp(entropy): n for equal weights, 1 for a single key. The mean over queries.",
    "Gradient": "The norm of softmax's Jacobian: near 0, almost nothing passes back through it. "
    "The median query's.",
}

SCALES = (
    "Only 1/√d_k, and a cosine with a factor that grows like √d_k, hold the spread at every d_k. "
    "1/d_k makes all weights equal as d_k grows. One fixed number is right at one d_k; a model has "
    "one d_k only, so it can learn it. A cosine can't grow with long vectors, whatever training "
    "does to them: that is why some models use QK-norm."
)


def number(value: float) -> str:
    """Three digits; powers of ten where it is tiny or huge."""
    size = abs(value)
    if size == 0 or not math.isfinite(value):
        return "0" if size == 0 else str(value)
    if size < 1e-3 or size >= 1e6:
        power = math.floor(math.log10(size))
        return f"{value / 10.0**power:.0f}e{power}".replace("-", "\N{MINUS SIGN}")
    if size >= 1000:
        return f"{value:,.0f}".replace("-", "\N{MINUS SIGN}")
    digits = min(max(0, 2 - math.floor(math.log10(size))), 3)
    return f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def verdict(components: Components, d_k: int) -> str:
    """Whether 1/√d_k does what it promises for these components, and why not."""
    variance = components.variance_dot(d_k)
    scaled, seen = variance / d_k, components.variance_over_keys(d_k) / d_k
    if components.assumed:
        text = (
            "Components are independent, with mean 0 and variance 1: each of the d_k products has "
            f"variance 1, so q·k has variance d_k = {d_k:,} and standard deviation √d_k = "
            f"{number(math.sqrt(d_k))}. Divided by √d_k both are 1, whatever d_k."
        )
        if components.family == "student":
            text += (
                " Heavy tails change nothing in this as long as the variance is finite. With "
                f"{DEGREES} degrees the variance's standard error is finite too."
            )
        return text
    parts = [
        f"At d_k = {d_k:,} these components give q·k a variance of {number(variance)}, so "
        f"{number(scaled)} after scaling."
    ]
    if components.shared:
        parts.append(
            "Components of one vector are correlated, so the variance grows like d_k² in the long "
            "run: **scaling is no guarantee**, the scaled variance still grows with d_k."
        )
    else:
        parts.append(
            "It still grows in proportion to d_k, so scaling holds it at one value: **1 is no "
            "guarantee**, it needs mean 0, variance 1 and nothing correlated."
        )
    if components.rho:
        shift = components.mean_dot(d_k) / math.sqrt(d_k)
        parts.append(
            f"q and k are correlated: the mean score is {number(shift)} after scaling, not 0, and "
            "grows like √d_k. All keys here have it, so softmax does not see it. Where one key "
            "alone matches its query, that key stands out by as much."
        )
    elif components.mean:
        parts.append("A mean shifts all keys' scores alike, and softmax does not see a shift.")
    parts.append(
        f"Softmax sees the variance over the keys of one query: {number(seen)} after scaling, on "
        "average."
    )
    return " ".join(parts)


def gradients(without: Gradients, with_scale: Gradients, d_k: int, at: str) -> str:
    """What arrives at q or k at one size, the median example's beside the mean."""
    place = without.sizes.index(d_k)
    rows = [one.query[place] if at == "query" else one.key[place] for one in (without, with_scale)]
    medians = [number(float(np.median(row))) for row in rows]
    means = [number(float(row.mean())) for row in rows]
    return (
        f"At d_k = {d_k:,} the median example's gradient is **{medians[0]}** without the scale and "
        f"**{medians[1]}** with it; the means are {means[0]} and {means[1]}. Without the scale and "
        "at a large d_k a few unsaturated examples carry large gradients, and most receive almost "
        "nothing. **The mean hides it**, so look at the median."
    )
