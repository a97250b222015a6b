"""One text through one model, every layer's attention kept: stacks of `Attention` records."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from explorer import given, interface
from explorer.attention import Attention
from explorer.changed_attention import ChangedAttention, changed
from explorer.interface import Call
from explorer.interventions import Intervention
from explorer.model_masks import CannotStandIn
from explorer.models import LoadedModel, ModelError, encode, encode_batch, memory_errors
from explorer.spreading import input_device
from explorer.stacks import (
    AnyAttention,
    GivenWeights,
    Layer,
    Stack,
    layers_at,
    places_of,
    stacks_of,
)
from explorer.tokens import Tokens

__all__ = [
    "AnyAttention",
    "Capture",
    "Difference",
    "GivenWeights",
    "Stack",
    "capture",
    "capture_batch",
    "capture_inputs",
]


class Difference(NamedTuple):
    """How far ours is from the model's own eager attention: the largest of each.

    Infinite where one of the two is not a number.
    """

    weights: float
    """Over all weights of all layers, padded queries left out."""
    output: float
    """Over the model's last hidden state (or logits), padded positions left out."""


@dataclass(frozen=True, eq=False)
class Capture:
    """One text through one model: its stacks, its outputs, and the check against the model."""

    stacks: Mapping[str, Stack]
    tokens: Tokens
    logits: Tensor | None
    """The model's scores where it has a head: (positions, vocabulary), or (classes,)."""
    hidden: Tensor | None
    """The last hidden state, (positions, d_model), where the model gives it."""
    notes: tuple[str, ...] = ()
    hidden_states: tuple[Tensor, ...] = ()
    """What enters each layer and leaves the last, each (positions, d_model); of the decoder where
    there are two. Kept by `changed` only."""
    _run: _Run | None = field(default=None, repr=False)
    _number: int = field(default=0, repr=False)

    @cached_property
    def difference(self) -> Difference | None:
        """Ours against the model's own eager attention, run now; None for read-only stacks."""
        return None if self._run is None else self._run.compare()

    def changed(self, interventions: Sequence[Intervention]) -> Capture:
        """The same text through the same model, with interventions in its attention.

        Nothing of the model is changed: other captures, at the same moment too, don't notice.
        Raises ModelError for read-only stacks, ValueError for an intervention that does not fit.
        """
        if self._run is None:
            raise ModelError(
                "This model computes attention in its own code, so it can be looked at but not "
                "changed. Choose a model that runs through our attention."
            )
        unknown = {each.stack for each in interventions} - set(self.stacks)
        if unknown:
            raise ValueError(
                f"stack: got {', '.join(sorted(unknown))}; there is {', '.join(self.stacks)}."
            )
        return self._run.changed(self._number, interventions)

    def extended(self, more: Tokens, interventions: Sequence[Intervention] = ()) -> Capture:
        """The same text with more tokens at its end; of an encoder–decoder, of what it writes.

        Raises ModelError for read-only stacks, ValueError for an intervention that does not fit.
        """
        if self._run is None:
            raise ModelError("This model's code can't be run on here: it is shown read-only.")
        return self._run.extended(self._number, more).changed(0, interventions)

    @property
    def max_difference(self) -> float | None:
        """The largest difference of a weight from the model's own attention, run on demand."""
        return None if self.difference is None else self.difference.weights


@torch.no_grad()
def capture(
    model: LoadedModel,
    text: str,
    text_pair: str | None = None,
    *,
    target: str | None = None,
    specials_as_text: bool = True,
    truncate: bool = False,
) -> Capture:
    """The attention of one text (or pair) in every layer of a model.

    target is the text that an encoder–decoder writes; without it, its start token only.
    Raises TextError for text that the model can't read, ModelError for a model whose attention
    can't be had, DeviceMemoryError where the device has not enough memory.
    """
    encoded = encode(
        model,
        text,
        text_pair,
        target=target,
        specials_as_text=specials_as_text,
        truncate=truncate,
    )
    return capture_inputs(
        model.model,
        encoded.inputs,
        [encoded.tokens],
        None if encoded.target_tokens is None else [encoded.target_tokens],
        [encoded.notes],
    )[0]


@torch.no_grad()
def capture_batch(
    model: LoadedModel, texts: Sequence[str], padding_side: str | None = None
) -> list[Capture]:
    """Several texts padded to one length and run together; masks and padding tokens kept."""
    encoded = encode_batch(model, texts, padding_side)
    return capture_inputs(
        model.model,
        encoded.inputs,
        encoded.tokens,
        encoded.target_tokens,
        encoded.notes,
    )


@torch.no_grad()
def capture_inputs(
    model: PreTrainedModel,
    inputs: Mapping[str, Tensor],
    tokens: Sequence[Tokens],
    target_tokens: Sequence[Tokens] | None = None,
    notes: Sequence[tuple[str, ...]] | None = None,
) -> list[Capture]:
    """The same for inputs that are tensors already: a capture for each sequence of the batch.

    tokens name the positions of the encoder (or of the only stack), target_tokens those of the
    decoder of an encoder–decoder.
    """
    if any(part.training for part in model.modules()):
        model.train(False)  # dropout would make rows sum to more or less than 1
    ready = {name: tensor.to(input_device(model)) for name, tensor in inputs.items()}
    named = _Named(tokens, target_tokens, notes or [()] * len(tokens))
    with memory_errors():
        outputs, calls = _recorded(model, ready)
        if calls:
            _check(model, calls, len(tokens))
            places = places_of(model, calls)
            layers = layers_at(places, calls)
            run = _Run(model, ready, calls, outputs, places, named)
            return run.captures(layers, outputs)
        interface.use_eager_attention(model)
        outputs, layers = given.given_layers(model, ready)
    return [
        dataclasses.replace(each, notes=(*each.notes, given.NOTE))
        for each in named.captures(model, layers, outputs)
    ]


