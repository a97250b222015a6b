"""Changes to a real model's attention: what, and in which layers and heads.

A description only: `changed_attention` applies it, and `Capture.changed` runs a model with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from explorer.attention import Attention
from explorer.masks import Mask

SCALE_RULES: dict[str, Callable[[int], float]] = {
    "1": lambda d_k: 1.0,
    "1/√d_k": lambda d_k: 1 / math.sqrt(d_k),
    "1/d_k": lambda d_k: 1 / d_k,
}
"""Scales to choose instead of a layer's own, by the size of its queries and keys."""


@dataclass(frozen=True)
class Intervention:
    """A change to some heads of some layers; what is not given stays as the model has it.

    Several are applied one after the other. Raises ValueError for numbers that make no sense.
    """

    stack: str
    layers: tuple[int, ...] | None = None
    """None for all layers."""
    heads: tuple[int, ...] | None = None
    """None for all heads."""
    scale_rule: str | None = None
    """One of SCALE_RULES, for the whole factor on q·k."""
    scale_times: float = 1.0
    """A factor on the scale: above 1 attention gets harder, below 1 softer."""
    mask: Mask | None = None
    """Instead of the layer's own mask; keys that nobody may use (padding) stay forbidden."""
    and_mask: Mask | None = None
    """Besides the layer's own mask: what either forbids is forbidden."""
    without_keys: tuple[int, ...] = ()
    """Keys that no query may use any more."""
    uniform: bool = False
    """Each query weighs all keys that it may use alike."""
    set_weights: tuple[tuple[int, int, float], ...] = ()
    """(query, key, weight): these weights, whatever the scores are."""
    renormalise: bool = True
    """Whether the other weights of such a row share what is left of 1."""
    zero_values: tuple[int, ...] = ()
    """Keys whose value vectors are zeros: their weight then brings nothing."""
    output: Literal["own", "off", "mean"] = "own"
    """off: the head's output is zero. mean: for each query the mean over this text's queries."""
    output_of: Mapping[tuple[str, int], Attention] | None = None
    """Another text's attention by stack and layer: the head puts out what it put out there."""

    def __post_init__(self) -> None:
        if self.scale_rule is not None and self.scale_rule not in SCALE_RULES:
            raise ValueError(
                f'scale_rule: got "{self.scale_rule}"; choose among {", ".join(SCALE_RULES)}.'
            )
        if not (math.isfinite(self.scale_times) and self.scale_times >= 0):
            raise ValueError(f"scale_times: got {self.scale_times}; give a number from 0 on.")
        totals: dict[int, float] = {}
        for query, _, weight in self.set_weights:
            if not 0 <= weight <= 1:
                raise ValueError(f"set_weights: got {weight}, but a weight lies between 0 and 1.")
            totals[query] = totals.get(query, 0.0) + weight
        for query, total in totals.items():
            if total > 1 + 1e-6:
                raise ValueError(
                    f"set_weights: those of query {query} sum to {total:.3f}, more than 1."
                )

    def applies(self, stack: str, layer: int) -> bool:
        """Whether it changes something in this layer."""
        return self.stack == stack and (self.layers is None or layer in self.layers)
