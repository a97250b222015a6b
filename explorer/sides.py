"""One side of a comparison: a head's map with the mask, scale and way to weigh one chose."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer.attention import Attention
from explorer.interventions import SCALE_RULES
from explorer.masks import Mask, causal, only_keys, sliding_window
from explorer.stacks import AnyAttention, Stack
from explorer.tokens import Tokens
from explorer.weighing import WAYS, average, missing, rollout, shares

MASKS: Mapping[str, str] = {
    "own": "its own",
    "causal": "its own and causal",
    "none": "none",
    "window": "its own and a sliding window",
}
SCALES: Mapping[str, str] = {
    "own": "its own",
    "one": "1",
    "root": "1/√d_k",
    "inverse": "1/d_k",
    "times": "its own times a factor",
}
ROLLOUT, AVERAGE = "rollout", "average"
WEIGHED: Mapping[str, str] = {
    **{way.name: way.title for way in WAYS},
    ROLLOUT: "Rollout up to the layer",
    AVERAGE: "Average over heads",
}
ABOUT: Mapping[str, tuple[str, str]] = {
    **{way.name: (way.meaning, way.source) for way in WAYS},
    ROLLOUT: (
        "How much of each input token would be at each position after the layers up to this one, "
        "if they only mixed by weights: all heads averaged, half of each layer passed on as it is.",
        "Abnar and Zuidema 2020, “Quantifying Attention Flow in Transformers”",
    ),
    AVERAGE: (
        "The mean of the weights of several heads. No head need look like it.",
        "the arithmetic mean, head by head",
    ),
}
"""What each way says, in a sentence, and its source."""
MEASURES: Mapping[str, str] = {
    **{way.name: way.title.lower().replace("w_o", "W_O") for way in WAYS},
    "weights": "weight",
    ROLLOUT: "rollout",
    AVERAGE: "mean weight",
}
"""What a cell holds, by the way to weigh: always a share of 1."""

_RULES: Mapping[str, str] = {"one": "1", "root": "1/√d_k", "inverse": "1/d_k"}
_HEAD = re.compile(r"L(\d{1,4})H(\d{1,4})", re.IGNORECASE)


class CannotLookError(ValueError):
    """This map can't be had from this model; the message says why and what would work."""


@dataclass(frozen=True)
class Look:
    """Which map of a stack, and how it is made."""

    layer: int
    head: int
    mask: str = "own"
    """One of MASKS."""
    window: int = 4
    scale: str = "own"
    """One of SCALES."""
    factor: float | int = 1.0
    way: str = "weights"
    """One of WEIGHED."""
    heads: tuple[tuple[int, int], ...] = ()
    """The heads that are averaged; all of the layer where none are named."""

    @property
    def name(self) -> str:
        """The head as people write it, L0H2, or what stands in its place."""
        if self.way == ROLLOUT:
            return f"Rollout to L{self.layer}"
        if self.way == AVERAGE:
            some = ", ".join(f"L{layer}H{head}" for layer, head in self.heads[:3])
            return (
                f"Mean of {some}{' …' if len(self.heads) > 3 else ''}"
                if some
                else (f"Mean of layer {self.layer}")
            )
        return f"L{self.layer}H{self.head}"

    @property
    def changes(self) -> tuple[str, ...]:
        """What is not as the model has it, in words."""
        words = []
        if self.mask != "own":
            size = f" of {self.window}" if self.mask == "window" else ""
            words.append(f"mask: {MASKS[self.mask]}{size}")
        if self.scale == "times":
            words.append(f"scale: {self.factor:g} × its own")
        elif self.scale != "own":
            words.append(f"scale: {SCALES[self.scale]}")
        if self.way in {way.name for way in WAYS} - {"weights"}:
            words.append(f"{WEIGHED[self.way]}, as shares of each row")
        return tuple(words)


@dataclass(frozen=True, eq=False)
class Side:
    """One map to be compared, over its own tokens."""

    weights: Float[Tensor, "query_length key_length"]
    """Shares of 1, whatever the way to weigh."""
    allowed: Bool[Tensor, "query_length key_length"]
    padded: Bool[Tensor, " query_length"]
    queries: Tokens
    keys: Tokens

    @property
    def left_out(self) -> Bool[Tensor, " query_length"]:
        """Queries that mean nothing: padding, and those without any key."""
        return self.padded | ~self.allowed.any(-1)


