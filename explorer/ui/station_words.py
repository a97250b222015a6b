"""What each station does, in plain words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from explorer.ui.scene import Scene


def spread(weights: npt.NDArray[np.float32], n_allowed: int) -> str:
    """How hard or soft a row is, in words."""
    if n_allowed == 0:
        return "This query may use no key, so it has no weights."
    keys = math.exp(-float(np.sum(weights * np.log(np.where(weights > 0, weights, 1)))))
    return (
        f"Largest weight {weights.max():.2f}. The row is spread as widely as over {keys:.1f} equal "
        f"keys: 1 would be hard attention, {n_allowed} fully soft."
    )


def explain(scene: Scene, station: str) -> None:
    """What the station does, in plain words, with this scene's sizes."""
    attention = scene.attention
    n_q, n_k, d_k, d_v = (
        attention.query_length,
        attention.key_length,
        attention.d_k,
        attention.d_v,
    )
    sizes: dict[str, Any] = {"n_q": n_q, "n_k": n_k, "d_k": d_k, "d_v": d_v}
    sizes |= {"h": attention.n_heads, "all": attention.n_heads * d_v}
    sizes["scale"] = f"{attention.scale:.4g}"
    for line in WORDS[station]:
        st.markdown(line.format(**sizes))


WORDS: dict[str, tuple[str, ...]] = {
    "qkv": (
        "Each token is a vector, a row of numbers. Three matrices turn it into three vectors: a "
        "**query** (what it looks for), a **key** (what it can be found by) and a **value** (what "
        "it hands over).",
        "Q is {n_q} × {d_k}, K is {n_k} × {d_k}, V is {n_k} × {d_v}: a row for each token.",
    ),
    "dots": (
        "Each query meets each key: multiply them number by number and add the products up. The "
        "**dot** is large where the two point the same way.",
        "{n_q} queries and {n_k} keys make {n_q} × {n_k} dots.",
    ),
    "scale": (
        "A dot adds up dₖ = {d_k} products, so longer vectors give larger dots. Dividing by √dₖ "
        "evens that out. Without it, long vectors would put nearly all weight on one key.",
    ),
    "mask": (
        "Where the mask forbids a key, the score becomes **−∞**. It goes in *before* softmax, so "
        "that the weight there comes out as exactly 0 and the others still sum to 1.",
    ),
    "softmax": (
        "Row by row: subtract the row's largest score, take e to the power of each, divide by the "
        "row's sum. Every weight is then a **share of 1**.",
        "Subtracting the maximum changes no weight; it only keeps the numbers small.",
    ),
    "values": (
        "Each value vector is taken in the share that its weight says, and the shares are added. "
        "So each number of the output lies **between** the smallest and the largest of the values.",
        "A weight says how much of a value goes into this head's output. It does not say how much "
        "the token matters for what a model predicts.",
    ),
    "join": (
        "Every head has done the same with its own Q, K and V. Their outputs stand side by side, "
        "{h} × {d_v} = {all} numbers a token, and **W_O** mixes them into one vector a token.",
    ),
}
