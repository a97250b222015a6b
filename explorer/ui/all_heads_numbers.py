"""What the page All heads measures: numbers per head and distances, kept between reruns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from explorer.capture import Capture, Stack
from explorer.head_table import ALL_METRICS, ON_SEGMENT, on_segment
from explorer.metrics import LARGEST_MAP, METRICS, QUICK, REPEATED, Metric, head_metrics
from explorer.models import LoadedModel, ModelError
from explorer.repeated import repeated_capture
from explorer.similarity import HeadDistances, classical_mds, head_distances
from explorer.ui import cached, controls
from explorer.ui.words import plain

PERIOD, COPIES, SEED = 25, 2, 0
MOST_LOGARITHMS = 150_000_000
"""Of weights, in the distances between all heads: about half a second on two cores."""
FEWEST_QUERIES = 24


@dataclass(frozen=True, eq=False)
class Numbers:
    """All heads of a stack, and their numbers where asked for."""

    loaded: LoadedModel
    capture: Capture
    stack: Stack
    key: tuple[object, ...]
    """Everything the capture depends on: it names the capture in caches."""
    places: pd.DataFrame
    """A row for each head: layer and head."""
    metrics: dict[str, Metric]
    """Those that can be chosen, by name."""
    segment: pd.DataFrame | None
    """The scores on a repeated segment, where asked for."""
    no_segment: str
    """Why there can be none, as a sentence; empty where there can."""
    known: dict[tuple[str, ...], pd.DataFrame] = field(default_factory=dict)
    """What this run has looked up already."""

    @property
    def layers(self) -> npt.NDArray[np.int64]:
        """Each head's layer."""
        return self.places["layer"].to_numpy(dtype=np.int64)

    @property
    def heads(self) -> npt.NDArray[np.int64]:
        """Each head's number in its layer."""
        return self.places["head"].to_numpy(dtype=np.int64)

    def has(self, layer: int, head: int) -> bool:
        """Whether there is such a head."""
        return bool(((self.layers == layer) & (self.heads == head)).any())

    def of(self, name: str) -> npt.NDArray[np.float64]:
        """A metric of each head, measured where it was not."""
        if self.segment is not None and name in self.segment:
            return self.segment[name].to_numpy(dtype=np.float64)
        names = QUICK if name in QUICK else (name,)
        if names not in self.known:
            self.known[names] = _measured(self.stack, names, self.stack.name, *self.key)
        return self.known[names][name].to_numpy(dtype=np.float64)

    def table(self, names: list[str]) -> pd.DataFrame:
        """Layer, head and these metrics, a row a head."""
        columns = pd.DataFrame({name: self.of(name) for name in names}, index=self.places.index)
        return pd.concat([self.places, columns], axis=1)

    def why_unknown(self, name: str) -> str:
        """A sentence that says why some head has no such number."""
        metric, stack = self.metrics[name], self.stack
        if metric.same_sequence and stack.name.startswith("cross"):
            return "queries and keys are of two texts, so no key is a query's own place."
        if metric.needs_scores and stack.read_only:
            return "this model gives its weights alone, not the scores behind them."
        if (
            metric.of_map is not None
            and max(len(stack.query_tokens), len(stack.key_tokens)) > LARGEST_MAP
        ):
            return f"it looks at the whole map, here up to {LARGEST_MAP} tokens."
        reasons = {
            "punctuation": "the text has no token of punctuation only.",
            "same": "no token stands in the text twice.",
            "duplicate": "no token stands in the text twice where the later one sees the earlier.",
            "induction": "no token stands in the text twice with something after the first.",
        }
        return reasons.get(name, "the weights are not numbers, or no query has enough keys.")


@st.cache_resource(max_entries=48, show_spinner="Measuring the heads …")
def _measured(_stack: Stack, names: tuple[str, ...], *key: object) -> pd.DataFrame:
    """These metrics of every head. `key` names the stack."""
    return head_metrics(_stack, names)


