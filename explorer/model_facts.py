"""What a loaded model is: its size, and each layer's attention as a forward pass shows it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from explorer.attention import Attention
from explorer.capture import AnyAttention, Capture, Stack, capture, capture_inputs
from explorer.changed_attention import ChangedAttention
from explorer.models import LoadedModel, ModelError
from explorer.spreading import place_of
from explorer.stacks import GivenWeights
from explorer.tokens import Tokens

TEXT = "The cat sat on the mat."
"""What the model reads, that its layers show themselves; any text shows the same."""
TARGET = "A cat."
"""What an encoder–decoder is made to write to it."""
_FEW_IDS = 6


@dataclass(frozen=True)
class Weights:
    """What the weights take up. A tensor that two parts share is counted once."""

    parameters: int
    bytes: int
    """Of the parameters and the tables beside them (buffers)."""
    dtypes: tuple[str, ...]
    """Number formats of the parameters, the one of most numbers first."""
    devices: tuple[str, ...]
    """Where they are, the device with most numbers first."""


@dataclass(frozen=True)
class LayerFacts:
    """One layer's attention. None where the model does not show it (read-only models)."""

    stack: str
    layer: int
    n_heads: int
    n_kv_heads: int | None
    d_k: int | None
    d_v: int | None
    scale: float | None
    """The whole factor on q·k."""
    prescaled: bool
    """Whether the model puts it into the query before the call."""
    mask: str | None
    """The mask's kind; "none" where every query may use every key."""
    softcap: float | None
    sinks: bool
    bias: bool
    """Whether something is added to the scores: all of the bias being zero counts as none."""
    device: str

    @property
    def kind(self) -> str:
        """How its heads share keys and values."""
        if self.n_kv_heads is None:
            return "unknown"
        if self.n_kv_heads == self.n_heads:
            return "each head its own"
        return "one for all heads" if self.n_kv_heads == 1 else "shared by groups"

    @property
    def rule(self) -> str | None:
        """The scale as a formula of d_k where it is one, else of what it was made from."""
        if self.scale is None or self.d_k is None:
            return None
        if math.isclose(self.scale, 1 / math.sqrt(self.d_k), rel_tol=1e-5):
            return "1/√d_k"
        if self.scale == 1:
            return "1"
        under = 1 / self.scale**2
        if math.isclose(under, round(under), rel_tol=1e-5):
            return f"1/√{round(under)}"
        return f"{self.scale * math.sqrt(self.d_k):.4g} × 1/√d_k"


@dataclass(frozen=True)
class StackFacts:
    """One stack: its layers with attention, and how many there are with those that have none."""

    name: str
    n_layers: int
    layers: tuple[LayerFacts, ...]


@dataclass(frozen=True)
class ModelFacts:
    """What a loaded model is."""

    title: str
    family: str
    """transformers' name of its kind, such as "bert"."""
    class_name: str
    weights: Weights
    stacks: tuple[StackFacts, ...]
    max_tokens: int | None
    """The most tokens it reads at once; None where its positions have no end."""
    read_only: bool

    @property
    def layers(self) -> tuple[LayerFacts, ...]:
        """The layers of all stacks."""
        return tuple(chain.from_iterable(stack.layers for stack in self.stacks))


def weights_of(model: nn.Module) -> Weights:
    """What a model's weights take up, and where."""
    named = list(model.named_parameters())  # each once, however many parts share it
    parameters = [each for _, each in named]
    return Weights(
        sum(each.numel() for each in parameters),
        sum(each.numel() * each.element_size() for each in chain(parameters, model.buffers())),
        _by_size((str(each.dtype).removeprefix("torch."), each.numel()) for each in parameters),
        _by_size((_place(model, name, each), each.numel()) for name, each in named),
    )


def _place(model: nn.Module, name: str, parameter: Tensor) -> str:
    """Where a parameter lies, also one that is fetched only while its part runs."""
    return (place_of(model, name) if parameter.is_meta else None) or str(parameter.device)


def _by_size(named: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    sizes: Counter[str] = Counter()
    for name, size in named:
        sizes[name] += size
    return tuple(name for name, _ in sizes.most_common())


def short_capture(loaded: LoadedModel) -> Capture:
    """A few tokens through the model, also where it has no tokenizer or reads pictures.

    Raises ModelError where its attention can't be had.
    """
    if loaded.reader is not None:
        target = TARGET if loaded.is_encoder_decoder else None
        return capture(loaded, TEXT, target=target, truncate=True)
    inputs = _made_up(loaded)
    tokens = [Tokens.plain([str(n) for n in range(_FEW_IDS)])]
    return capture_inputs(
        loaded.model, inputs, tokens, tokens if loaded.is_encoder_decoder else None
    )[0]


def _made_up(loaded: LoadedModel) -> dict[str, Tensor]:
    """Inputs for a model without a tokenizer: a black picture, or its first ids."""
    config: Any = loaded.model.config
    name = loaded.model.main_input_name
    ids = torch.arange(_FEW_IDS)[None] % (getattr(config, "vocab_size", None) or _FEW_IDS)
    if name == "pixel_values":
        size = getattr(config, "image_size", 224)
        height, width = (size, size) if isinstance(size, int) else size
        channels = getattr(config, "num_channels", 3)
        picture = torch.zeros(1, channels, height, width, dtype=loaded.dtype)
        return {name: picture}
    if name != "input_ids":
        raise ModelError(
            f"{loaded.title} reads neither text nor pictures ({name}), so it can't be run here. "
            "Choose another model."
        )
    inputs = {name: ids, "attention_mask": torch.ones_like(ids)}
    return inputs | ({"decoder_input_ids": ids} if loaded.is_encoder_decoder else {})


def model_facts(loaded: LoadedModel, seen: Capture | None = None) -> ModelFacts:
    """What a model is; `seen` is any text through it, a few tokens by default.

    Raises ModelError where its attention can't be had.
    """
    seen = short_capture(loaded) if seen is None else seen
    return ModelFacts(
        loaded.title,
        str(loaded.model.config.model_type),
        type(loaded.model).__name__,
        weights_of(loaded.model),
        tuple(_stack_facts(stack) for stack in seen.stacks.values()),
        loaded.max_tokens,
        any(stack.read_only for stack in seen.stacks.values()),
    )


def _stack_facts(stack: Stack) -> StackFacts:
    numbered = zip(stack.layer_numbers, stack.layers, strict=True)
    layers = tuple(_layer_facts(stack.name, number, layer) for number, layer in numbered)
    return StackFacts(stack.name, stack.n_layers, layers)


def _layer_facts(stack: str, number: int, layer: AnyAttention) -> LayerFacts:
    if isinstance(layer, ChangedAttention):
        raise ValueError("seen: got a run with interventions; a model's facts need one without.")
    if isinstance(layer, GivenWeights):
        unknown = dict.fromkeys(("n_kv_heads", "d_k", "d_v", "scale", "mask", "softcap"))
        where = str(layer.given.device)
        return LayerFacts(
            stack,
            number,
            layer.n_heads,
            **unknown,
            prescaled=False,
            sinks=False,
            bias=False,
            device=where,
        )
    assert isinstance(layer, Attention)
    return LayerFacts(
        stack,
        number,
        layer.n_heads,
        layer.n_kv_heads,
        layer.d_k,
        layer.d_v,
        layer.effective_scale,
        layer.prescale != 1,
        "none" if layer.mask is None else layer.mask.name,
        layer.softcap,
        layer.sinks is not None,
        layer.bias is not None and bool(layer.bias.any()),  # T5 gives cross-attention zeros
        str(layer.query.device),
    )