def _recorded(model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> tuple[Any, list[Call]]:
    """The model's outputs and the calls of our attention in them; none where it can't stand in."""
    if not interface.use_own_attention(model):
        return None, []
    try:
        with interface.recording(model) as recorded:
            return given.forward(model, inputs), recorded.calls
    except CannotStandIn:
        return None, []


def _check(model: PreTrainedModel, calls: Sequence[Call], batch: int) -> None:
    """Raises ModelError where there is not one attention for each text of the batch."""
    if any(len(call.attentions) != batch for call in calls):
        raise ModelError(
            f"{type(model).__name__} cuts its input into parts and attends inside each (as Swin "
            "does in windows), so its weights are no map of all tokens by all tokens. Choose "
            "another model."
        )


def _of(outputs: Any, name: str, number: int) -> Tensor | None:
    tensor = getattr(outputs, name, None)
    return tensor[number] if isinstance(tensor, Tensor) else None


class _Named(NamedTuple):
    """What a reader is told of the sequences of a batch, besides their numbers."""

    tokens: Sequence[Tokens]
    target_tokens: Sequence[Tokens] | None
    notes: Sequence[tuple[str, ...]]

    def captures(
        self, model: PreTrainedModel, layers: Sequence[Layer], outputs: Any
    ) -> list[Capture]:
        """A capture for each sequence."""
        return [
            Capture(
                stacks_of(model, layers, number, self.tokens, self.target_tokens),
                self.tokens[number],
                _of(outputs, "logits", number),
                _of(outputs, "last_hidden_state", number),
                self.notes[number],
                _states_of(outputs, number),
                _number=number,
            )
            for number in range(len(self.tokens))
        ]


def _states_of(outputs: Any, number: int) -> tuple[Tensor, ...]:
    for name in ("decoder_hidden_states", "hidden_states"):
        states = getattr(outputs, name, None)
        if states is not None:
            return tuple(state[number] for state in states)
    return ()


@dataclass(eq=False)
class _Run:
    """What is needed to run the same inputs again: as the model's own attention, or changed."""

    model: PreTrainedModel
    inputs: dict[str, Tensor]
    calls: list[Call]
    outputs: Any
    places: Sequence[tuple[str, int]]
    """Stack and layer of each call."""
    named: _Named
    padded: dict[Attention, Tensor] = field(default_factory=dict)

    def captures(self, layers: Sequence[Layer], outputs: Any) -> list[Capture]:
        """The captures of this run, which can be run again."""
        found = self.named.captures(self.model, layers, outputs)
        self.padded = {
            layer: stack.padded_queries
            for each in found
            for stack in each.stacks.values()
            for layer in stack.layers
            if isinstance(layer, Attention)
        }
        return [dataclasses.replace(each, _run=self) for each in found]

    @torch.no_grad()
    def changed(self, number: int, interventions: Sequence[Intervention]) -> Capture:
        """One sequence of the batch, with interventions."""

        def change(call: int, attention: Attention) -> ChangedAttention | None:
            return changed(attention, self.places[call], interventions)

        with memory_errors(), interface.changing(change), interface.recording(self.model) as seen:
            outputs = given.forward(self.model, self.inputs, output_hidden_states=True)
        layers = layers_at(self.places, seen.calls)
        return self.named.captures(self.model, layers, outputs)[number]

    def extended(self, number: int, more: Tokens) -> _Run:
        """One sequence of the batch with more tokens at its end, not yet run."""
        writes = "decoder_input_ids" in self.inputs
        added = torch.tensor([more.ids], device=input_device(self.model))
        inputs = {}
        for name, tensor in self.inputs.items():
            own = tensor[number : number + 1]
            grows = name.startswith("decoder_") if writes else own.ndim == 2
            if name in ("input_ids", "decoder_input_ids") and grows:
                own = torch.cat([own, added], 1)
            elif grows and name.endswith("attention_mask"):
                own = torch.cat([own, torch.ones_like(added, dtype=own.dtype)], 1)
            elif grows and name.endswith("token_type_ids"):
                own = torch.cat([own, torch.zeros_like(added, dtype=own.dtype)], 1)
            inputs[name] = own
        tokens, targets = self.named.tokens[number], self.named.target_tokens
        if writes and targets is not None:
            named = _Named([tokens], [targets[number] + more], [self.named.notes[number]])
        else:
            named = _Named([tokens + more], None, [self.named.notes[number]])
        return _Run(self.model, inputs, self.calls, self.outputs, self.places, named)

    @torch.no_grad()
    def compare(self) -> Difference:
        """Ours against the model's own eager attention."""
        with memory_errors(), interface.comparing(self.calls, self.padded) as comparison:
            theirs = given.forward(self.model, self.inputs)
        name = "last_hidden_state" if "last_hidden_state" in theirs else "logits"
        if name not in theirs:
            return Difference(comparison.weights_difference, 0.0)
        gap = (theirs[name].float() - self.outputs[name].float()).abs().nan_to_num(math.inf)
        for number, tokens in enumerate(self.named.target_tokens or self.named.tokens):
            if gap.ndim == 3 and gap.shape[1] == len(tokens):
                gap[number, torch.tensor(tokens.padding, dtype=torch.bool)] = 0
        return Difference(comparison.weights_difference, float(gap.max()))
