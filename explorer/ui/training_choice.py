"""The choices of the page Training: presets, and every setting, each in the address."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import streamlit as st

from explorer.training import RunSettings
from explorer.ui import address
from explorer.ui.words import plain

SCALES = {
    "root": "1/√d_k",
    "one": "1 (none)",
    "inverse": "1/d_k",
    "times": "a factor/√d_k",
}
INITIALISATIONS = {
    "unit": "Unit variance",
    "torch": "torch's default",
    "small": "Small (0.02)",
}
TASKS = {"repeat": "Repeated segment", "recall": "Associative recall"}
POSITIONS = {"rotary": "Rotary", "learned": "Learned"}
D_K = (2, 4, 8, 16, 32, 64, 128, 256, 512)
RATES = ("0.0003", "0.001", "0.002", "0.003", "0.005", "0.01", "0.03")
STEPS = (50, 100, 150, 200, 300, 400, 600, 1000)
FIRST_SEED = 0
NAMES = {"a": "First", "b": "Second"}
FACTOR, SMALLEST, LARGEST = 2.0, 0.01, 100.0
"""The factor on 1/√d_k where a reader asks for one of his own, and its bounds."""
APPLIED = "train applied preset"


class Preset(NamedTuple):
    """A setting worth watching: its title, what one sees, and the controls it sets."""

    title: str
    about: str
    sets: dict[str, str]


USUAL = {
    "train_task": "repeat",
    "train_d_k": "16",
    "train_heads": "4",
    "train_rate": "0.01",
    "train_init": "unit",
    "train_positions": "rotary",
    "train_steps": "200",
    "train_seeds": "1",
    "train_scale_a": "root",
    "train_scale_b": "one",
    "train_layers_a": "2",
    "train_layers_b": "2",
}
_AT_256 = {"train_d_k": "256", "train_heads": "2", "train_rate": "0.003", "train_steps": "150"}
PRESETS = {
    "induction": Preset(
        "Watch an induction head form",
        "Each row repeats a segment of its own random length, so reading positions is no help. Two "
        "layers learn it: a head of layer 0 looks at the previous token, and then a head of layer "
        "1 finds what came after the same symbol before. One layer alone can't.",
        {"train_scale_b": "root", "train_layers_b": "1"},
    ),
    "at256": Preset(
        "Scaled against unscaled at d_k = 256",
        "The same task with heads of 256 numbers. Without 1/√d_k the scores start with a deviation "
        "of about 16, softmax gives almost all to one key, and hardly any row passes a gradient.",
        {**_AT_256, "train_seeds": "5"},
    ),
    "at16": Preset(
        "The same at d_k = 16",
        "Small heads: the scores start with a deviation of about 4 only. Going without costs "
        "steps, not the result.",
        {"train_heads": "2", "train_rate": "0.003", "train_steps": "400", "train_seeds": "3"},
    ),
    "recall": Preset(
        "Associative recall at d_k = 256",
        "Pairs of a key and a value, then a key alone: which value stood with it? One layer with "
        "two heads learns it with each of the five seeds. Without 1/√d_k it does so with none in "
        "these steps. Scaling is no promise: with one head alone a seed may fail in spite of it.",
        {
            "train_task": "recall",
            "train_rate": "0.003",
            "train_d_k": "256",
            "train_heads": "2",
            "train_positions": "learned",
            "train_steps": "150",
            "train_seeds": "5",
            "train_layers_a": "1",
            "train_layers_b": "1",
        },
    ),
    "small": Preset(
        "Unscaled learns too: small first weights",
        "Again d_k = 256, but all weights start 0.02 wide. Then the scores start small without any "
        "factor, and both learn: it is the scores' first variance that counts. At a learning "
        "rate of 0.01 the unscaled model fails here too.",
        {**_AT_256, "train_init": "small", "train_seeds": "3"},
    ),
}


class Side(NamedTuple):
    """One of the two models."""

    name: str
    runs: tuple[RunSettings, ...]
    """One for each seed."""


@dataclass(frozen=True)
class Choice:
    """Two models, to train on the same rows."""

    sides: tuple[Side, Side]
    preset: str

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return [run.seed for run in self.sides[0].runs]


def choose() -> Choice:
    """The preset and all settings. Ends the page with a sentence where they do not fit."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        preset = _choose_preset()
        defaults = USUAL | PRESETS[preset].sets
        with st.popover("Task, heads, positions", icon=":material/tune:"):
            one("train_task", "Task", TASKS, defaults)
            one("train_heads", "Heads in a layer", _same((1, 2, 4, 8)), defaults)
            one("train_positions", "Positions", POSITIONS, defaults)
    st.markdown(PRESETS[preset].about)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        one("train_d_k", "d_k", _same(D_K), defaults, 120)
        one("train_rate", "Learning rate", _same(RATES), defaults, 140)
        one("train_init", "First weights", INITIALISATIONS, defaults, 180)
        one("train_steps", "Steps", _same(STEPS), defaults, 120)
        one("train_seeds", "Seeds", _same((1, 2, 3, 4, 5)), defaults, 120)
    for column, (letter, which) in zip(st.columns(2, gap="large"), NAMES.items(), strict=True):
        with column, st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            scale = one(f"train_scale_{letter}", f"{which} model: scale", SCALES, defaults, 170)
            if scale == "times":
                _choose_factor(letter)
            layers = _same((1, 2, 3, 4))
            one(f"train_layers_{letter}", f"{which} model: layers", layers, defaults, 150)
    try:
        first, second = map(_side, NAMES, _names())
        return Choice((first, second), preset)
    except ValueError as error:
        st.error(plain(str(error)), icon=":material/info:")
        address.stop()


