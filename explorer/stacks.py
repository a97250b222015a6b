"""Stacks: like layers of one kind, found from the paths of a model's modules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedModel

from explorer.attention import Attention
from explorer.changed_attention import ChangedAttention
from explorer.interface import Call
from explorer.piecewise import PiecewiseAttention
from explorer.tokens import Tokens


@dataclass(frozen=True, eq=False)
class GivenWeights:
    """Weights that a model gave itself, without the queries and keys behind them.

    For models whose code does not let our attention in: to look at, not to change.
    """

    given: Float[Tensor, "n_heads query_length key_length"]

    @property
    def n_heads(self) -> int:
        """Number of heads."""
        return int(self.given.shape[0])

    @property
    def query_length(self) -> int:
        """Number of queries, the rows."""
        return int(self.given.shape[1])

    @property
    def key_length(self) -> int:
        """Number of keys, the columns."""
        return int(self.given.shape[2])

    def weights(self, heads: Any = None, rows: Any = None, keys: Any = None) -> Tensor:
        """The model's own weights for chosen heads, rows and keys: a copy, in float32."""
        every = slice(None)
        chosen = self.given[every if heads is None else heads]
        chosen = chosen[:, every if rows is None else rows]
        chosen = chosen[:, :, every if keys is None else keys]
        return chosen.to(torch.float32, copy=True)

    def allowed(self, heads: Any = None, rows: Any = None, keys: Any = None) -> Tensor:
        """True where some head gives the key any weight: the mask itself is not known."""
        return (self.weights(None, rows, keys) > 0).any(0, keepdim=True)

    def masked_rows(self) -> Tensor:
        """True where a query has no weight at all, (1, n_q)."""
        return ~(self.given > 0).any(0).any(-1)[None]


AnyAttention = Attention | ChangedAttention | GivenWeights
"""What a layer's attention can be: ours, ours with interventions, or given by the model."""

Record = TypeVar("Record", bound=AnyAttention | PiecewiseAttention)


@dataclass(frozen=True, eq=False)
class StackOf(Generic[Record]):
    """Like layers of one kind: "encoder", "decoder" or "cross"."""

    name: str
    query_tokens: Tokens
    key_tokens: Tokens
    layers: tuple[Record, ...]
    layer_numbers: tuple[int, ...]
    """The model's own number of each layer: a hybrid model has attention in some only."""
    n_layers: int
    """How many layers the model has in this stack, those without attention included."""

    @property
    def n_heads(self) -> int:
        """The largest number of heads in a layer."""
        return max(layer.n_heads for layer in self.layers)

    @property
    def padded_queries(self) -> Bool[Tensor, " query_length"]:
        """True for the rows that mean nothing."""
        return torch.tensor(self.query_tokens.padding, dtype=torch.bool)

    def layer(self, number: int) -> Record:
        """The attention of the layer with this number; KeyError names those there are."""
        if number not in self.layer_numbers:
            raise KeyError(f"layer {number} has no attention; these have: {self.layer_numbers}")
        return self.layers[self.layer_numbers.index(number)]


@dataclass(frozen=True, eq=False)
class Stack(StackOf[AnyAttention]):
    """The layers as the model ran through the whole text at once."""

    @property
    def read_only(self) -> bool:
        """True where the weights are the model's own and nothing can be changed."""
        return any(isinstance(layer, GivenWeights) for layer in self.layers)


@dataclass(frozen=True, eq=False)
class PiecewiseStack(StackOf[PiecewiseAttention]):
    """The layers over a whole text, each made of pieces."""


class Layer(NamedTuple):
    """One layer of one kind, with its attention on each sequence of the batch."""

    kind: str
    number: int
    attentions: Sequence[AnyAttention]


