"""What one chooses on the page Scaling, and what is drawn for it, kept between reruns."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from explorer.components import FAMILIES, Components
from explorer.layer_gradients import Gradients, layer_gradients
from explorer.saturation import Saturation, saturation
from explorer.scaling import POWERS, SIZES, Sample, Scale, sample, scores
from explorer.ui import address, lesson
from explorer.ui.controls import choose_one

D_K, N_KEYS = 64, 16
KEYS = tuple(2**power for power in range(1, 11))
PAIRS = (500, 2000, 8000)
ROWS = 16
ALL_KEYS = 8192
"""Keys drawn in all, divided among queries; for many keys a query, at least ROWS queries."""
MOST_GRADIENT_KEYS = 64


class Choice(NamedTuple):
    """A size, and everything that the numbers depend on."""

    d_k: int
    n_keys: int
    components: Components
    n_pairs: int
    seed: int
    row: int
    """The query whose weights are shown."""

    @property
    def place(self) -> int:
        """Where d_k stands among SIZES."""
        return SIZES.index(self.d_k)


def choose() -> Choice:
    """d_k, the number of keys, and in a popover how components are drawn."""
    d_k = _choose_d_k()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        n_keys = lesson.pick("scaling_keys", "Keys, n", KEYS, N_KEYS)
        with st.popover("Components of q and k", icon=":material/ssid_chart:"):
            components = _choose_components()
        with st.popover("Sample and seed", icon=":material/casino:"):
            n_pairs = lesson.pick(
                "scaling_pairs", "Pairs of q and k, for the variance", PAIRS, 2000
            )
            seed = lesson.pick("scaling_seed", "Seed", range(100), 0)
            row = lesson.pick("scaling_row", "Query whose weights are shown", range(ROWS), 0)
    return Choice(d_k, n_keys, components, n_pairs, seed, row)


def _choose_d_k() -> int:
    name = "scaling_d_k"
    address.start(name, D_K, address.number_of(name, list(SIZES), D_K))
    st.select_slider("d_k, the size of a query and a key", SIZES, key=name)
    address.finish(name, D_K)
    return int(st.session_state[name])


def _choose_components() -> Components:
    def number(name: str, label: str, options: tuple[str, ...], help: str) -> float:
        return float(choose_one(name, {o: o for o in options}, label=label, help=help))

    family = choose_one(
        "family", {name: kind.title for name, kind in FAMILIES.items()}, label="Distribution"
    )
    mean = number("component_mean", "Mean m", ("0", "0.5", "1", "2"), "Of every component.")
    variance = number(
        "component_variance", "Variance s²", ("1", "0.25", "0.5", "2", "4"), "Of every one."
    )
    rho = number(
        "rho",
        "Correlation ρ of q and k",
        ("0", "0.1", "0.3", "0.6", "0.9", "-0.3"),
        "Of a component of q with the same one of k, for every key.",
    )
    shared = number(
        "shared",
        "Correlation among components",
        ("0", "0.01", "0.1", "0.5"),
        "Of any two components of one vector.",
    )
    return Components(family, mean, variance, rho, shared)


@st.cache_resource(max_entries=8, show_spinner="Drawing queries and keys …")
def pairs(components: Components, n_pairs: int, seed: int) -> Sample:
    """Independent pairs, for the variance."""
    return sample(components, n_pairs, 1, seed)


@st.cache_resource(max_entries=8, show_spinner="Drawing queries and keys …")
def keyed(components: Components, n_keys: int, seed: int) -> Sample:
    """Queries with n keys each, for softmax."""
    return sample(components, max(ROWS, ALL_KEYS // n_keys), n_keys, seed)


@st.cache_resource(max_entries=32, show_spinner=False)
def saturated(components: Components, n_keys: int, seed: int, scale: Scale) -> Saturation:
    """What softmax makes of them at every size."""
    return saturation(scores(keyed(components, n_keys, seed), scale))


@st.cache_resource(max_entries=8, show_spinner="Running an attention layer backwards …")
def gradients(n_keys: int, seed: int, scaled: bool) -> Gradients:
    """What reaches a real layer's queries and keys, at the powers of two."""
    return layer_gradients(min(n_keys, MOST_GRADIENT_KEYS), seed, scaled=scaled, sizes=POWERS)
