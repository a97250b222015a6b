"""One text through one model, every layer's attention kept: stacks of `Attention` records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedModel

from explorer import interface
from explorer.attention import Attention
from explorer.interface import Call
from explorer.models import LoadedModel, ModelError, encode, encode_batch, memory_errors
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
        """The model's own weights for chosen heads, rows and keys, in float32."""
        every = slice(None)
        chosen = self.given[every if heads is None else heads]
        chosen = chosen[:, every if rows is None else rows]
        return chosen[:, :, every if keys is None else keys].float()

    def allowed(self, heads: Any = None, rows: Any = None, keys: Any = None) -> Tensor:
        """True where some head gives the key any weight: the mask itself is not known."""
        return (self.weights(None, rows, keys) > 0).any(0, keepdim=True)

    def masked_rows(self) -> Tensor:
        """True where a query has no weight at all, (1, n_q)."""
        return ~(self.given > 0).any(0).any(-1)[None]


@dataclass(frozen=True, eq=False)
class Stack:
    """Like layers of one kind: "encoder", "decoder" or "cross"."""

    name: str
    query_tokens: Tokens
    key_tokens: Tokens
    layers: tuple[Attention | GivenWeights, ...]
    layer_numbers: tuple[int, ...]
    """The model's own number of each layer: a hybrid model has attention in some only."""
    n_layers: int
    """How many layers the model has in this stack, those without attention included."""

    @property
    def read_only(self) -> bool:
        """True where the weights are the model's own and nothing can be changed."""
        return any(isinstance(layer, GivenWeights) for layer in self.layers)

    @property
    def n_heads(self) -> int:
        """The largest number of heads in a layer."""
        return max(layer.n_heads for layer in self.layers)

    @property
    def padded_queries(self) -> Bool[Tensor, " query_length"]:
        """True for the rows that mean nothing."""
        return torch.tensor(self.query_tokens.padding, dtype=torch.bool)

    def layer(self, number: int) -> Attention | GivenWeights:
        """The attention of the layer with this number; KeyError names those there are."""
        if number not in self.layer_numbers:
            raise KeyError(f"layer {number} has no attention; these have: {self.layer_numbers}")
        return self.layers[self.layer_numbers.index(number)]


class Difference(NamedTuple):
    """How far ours is from the model's own eager attention: the largest of each."""

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
    _run: _Run | None = field(default=None, repr=False)

    @cached_property
    def difference(self) -> Difference | None:
        """Ours against the model's own eager attention, run now; None for read-only stacks."""
        return None if self._run is None else self._run.compare()

    @property
    def max_difference(self) -> float | None:
        """The largest difference of a weight from the model's own attention, run on demand."""
        return None if self.difference is None else self.difference.weights


@torch.inference_mode()
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


@torch.inference_mode()
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


@torch.inference_mode()
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
    if model.training:
        model.eval()  # dropout would make rows sum to more or less than 1
    ready = {name: tensor.to(model.device) for name, tensor in inputs.items()}
    own = interface.use_own_attention(model)
    with memory_errors():
        if own:
            with interface.recording() as recorded:
                outputs = model(**ready, use_cache=False) if _caches(model) else model(**ready)
            calls = recorded.calls
            if not calls:
                raise ModelError(
                    f"{type(model).__name__} ran without calling any attention, so there is "
                    "nothing to show. Choose a model with attention layers."
                )
        else:
            outputs, calls = _read_only(model, ready)
    stacks = [_stacks(model, calls, n, tokens, target_tokens) for n in range(len(tokens))]
    run = _Run(model, ready, calls, outputs, tokens, target_tokens) if own else None
    extra = () if own else (_READ_ONLY,)
    return [
        Capture(
            stacks[number],
            tokens[number],
            _of(outputs, "logits", number),
            _of(outputs, "last_hidden_state", number),
            (*(notes[number] if notes else ()), *extra),
            run,
        )
        for number in range(len(tokens))
    ]