def places_of(model: PreTrainedModel, calls: Sequence[Call]) -> list[tuple[str, int]]:
    """Kind and number of each call, from the module's path: its first number is the layer.

    What is left of the path without that number is the same for all layers of one kind.
    """
    paths = {module: path for path, module in model.named_modules()}
    alike: dict[str, list[tuple[int, int]]] = {}  # (call, layer) by what is left of the path
    for at, call in enumerate(calls):
        path = paths[call.module]
        digits = re.search(r"(?<![^.])\d+(?![^.])", path)
        rest = path if digits is None else path[: digits.start()] + "#" + path[digits.end() :]
        alike.setdefault(rest, []).append((at, int(digits[0]) if digits else 0))
    places: dict[int, tuple[str, int]] = {}
    for rest, numbered in alike.items():
        if len({number for _, number in numbered}) < len(numbered):
            # One module run again and again (ALBERT): its layers are its calls.
            numbered = [(at, number) for number, (at, _) in enumerate(numbered)]
        kind = _kind(rest, calls[numbered[0][0]])
        if any((kind, number) in places.values() for _, number in numbered):
            kind = f"{kind} {rest}"  # two unlike attentions in one layer: the path tells them apart
        places |= {at: (kind, number) for at, number in numbered}
    return [places[at] for at in range(len(calls))]


def layers_at(places: Sequence[tuple[str, int]], calls: Sequence[Call]) -> list[Layer]:
    """The calls as layers of the kinds and numbers that `places_of` has found."""
    return [Layer(*place, call.attentions) for place, call in zip(places, calls, strict=True)]


def stacks_of(
    model: PreTrainedModel,
    layers: Sequence[Layer],
    sequence: int,
    tokens: Sequence[Tokens],
    target_tokens: Sequence[Tokens] | None,
) -> dict[str, Stack]:
    """The layers on one sequence of the batch, grouped by kind."""
    stacks: dict[str, Stack] = {}
    for kind in sorted({layer.kind for layer in layers}, key=_order):
        of_kind = sorted((one for one in layers if one.kind == kind), key=lambda one: one.number)
        first = of_kind[0].attentions[sequence]
        source, target = tokens[sequence], (target_tokens or tokens)[sequence]
        query_tokens = source if kind.startswith("encoder") else target
        key_tokens = source if kind.startswith(("encoder", "cross")) else target
        stacks[kind] = Stack(
            kind,
            _sized(query_tokens, first.query_length),
            _sized(key_tokens, first.key_length),
            tuple(layer.attentions[sequence] for layer in of_kind),
            tuple(layer.number for layer in of_kind),
            max(depth(model, kind), of_kind[-1].number + 1),
        )
    return stacks


def depth(model: PreTrainedModel, kind: str) -> int:
    """The number of layers that the configuration states, 0 where it is silent."""
    config = model.config.get_text_config()
    names = ["num_hidden_layers", "n_layer", "n_layers", "num_layers"]
    if model.config.is_encoder_decoder and kind == "encoder":
        names.insert(0, "encoder_layers")
    elif model.config.is_encoder_decoder:
        names = ["decoder_layers", "num_decoder_layers", *names]
    return next((int(getattr(config, name)) for name in names if getattr(config, name, None)), 0)


def _order(kind: str) -> tuple[int, str]:
    known = ("encoder", "decoder", "cross")
    return (known.index(kind) if kind in known else len(known), kind)


_CROSS = re.compile(r"cross|encdec|encoder_attn|enc_dec", re.IGNORECASE)


def _kind(path: str, call: Call) -> str:
    """What people call these layers, from the module's path or, where it is silent, the mask."""
    if _CROSS.search(path):
        return "cross"
    for kind in ("encoder", "decoder"):
        if re.search(rf"(^|\.){kind}(\.|$)", path):
            return kind
    if any(bool(attention.allowed(rows=[0])[..., 1:].any()) for attention in call.attentions):
        return "encoder"  # the first query looks ahead
    # It may still be bidirectional, with no other real token to look at: the module says.
    return "decoder" if getattr(call.module, "is_causal", True) else "encoder"


def _sized(tokens: Tokens, length: int) -> Tokens:
    """The tokens where there is one for each position; plain numbers where there is not."""
    return tokens if len(tokens) == length else Tokens.plain([str(n) for n in range(length)])
