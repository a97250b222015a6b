"""Heads of a model measured for the page "Real heads", with a scale to compare their own with."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd
import streamlit as st

from explorer.attention import Attention
from explorer.capture import Capture, Stack
from explorer.head_columns import OTHER
from explorer.head_scaling import (
    NOT_KNOWN,
    SCALES,
    SOFTMAX,
    Scale,
    softmax_table,
    times,
    variance_table,
)
from explorer.ui import address, controls
from explorer.ui.words import plain

FACTORS = {
    "1/16": 1 / 16,
    "1/8": 1 / 8,
    "1/4": 1 / 4,
    "1/2": 1 / 2,
    "2": 2.0,
    "4": 4.0,
    "8": 8.0,
    "16": 16.0,
}


class Heads(NamedTuple):
    """The heads of a stack with their numbers, and the scale they are compared with."""

    stack: Stack
    key: tuple[object, ...]
    table: pd.DataFrame
    """A row for each head; columns as in COLUMNS."""
    against: str
    """The compared scale's name, as the caches know it."""

    @property
    def other(self) -> Scale:
        """The compared scale."""
        return scale_named(self.against)


def scale_named(name: str) -> Scale:
    """One of SCALES, or a factor such as "× 1/2"."""
    return times(FACTORS[name[2:]]) if name.startswith("× ") else SCALES[name]


def titled(stack: Stack, name: str) -> str:
    """What a scale is called on this page."""
    if name == "own" and is_own(stack, SCALES["root"]):
        return "1/√d_k (own)"
    return scale_named(name).title


def measured(capture: Capture, stack: Stack, key: tuple[object, ...]) -> Heads:
    """Every head's numbers, and a choice of the compared scale.

    Ends the page with a sentence where queries and keys are not known.
    """
    if stack.read_only:
        st.info(plain(NOT_KNOWN), icon=":material/info:")
        address.stop()
    against = _choose_scale(stack)
    table = _variances(capture, stack.name, *key)
    own = _softmax(capture, stack.name, "own", *key)
    other = _softmax(capture, stack.name, against, *key)
    joined = table.assign(
        **{name: own[name] for name in SOFTMAX},
        **{f"{name}{OTHER}": other[name] for name in SOFTMAX},
    )
    return Heads(stack, (capture, *key), joined, against)


@st.cache_resource(max_entries=16, show_spinner="Measuring the scores of every head …")
def _variances(_capture: Capture, stack: str, *key: object) -> pd.DataFrame:
    return variance_table(_capture.stacks[stack])


@st.cache_resource(max_entries=64, show_spinner=False)
def _softmax(_capture: Capture, stack: str, scale: str, *key: object) -> pd.DataFrame:
    return softmax_table(_capture.stacks[stack], scale_named(scale))


def softmax_with(heads: Heads, scale: str) -> pd.DataFrame:
    """What softmax makes of every head with a scale, by name."""
    capture, *key = heads.key
    assert isinstance(capture, Capture)
    return _softmax(capture, heads.stack.name, scale, *key)


def is_own(stack: Stack, scale: Scale) -> bool:
    """Whether every layer uses this scale anyway."""
    layers = [layer for layer in stack.layers if isinstance(layer, Attention)]
    return all(math.isclose(scale.of(layer), layer.effective_scale) for layer in layers)


def _choose_scale(stack: Stack) -> str:
    """The scale to compare the model's own with; those that are its own anyway are left out."""
    titles = {"one": "No scaling", "inverse": "1/d_k", "root": "1/√d_k"}
    options = {name: title for name, title in titles.items() if not is_own(stack, SCALES[name])}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        against = controls.choose_one(
            "against", {**options, "times": "A factor"}, label="Compare with scale", buttons=True
        )
        if against != "times":
            return against
        parse = address.one_of("times", FACTORS.__contains__, "Showing 2.")
        address.start("times", "2", parse)
        st.select_slider("Its own scale, times", list(FACTORS), key="times", width=280)
        address.finish("times", "2")
        return f"× {st.session_state['times']}"
