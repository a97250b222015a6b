"""What the page "Real heads" found, in sentences worked out from the numbers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from explorer.attention import Attention
from explorer.capture import Stack
from explorer.head_findings import finding
from explorer.head_scaling import SCALES
from explorer.models import LoadedModel
from explorer.ui.head_scaling import Heads, is_own
from explorer.ui.words import plain


def say_found(heads: Heads, loaded: LoadedModel) -> None:
    """The model's true scale, and how its heads differ from what is assumed, in words."""
    found = finding(heads.table)
    st.markdown(_scale_in_words(heads.stack, loaded))
    if found is None:
        st.warning(
            "No query here has two keys with numbers, so no head's scores have a spread. "
            "Type a longer text.",
            icon=":material/info:",
        )
        return
    low, high = found.low, found.high
    assumed = only_value(heads.table["scores_assumed"])
    would = (
        "other values by layer" if assumed is None else f"**{short_number(assumed)}** in every head"
    )
    st.markdown(
        f"If the numbers in q and k were independent, with mean 0 and variance 1, the scores' "
        f"variance would be {would}. Measured on this text it goes from "
        f"**{short_number(low[0])}** (L{low[1]}H{low[2]}) to **{short_number(high[0])}** "
        f"(L{high[1]}H{high[2]}): **{found.above} of {found.heads}** heads spread their scores "
        "more than assumed."
    )
    st.markdown(
        f"**Why real heads differ.** Training changes W_Q and W_K. The *size* of the numbers in q "
        f"and k alone would make the middle head's variance {short_number(found.size)} times the "
        "assumed one. Where they *go together* instead of being independent, heads spread more "
        f"than size alone gives: the middle head {short_number(found.together)} times as much, "
        f"and {found.more_than_size} of {found.heads} heads lie above it. "
        "A scale sets where training starts, not where it ends."
    )
    missing = len(heads.table) - found.heads
    if missing:
        st.caption(
            f"{missing} of {len(heads.table)} heads have scores that are not numbers (NaN) and "
            "are left out."
        )


def _scale_in_words(stack: Stack, loaded: LoadedModel) -> str:
    """The scale that the stack's layers really use, and what else shapes their scores."""
    layers = [layer for layer in stack.layers if isinstance(layer, Attention)]
    scales = sorted({round(layer.effective_scale, 8) for layer in layers})
    sizes = sorted({layer.d_k for layer in layers})
    d_k = f"d_k = {sizes[0]}" if len(sizes) == 1 else f"d_k from {sizes[0]} to {sizes[-1]}"
    title = plain(loaded.title)
    if is_own(stack, SCALES["root"]):
        value = " to ".join(f"{scale:.4g}" for scale in sorted({scales[0], scales[-1]}))
        words = f"**{title} uses 1/√d_k = {value}** ({d_k})."
    elif len(scales) == 1 and scales[0] == 1:
        words = (
            f"**{title} does not scale: its factor on q·k is 1** ({d_k}). Such a model starts "
            "training with smaller projections instead."
        )
    else:
        value = f"{scales[0]:.4g}" if len(scales) == 1 else f"{scales[0]:.4g} to {scales[-1]:.4g}"
        root = f", where 1/√d_k would be {1 / math.sqrt(sizes[0]):.4g}" if len(sizes) == 1 else ""
        words = f"**{title} uses a scale of its own, {value}** ({d_k}{root})."
    if any(layer.prescale != 1 for layer in layers):
        words += " It is put into q before q·k, so the call itself says "
        words += f"{short_number(layers[0].scale or 1)}."
    extra = []
    if any(layer.bias is not None for layer in layers):
        extra.append("a position bias")
    if any(layer.softcap is not None for layer in layers):
        extra.append("a soft cap")
    if extra:
        words += f" Its scores also hold {' and '.join(extra)}, which no prediction here knows."
    if any(layer.sinks is not None for layer in layers):
        words += " A part of each row's weight goes to a sink, which is no key."
    return words


def only_value(column: pd.Series) -> float | None:
    """The one value of a column, None where there are several."""
    values = column.to_numpy(dtype=np.float64)
    return float(values[0]) if np.allclose(values, values[0]) else None


def short_number(value: int | float, digits: int = 2) -> str:
    """A number in running text, without an exponent."""
    if 0 < value < 0.001:
        return "less than 0.001"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"
