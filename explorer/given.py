"""The weights that a model gives of itself, where its code does not let our attention in."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from explorer.models import ModelError
from explorer.spreading import turn
from explorer.stacks import GivenWeights, Layer, depth

NOTE = (
    "This kind of model computes attention in its own code, so these weights are the model's own "
    "and can't be changed here. Scores are not available."
)


def given_layers(model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> tuple[Any, list[Layer]]:
    """The model's outputs, and its layers with their weights, checked for count and shape.

    Raises ModelError where there are none, or none for each pair of tokens.
    """
    name = type(model).__name__
    text = inputs.get("input_ids")
    # Two tokens tell what a long text hides: banded weights have another width than 2, and in a
    # decoder the first token has no weight on the second.
    pair = (
        None
        if text is None
        else _weights(forward(model, _two_tokens(inputs), output_attentions=True))
    )
    outputs = forward(model, inputs, output_attentions=True)
    given = _weights(outputs)
    if not given:
        raise ModelError(
            f"{name} gives no attention weights: it has no attention (like Mamba), or does not "
            "hand it out. Choose another model."
        )
    batch = next(iter(inputs.values())).shape[0]
    layers = []
    for kind, tensors in given.items():
        n_q, n_k = _lengths(kind, inputs, tensors[0])
        for tensor in tensors:
            if tuple(tensor.shape) != (batch, tensor.shape[1], n_q, n_k):
                raise _not_pairs(model, tensor)
        if pair is not None:
            for tensor in pair[kind]:
                if tuple(tensor.shape[2:]) != (2, 2):
                    raise _not_pairs(model, tensor)
        stated = depth(model, kind)
        if stated and len(tensors) != stated:
            raise ModelError(
                f"{name} gives weights for {len(tensors)} of its {stated} layers and does not "
                "say for which, so they can't be shown. Choose another model."
            )
        if kind == "attentions":
            ahead = pair is None or bool((pair[kind][0][0, :, 0, 1] > 0).any())
            kind = "encoder" if ahead else "decoder"
        layers += [
            Layer(kind, number, [GivenWeights(weights) for weights in tensor])
            for number, tensor in enumerate(tensors)
        ]
    return outputs, layers


def forward(model: PreTrainedModel, inputs: Mapping[str, Tensor], **options: bool) -> Any:
    """The model's outputs, with the options that it takes.

    It keeps no keys and values for later tokens, which nobody needs here.
    """
    if hasattr(model.config, "use_cache"):
        options["use_cache"] = False
    parameters = inspect.signature(model.forward).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    taken = {name: on for name, on in options.items() if takes_any or name in parameters}
    with turn(model):
        return model(**inputs, **taken)


def _weights(outputs: Any) -> dict[str, tuple[Tensor, ...]]:
    """The weights in a model's outputs: by kind, a tensor for each layer."""
    names = {
        "encoder": "encoder_attentions",
        "decoder": "decoder_attentions",
        "cross": "cross_attentions",
        "attentions": "attentions",
    }
    found = {kind: getattr(outputs, name, None) for kind, name in names.items()}
    return {kind: tuple(tensors) for kind, tensors in found.items() if tensors}


def _two_tokens(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same kinds of input for two tokens: the first real one, twice."""
    short = {}
    for name, tensor in inputs.items():
        mask = inputs.get("decoder_attention_mask" if "decoder" in name else "attention_mask")
        at = 0 if mask is None else int(mask[0].long().argmax())
        short[name] = tensor[:1, at : at + 1].repeat(1, 2)
    return short


def _lengths(kind: str, inputs: Mapping[str, Tensor], weights: Tensor) -> tuple[int, int]:
    """The number of queries and keys that weights of this kind must have."""
    text, target = inputs.get("input_ids"), inputs.get("decoder_input_ids")
    if text is None:
        side = int(weights.shape[-1])  # an image's patches: only the weights know how many
        return side, side
    source = int(text.shape[1])
    written = source if target is None else int(target.shape[1])
    return (written if kind in ("decoder", "cross") else source), (
        written if kind == "decoder" else source
    )


def _not_pairs(model: PreTrainedModel, tensor: Any) -> ModelError:
    shape = tuple(tensor.shape) if isinstance(tensor, torch.Tensor) else None
    return ModelError(
        f"{type(model).__name__} gives weights of the shape {shape}, not one for each query and "
        "key, so they can't be shown as a map of tokens by tokens. Choose another model."
    )