_READ_ONLY = (
    "This kind of model computes attention in its own code, so these weights are the model's own "
    "and can't be changed here. Scores are not available."
)


def _caches(model: PreTrainedModel) -> bool:
    """Whether the model would keep keys and values for later tokens, which nobody needs here."""
    return hasattr(model.config, "use_cache")


def _of(outputs: Any, name: str, number: int) -> Tensor | None:
    tensor = getattr(outputs, name, None)
    return tensor[number] if isinstance(tensor, Tensor) else None


@dataclass(eq=False)
class _Run:
    """What is needed to run the same inputs again through the model's own attention."""

    model: PreTrainedModel
    inputs: dict[str, Tensor]
    calls: list[Call]
    outputs: Any
    tokens: Sequence[Tokens]
    target_tokens: Sequence[Tokens] | None

    @torch.inference_mode()
    def compare(self) -> Difference:
        with memory_errors(), interface.comparing(self.calls) as comparison:
            arguments = {"use_cache": False} if _caches(self.model) else {}
            theirs = self.model(**self.inputs, **arguments)
        name = "last_hidden_state" if "last_hidden_state" in theirs else "logits"
        if name not in theirs:
            return Difference(comparison.weights_difference, 0.0)
        gap = (theirs[name].float() - self.outputs[name].float()).abs()
        shown = self.tokens if self.target_tokens is None else self.target_tokens
        for number, tokens in enumerate(shown):
            if gap.ndim == 3 and gap.shape[1] == len(tokens):
                gap[number, torch.tensor(tokens.padding, dtype=torch.bool)] = 0
        return Difference(comparison.weights_difference, float(gap.max()))


class _Layer(NamedTuple):
    kind: str
    number: int
    attention: Attention | GivenWeights


_CROSS = re.compile(r"cross|encdec|encoder_attn|enc_dec", re.IGNORECASE)


def _stacks(
    model: PreTrainedModel,
    calls: Sequence[Call] | Mapping[str, Sequence[Tensor]],
    sequence: int,
    tokens: Sequence[Tokens],
    target_tokens: Sequence[Tokens] | None,
) -> dict[str, Stack]:
    """The calls of one sequence, grouped: like layers of one kind are a stack."""
    layers = (
        _given_layers(calls, sequence)
        if isinstance(calls, Mapping)
        else _layers(model, calls, sequence)
    )
    stacks: dict[str, Stack] = {}
    for kind in sorted({layer.kind for layer in layers}, key=_order):
        of_kind = sorted(
            (layer for layer in layers if layer.kind == kind), key=lambda la: la.number
        )
        first = of_kind[0].attention
        source, target = tokens[sequence], (target_tokens or tokens)[sequence]
        query_tokens = source if kind.startswith("encoder") else target
        key_tokens = source if kind.startswith(("encoder", "cross")) else target
        if target_tokens is None:
            query_tokens = key_tokens = source
        stacks[kind] = Stack(
            kind,
            _sized(query_tokens, first.query_length),
            _sized(key_tokens, first.key_length),
            tuple(layer.attention for layer in of_kind),
            tuple(layer.number for layer in of_kind),
            max(_depth(model, kind), of_kind[-1].number + 1),
        )
    return stacks


def _order(kind: str) -> tuple[int, str]:
    known = ("encoder", "decoder", "cross")
    return (known.index(kind) if kind in known else len(known), kind)