@st.cache_resource(max_entries=16, show_spinner="Comparing all heads …")
def _distances(_stack: Stack, most_queries: int, *key: object) -> HeadDistances:
    return head_distances(_stack, most_queries).known()


def distances(numbers: Numbers) -> HeadDistances:
    """How far all heads of which something is known are from each other.

    Of long texts some of the queries only, evenly spread.
    """
    stack = numbers.stack
    pairs = len(numbers.places) * (len(numbers.places) - 1) // 2
    most = MOST_LOGARITHMS // max(1, pairs * len(stack.key_tokens))
    return _distances(stack, max(most, FEWEST_QUERIES), stack.name, *numbers.key)


@st.cache_resource(max_entries=16, show_spinner=False)
def _plane(_found: HeadDistances, *key: object) -> tuple[npt.NDArray[np.float64], float]:
    return classical_mds(_found.matrix)


def plane(numbers: Numbers, found: HeadDistances) -> tuple[npt.NDArray[np.float64], float]:
    """The heads as points of a map, and the share of the squared distances that it shows."""
    return _plane(found, numbers.stack.name, *numbers.key)


@st.cache_resource(max_entries=8, show_spinner="Running the model on a repeated segment …")
def _on_segment(name: str, device: str, dtype: str) -> tuple[pd.DataFrame, int, int]:
    """The scores, how many tokens were run, and how many of them are the segment."""
    found = repeated_capture(cached.model(name, device, dtype), PERIOD, COPIES, SEED)
    stack = found.stacks["decoder"]
    length = len(stack.query_tokens)
    table = head_metrics(stack, REPEATED)
    table = table.rename(columns={each: on_segment(each) for each in REPEATED})
    return table, length, (length - sum(stack.query_tokens.special)) // COPIES


def measured(
    loaded: LoadedModel, capture: Capture, stack: Stack, key: tuple[object, ...]
) -> Numbers:
    """The heads of a stack; with a switch for decoders that adds scores on a repeated segment."""
    rows = [
        (number, head)
        for number, layer in zip(stack.layer_numbers, stack.layers, strict=True)
        for head in range(layer.n_heads)
    ]
    places = pd.DataFrame(rows, columns=["layer", "head"])
    metrics = {metric.name: metric for metric in METRICS}
    why_not = _no_segment(loaded, stack)
    segment = None if why_not else _segment(key, places)
    if segment is not None:
        metrics |= {metric.name: ALL_METRICS[metric.name] for metric in ON_SEGMENT}
    return Numbers(loaded, capture, stack, key, places, metrics, segment, why_not)


def _no_segment(loaded: LoadedModel, stack: Stack) -> str:
    """Why a repeated segment would tell nothing here; empty where it would."""
    if stack.name == "decoder" and not loaded.is_encoder_decoder:
        return ""
    why = "it sees what comes after a token too, so it need not remember what followed"
    if loaded.is_encoder_decoder:
        why = "its decoder goes on from another text, not from one of its own"
    return (
        "Induction heads show themselves on random tokens read twice. That is for decoders, such "
        f"as GPT-2. Not for {plain(loaded.title)}: {why}."
    )


def _segment(key: tuple[object, ...], places: pd.DataFrame) -> pd.DataFrame | None:
    """The scores on a repeated segment, where the reader asks for them."""
    if not controls.choose_yes(
        "segment",
        "Also on a repeated random segment",
        help="Runs the model once more, on random tokens read twice: nothing but the repetition "
        "can be known there, so an induction head shows itself.",
    ):
        return None
    try:
        table, length, period = _on_segment(str(key[0]), str(key[1]), str(key[2]))
    except ModelError as error:
        st.warning(plain(str(error)), icon=":material/info:")
        return None
    start = "after the model's start token " if length > period * COPIES else ""
    st.caption(
        f"Also run: {length} tokens, a random segment of {period} read {COPIES} times {start}"
        f"(seed {SEED}). Its scores stand among the numbers as “repeated segment”."
    )
    return places.merge(table, how="left", on=["layer", "head"])