def scale_of(name: str, d_k: int, factor: float = FACTOR) -> float | None:
    """The factor on q·k; None for the usual one."""
    factors = {"one": 1.0, "inverse": 1 / d_k, "times": factor / math.sqrt(d_k)}
    return factors.get(name)


def _choose_factor(letter: str) -> None:
    name = f"train_factor_{letter}"
    address.start(name, FACTOR, address.between(name, SMALLEST, LARGEST, FACTOR))
    st.number_input("Factor", SMALLEST, LARGEST, step=0.5, format="%g", key=name, width=90)
    address.finish(name, FACTOR)


def _names() -> list[str]:
    """What the two models are called: by what differs between them."""
    layers = [f"{n} layer{'s' * (n != '1')}" for n in _of_both("train_layers")]
    scales = [f"scale {SCALES[name]}" for name in _of_both("train_scale")]
    for at, letter in enumerate(NAMES):
        if st.session_state[f"train_scale_{letter}"] == "times":
            scales[at] = f"scale {st.session_state[f'train_factor_{letter}']:g}/√d_k"
    differ = [both for both in (layers, scales) if both[0] != both[1]]
    return [", ".join(each) for each in zip(*(differ or [[*NAMES.values()], scales]), strict=True)]


def _of_both(name: str) -> list[str]:
    return [st.session_state[f"{name}_{letter}"] for letter in NAMES]


def _side(letter: str, name: str) -> Side:
    state = st.session_state
    d_k, factor = int(state["train_d_k"]), state.get(f"train_factor_{letter}", FACTOR)
    settings: dict[str, Any] = {
        "task": state["train_task"],
        "n_layers": int(state[f"train_layers_{letter}"]),
        "n_heads": int(state["train_heads"]),
        "d_k": d_k,
        "scale": scale_of(state[f"train_scale_{letter}"], d_k, factor),
        "initialisation": state["train_init"],
        "positions": state["train_positions"],
        "learning_rate": float(state["train_rate"]),
        "steps": int(state["train_steps"]),
    }
    seeds = range(FIRST_SEED, FIRST_SEED + int(state["train_seeds"]))
    return Side(name, tuple(RunSettings(**settings, seed=seed) for seed in seeds))


def _choose_preset() -> str:
    titles = {name: preset.title for name, preset in PRESETS.items()}
    first = next(iter(titles))
    parse = address.one_of(
        "train_preset", lambda given: given in titles, f"Showing “{titles[first]}”."
    )
    address.start("train_preset", first, parse)
    if st.session_state["train_preset"] not in titles:
        st.session_state["train_preset"] = first
    preset = str(st.session_state["train_preset"])
    if st.session_state.get(APPLIED) != preset:  # by a link: what it says itself stays
        _apply(preset, keep=set(st.query_params))
    st.selectbox(
        "Experiment",
        list(titles),
        key="train_preset",
        format_func=titles.__getitem__,
        on_change=_chosen,
        width=360,
    )
    address.finish("train_preset", first)
    return preset


def _chosen() -> None:
    _apply(st.session_state["train_preset"], keep=set())


def _apply(preset: str, keep: set[str]) -> None:
    """Sets the controls to a preset's values."""
    sets = USUAL | PRESETS[preset].sets
    address.put(**{name: value for name, value in sets.items() if name not in keep})
    st.session_state[APPLIED] = preset


def one(
    name: str, label: str, titles: Mapping[str, str], defaults: Mapping[str, str], width: int = 220
) -> str:
    """One of some values as a select box, the preset's by default, kept in the address."""
    default = defaults[name]
    allowed = ", ".join(titles)
    parse = address.one_of(
        name,
        lambda given: given in titles,
        f"There are {allowed}. Showing {titles[default]}.",
    )
    address.start(name, default, parse)
    if st.session_state[name] not in titles:
        st.session_state[name] = default
    st.selectbox(label, list(titles), key=name, format_func=titles.__getitem__, width=width)
    address.finish(name, default)
    return str(st.session_state[name])


def _same(values: tuple[int, ...] | tuple[str, ...]) -> dict[str, str]:
    return {str(value): str(value) for value in values}