def _layers(model: PreTrainedModel, calls: Sequence[Call], sequence: int) -> list[_Layer]:
    """Kind and number of each call, from the module's path: its first number is the layer.

    What is left of the path without that number is the same for all layers of one kind.
    """
    paths = {module: path for path, module in model.named_modules()}
    found: dict[str, list[tuple[int, Call]]] = {}
    for call in calls:
        path = paths[call.module]
        digits = re.search(r"(?<![^.])\d+(?![^.])", path)
        rest = path if digits is None else path[: digits.start()] + "#" + path[digits.end() :]
        found.setdefault(rest, []).append((int(digits[0]) if digits else 0, call))
    layers: list[_Layer] = []
    names: dict[str, str] = {}
    for rest, numbered in found.items():
        if len({number for number, _ in numbered}) < len(numbered):
            # One module run again and again (ALBERT): its layers are its calls.
            numbered = [(at, call) for at, (_, call) in enumerate(numbered)]
        kind = names.setdefault(rest, _kind(rest, numbered[0][1].attentions[sequence]))
        taken = {layer.number for layer in layers if layer.kind == kind}
        if taken & {number for number, _ in numbered}:
            kind = f"{kind} {rest}"  # two unlike attentions in one layer: the path tells them apart
        layers += [_Layer(kind, number, call.attentions[sequence]) for number, call in numbered]
    return layers


def _kind(path: str, attention: Attention) -> str:
    """What people call these layers, from the module's path or, where it is silent, the mask."""
    if _CROSS.search(path):
        return "cross"
    for kind in ("encoder", "decoder"):
        if re.search(rf"(^|\.){kind}(\.|$)", path):
            return kind
    later_key_forbidden = not bool(attention.allowed(rows=[0])[..., -1].any())
    return "decoder" if attention.key_length > 1 and later_key_forbidden else "encoder"


def _depth(model: PreTrainedModel, kind: str) -> int:
    """The number of layers that the configuration states, 0 where it is silent."""
    config = model.config.get_text_config()
    names = ["num_hidden_layers", "n_layer", "n_layers", "num_layers"]
    if model.config.is_encoder_decoder and kind == "encoder":
        names.insert(0, "encoder_layers")
    elif model.config.is_encoder_decoder:
        names = ["decoder_layers", "num_decoder_layers", *names]
    return next((int(getattr(config, name)) for name in names if getattr(config, name, None)), 0)


def _sized(tokens: Tokens, length: int) -> Tokens:
    """The tokens where there is one for each position; plain numbers where there is not."""
    return tokens if len(tokens) == length else Tokens.plain([str(n) for n in range(length)])


def _read_only(
    model: PreTrainedModel, inputs: dict[str, Tensor]
) -> tuple[Any, dict[str, Sequence[Tensor]]]:
    """The weights a model gives of itself, checked for count and shape."""
    if getattr(model.config, "_attn_implementation", None) not in (None, "eager"):
        raise ModelError(
            f"{type(model).__name__} does not hand out its attention weights in the way it was "
            "loaded. Load it with eager attention."
        )
    outputs = model(**inputs, output_attentions=True)
    given = {
        "encoder": getattr(outputs, "encoder_attentions", None),
        "decoder": getattr(outputs, "decoder_attentions", None),
        "cross": getattr(outputs, "cross_attentions", None),
    }
    own = getattr(outputs, "attentions", None)
    if own:
        kind = "encoder" if bool((own[0][0, :, 0, 1:] > 0).any()) else "decoder"
        given[kind] = own
    kept = {kind: tensors for kind, tensors in given.items() if tensors}
    length = next(iter(inputs.values())).shape[1]
    for kind, tensors in kept.items():
        for tensor in tensors:
            square = tensor is not None and tensor.ndim == 4
            if not square or (kind != "cross" and tensor.shape[2] != tensor.shape[3]):
                shape = None if tensor is None else tuple(tensor.shape)
                raise ModelError(
                    f"{type(model).__name__} gives weights of the shape {shape}, not one for each "
                    "query and key, so they can't be shown as a map of tokens by tokens."
                )
    if not kept or ("encoder" in kept and kept["encoder"][0].shape[2] < length):
        raise ModelError(
            f"{type(model).__name__} gives no attention weights. It may have no attention "
            "(as Mamba), or a kind without a weight for each pair of tokens."
        )
    return outputs, kept


def _given_layers(given: Mapping[str, Sequence[Tensor]], sequence: int) -> list[_Layer]:
    return [
        _Layer(kind, number, GivenWeights(tensor[sequence]))
        for kind, tensors in given.items()
        for number, tensor in enumerate(tensors)
    ]