@torch.no_grad()
def seen(stack: Stack, look: Look) -> Side:
    """The map that one looks at. Raises CannotLookError with the reason where there is none."""
    if stack.read_only and (look.mask, look.scale) != ("own", "own"):
        raise CannotLookError(
            "This model gives its weights alone, so its mask and scale can't be changed. Set both "
            "to “its own”, or choose a model that runs through our attention."
        )
    layers = tuple(_changed(layer, look, stack.key_tokens) for layer in stack.layers)
    changed = dataclasses.replace(stack, layers=layers)
    make = {ROLLOUT: _rollout, AVERAGE: _average}.get(look.way, _one_head)
    weights, allowed = make(changed, look)
    return Side(
        weights.float().cpu(),
        allowed.cpu(),
        stack.padded_queries,
        stack.query_tokens,
        stack.key_tokens,
    )


def named_heads(text: str, stack: Stack, most: int | None = None) -> tuple[tuple[int, int], ...]:
    """The heads that a text such as "L0H2, L3H5" names, each once.

    Raises ValueError, with a sentence, for anything else in it, for a head that is not there and
    for more than `most`.
    """
    found: list[tuple[int, int]] = []
    for part in re.split(r"[\s,;]+", text.strip()):
        if not part:
            continue
        match = _HEAD.fullmatch(part)
        if match is None:
            raise ValueError(f"“{part[:40]}” is no head. Write heads as L0H2, L3H5.")
        layer, head = int(match[1]), int(match[2])
        if layer not in stack.layer_numbers:
            there = stack.layer_numbers
            raise ValueError(
                f"There is no layer {layer} here; the layers are {there[0]} to {there[-1]}."
            )
        n_heads = stack.layer(layer).n_heads
        if head >= n_heads:
            raise ValueError(f"Layer {layer} has no head {head}; its heads are 0 to {n_heads - 1}.")
        if (layer, head) not in found:
            found.append((layer, head))
    if most is not None and len(found) > most:
        raise ValueError(f"{len(found)} heads are named; at most {most} fit.")
    return tuple(found)


def _changed(layer: AnyAttention, look: Look, keys: Tokens) -> AnyAttention:
    """The layer with the chosen mask and scale; a row left without a key becomes zeros."""
    if not isinstance(layer, Attention):
        return layer
    more: dict[str, object] = {}
    if look.mask != "own":
        more["mask"] = _masked(layer.mask, look, keys)
    if look.scale == "times":
        assert layer.scale is not None  # set on construction
        more["scale"] = layer.scale * look.factor
    elif look.scale != "own":
        more["scale"] = SCALE_RULES[_RULES[look.scale]](layer.d_k) / layer.prescale
    return layer.replace(on_masked_row="zero", row_lse=None, **more) if more else layer


def _masked(own: Mask | None, look: Look, keys: Tokens) -> Mask | None:
    if look.mask == "none":
        if not any(keys.padding):
            return None
        return only_keys(~torch.tensor(keys.padding), "padding")
    top = causal() if look.mask == "causal" else sliding_window(look.window)
    return top if own is None else own & top


def _one_head(stack: Stack, look: Look) -> tuple[Tensor, Tensor]:
    layer = stack.layer(look.layer)
    way = next(each for each in WAYS if each.name == look.way)
    why = missing(layer, way)
    if why is not None:
        raise CannotLookError(f"{why} Choose another way to weigh.")
    if isinstance(layer, Attention):
        sizes = way.weigh(layer, [look.head], None)[0]
    else:
        sizes = layer.weights([look.head])[0]
    weights = sizes if way.name == "weights" else shares(sizes)
    return weights, layer.allowed([look.head])[0].expand(weights.shape)


def _average(stack: Stack, look: Look) -> tuple[Tensor, Tensor]:
    whole = [(look.layer, head) for head in range(stack.layer(look.layer).n_heads)]
    heads = list(look.heads) or whole
    weights = average(stack, heads)
    allowed = torch.zeros(weights.shape, dtype=torch.bool, device=weights.device)
    for layer, head in heads:
        allowed = allowed | stack.layer(layer).allowed([head])[0]
    return weights, allowed


def _rollout(stack: Stack, look: Look) -> tuple[Tensor, Tensor]:
    try:
        rolled = rollout(stack, look.layer)
    except ValueError as error:
        sentence = str(error).removeprefix("stack: ")
        raise CannotLookError(
            f"{sentence[0].upper()}{sentence[1:]} Choose another way to weigh."
        ) from error
    return rolled, rolled > 0
