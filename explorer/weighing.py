"""Other ways to weigh: not only where a head looks, but how much of what it finds arrives.

All of them are read off the record of a layer. None is the influence on the prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.attention import Attention
from explorer.masks import Positions, positions
from explorer.metrics import MeasuredStack, WeightedLayer

KOBAYASHI = "Kobayashi et al. 2020, “Attention is Not Only a Weight”"
LONGEST_ROLLOUT = 2048
"""Rollout multiplies whole n × n tables, once a layer."""

Map = Float[Tensor, "n_heads rows keys"]


@dataclass(frozen=True)
class Way:
    """A way to weigh: its name, what its numbers are, and where it comes from."""

    name: str
    title: str
    unit: str
    meaning: str
    source: str
    weigh: Callable[[Attention, Positions, Positions], Map]
    needs: str = ""
    """What of the record it reads beyond the weights: "value" or "output_weight"."""


def plain(attention: WeightedLayer, heads: Positions = None, rows: Positions = None) -> Map:
    """The weights themselves, shares of 1."""
    return attention.weights(heads, rows)


@torch.no_grad()
def value_weighted(attention: Attention, heads: Positions = None, rows: Positions = None) -> Map:
    """‖w · v‖: the size of what each key adds to the head's output, before W_O."""
    which = _heads(attention, heads)
    sizes: Tensor = _values(attention, which).norm(dim=-1)  # (h, n_k)
    return attention.weights(which, rows) * sizes[:, None]


@torch.no_grad()
def norm_based(attention: Attention, heads: Positions = None, rows: Positions = None) -> Map:
    """‖w · v W_O‖: the size of what each key adds to the layer's output through one head.

    Raises ValueError where the record has no W_O.
    """
    which = _heads(attention, heads)
    sizes: Tensor = transformed_values(attention, which).norm(dim=-1)  # (h, n_k)
    return attention.weights(which, rows) * sizes[:, None]


@torch.no_grad()
def transformed_values(
    attention: Attention, heads: Positions = None
) -> Float[Tensor, "n_heads key_length d_out"]:
    """Each key's value as it arrives at the layer's output when a head looks at that key alone.

    Summed over keys by weight, and over heads, they are the layer's output without its bias.
    Raises ValueError where the record has no W_O.
    """
    if attention.output_weight is None:
        raise ValueError(
            "output_weight: this layer's W_O is not known (the model joins its heads in another "
            "way, or was read only), so its values can't be followed to the output."
        )
    which = _heads(attention, heads)
    W_O = attention.output_weight.detach()[which]  # (h, d_v, d_out)
    values = _values(attention, which)  # (h, n_k, d_v)
    return values @ W_O.to(values.dtype)


WAYS: tuple[Way, ...] = (
    Way(
        "weights",
        "Weights",
        "share of 1",
        "How a query divides its attention among the keys.",
        "Vaswani et al. 2017, equation 1",
        plain,
    ),
    Way(
        "value_weighted",
        "Weight × value",
        "length of a vector",
        "How much each key adds to the head's output: a large weight on a short value adds little.",
        f"{KOBAYASHI}, without the output projection",
        value_weighted,
        needs="value",
    ),
    Way(
        "norm_based",
        "Weight × value × W_O",
        "length of a vector",
        "How much each key adds to the layer's output through this head, after W_O.",
        f"{KOBAYASHI}, ‖α f(x)‖ without the value's bias told apart",
        norm_based,
        needs="output_weight",
    ),
)


def missing(layer: WeightedLayer, way: Way) -> str | None:
    """Why a layer can't be weighed this way, as a sentence; None where it can."""
    if way.needs and not isinstance(layer, Attention):
        return f"{way.title} needs the values, and this model gives its weights alone."
    if way.needs == "output_weight" and getattr(layer, "output_weight", None) is None:
        return f"{way.title} needs the layer's W_O, which can't be read in this model."
    return None


def shares(sizes: Float[Tensor, "*lead keys"]) -> Float[Tensor, "*lead keys"]:
    """Each row divided by its sum, so that sizes can be compared with weights; zeros stay zeros."""
    total = sizes.sum(-1, keepdim=True)
    return torch.where(total > 0, sizes / total, 0.0)


@torch.no_grad()
def average(
    stack: MeasuredStack, heads: Iterable[tuple[int, int]], rows: Positions = None
) -> Float[Tensor, "rows keys"]:
    """The mean weights of chosen heads, each named by its layer's number and its own.

    Raises ValueError for no heads, KeyError for a layer that is not there.
    """
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)
    if not by_layer:
        raise ValueError("heads: got none; an average needs at least one head.")
    layers = dict(zip(stack.layer_numbers, stack.layers, strict=True))
    total: Tensor | None = None
    for number, chosen in by_layer.items():
        own = layers[number].weights(chosen, rows).sum(0)
        total = own if total is None else total + own.to(total.device)  # layers may be on several
    assert total is not None  # there is at least one head
    return total / sum(map(len, by_layer.values()))


@torch.no_grad()
def rollout(
    stack: MeasuredStack,
    last: int | None = None,
    heads: Sequence[int] | None = None,
    residual: float | int = 0.5,
) -> Float[Tensor, "query_length key_length"]:
    """How much of each input token is in each position after some layers, if only weights mixed.

    Abnar and Zuidema 2020, “Quantifying Attention Flow in Transformers”: the product over layers
    of (1 − residual) · A + residual · I, A the mean over heads. Rows sum to 1: a row that sums to
    less (a sink, no key at all) has its missing share added to the residual. `last` is the number
    of the last layer taken; layers without attention pass everything on.

    Raises ValueError where queries and keys are not the same tokens, for more than
    LONGEST_ROLLOUT of them, for an unknown layer, and for a residual outside [0, 1].
    """
    n_q, n_k = stack.layers[0].query_length, stack.layers[0].key_length
    if stack.name.startswith("cross") or n_q != n_k:
        raise ValueError("stack: rollout follows tokens through layers; queries and keys differ.")
    if n_q > LONGEST_ROLLOUT:
        raise ValueError(f"stack: got {n_q:,} tokens; rollout takes at most {LONGEST_ROLLOUT:,}.")
    if last is not None and last not in stack.layer_numbers:
        raise ValueError(f"last: got {last}, but the layers are {list(stack.layer_numbers)}.")
    if not 0 <= residual <= 1:
        raise ValueError(f"residual: got {residual}; it is a share, from 0 to 1.")
    rolled: Tensor | None = None
    for number, layer in zip(stack.layer_numbers, stack.layers, strict=True):
        if last is not None and number > last:
            break
        mixed = (1 - residual) * layer.weights(heads).double().mean(0)  # (n, n)
        mixed.diagonal().add_(1 - mixed.sum(-1))
        rolled = mixed if rolled is None else mixed @ rolled.to(mixed.device)
    assert rolled is not None  # a stack has at least one layer
    return rolled


def _heads(attention: Attention, heads: Positions) -> Tensor:
    return positions(heads, attention.n_heads, "heads", attention.value.device)


def _values(attention: Attention, which: Tensor) -> Float[Tensor, "n_heads key_length d_v"]:
    """The values that some query heads use, at least in float32."""
    value = attention.value[which // (attention.n_heads // attention.n_kv_heads)]
    return value.to(torch.promote_types(value.dtype, torch.float32))
