"""One layer's attention over a long text: embeddings without positions, so without an end.

What a model limited to 512 positions can't give for a whole document, its own W_Q, W_K and W_V
can: applied to what enters its layers where no position is added.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from explorer import given, interface
from explorer.attention import Attention
from explorer.encoding import Encoded, encode_tokens, read_whole
from explorer.masks import Mask
from explorer.model_masks import CannotStandIn
from explorer.models import LoadedModel, ModelError, memory_errors
from explorer.multihead import MultiHeadAttention
from explorer.spreading import is_spread
from explorer.tokens import Tokens
from explorer.vectors import token_embeddings

MOST_TOKENS = 32_768
"""The longest text that is taken."""
CHUNK = 512
"""Tokens projected at once: no token knows of another, so the number changes nothing."""
_POSITIONS = re.compile(r"pos|wpe", re.IGNORECASE)
"""What models call their tables of positions: position_embeddings, embed_positions, wpe."""


@torch.no_grad()
def own_heads(
    model: LoadedModel,
    text: str,
    *,
    kind: str = "layer",
    layer: int = 0,
    n_heads: int = 12,
    seed: int = 0,
    mask: Mask | None = None,
    progress: Callable[[float], object] | None = None,
) -> tuple[Tokens, Attention]:
    """The text's tokens without specials, and one layer's attention over all of them.

    "layer": that layer's own trained projections on the model's embeddings without positions,
    which is what layer 0 would see without them. "random": projections of our own with `n_heads`
    heads, drawn from `seed`, on the normalised token embeddings. Every query may use every key
    unless a mask is given. progress(share 0..1) is called on the way, for "layer"; what it raises
    ends the work. Raises TextError for a text that can't be read or is too long,
    ModelError for a layer that can't be had so, ValueError for numbers that do not fit.
    """
    if kind not in ("layer", "random"):
        raise ValueError(f'kind: got "{kind}"; it is "layer" or "random".')
    tokens = text_tokens(model, text, MOST_TOKENS)
    if kind == "layer":
        return tokens, _projected(model, tokens, layer, mask, progress)
    x = token_embeddings(model, Encoded({"input_ids": torch.tensor([tokens.ids])}, tokens))
    if x.shape[1] % n_heads:
        raise ValueError(
            f"n_heads: got {n_heads}, which does not divide the {x.shape[1]} numbers of "
            f"{model.title}'s embeddings."
        )
    own = MultiHeadAttention(x.shape[1], n_heads, seed=seed, device=model.device)
    return tokens, own.attention(x.to(model.device), mask=mask)


def text_tokens(model: LoadedModel, text: str, most: int | None = None) -> Tokens:
    """The tokens that stand for the text itself. Raises TextError, also for more than `most`."""
    tokens = read_whole(model, text, most)
    return tokens.select(at for at, source in enumerate(tokens.sources) if source == 0)


def _projected(
    loaded: LoadedModel,
    tokens: Tokens,
    layer: int,
    mask: Mask | None,
    progress: Callable[[float], object] | None,
) -> Attention:
    """The queries, keys and values of one layer, made piece by piece by the model's own code."""
    alone = _alone(loaded, layer)
    if not interface.use_own_attention(loaded.model):
        raise _refusal(loaded)
    parts: list[Attention] = []
    limit = min(CHUNK, loaded.max_tokens or CHUNK)
    with memory_errors():
        for start in range(0, len(tokens), limit):
            part = tokens.select(range(start, min(start + limit, len(tokens))))
            parts.append(_first_call(loaded, alone, part))
            if progress is not None:
                progress((start + len(part)) / len(tokens))
    first = parts[0]
    query, key, value = (
        torch.cat([getattr(part, name) for part in parts], 1) for name in ("query", "key", "value")
    )
    return Attention(
        query,
        key,
        value,
        mask,
        scale=first.scale,
        softcap=first.softcap,
        sinks=first.sinks,
        on_masked_row="zero",
        prescale=first.prescale,
    )


def _alone(loaded: LoadedModel, layer: int) -> PreTrainedModel:
    """The same model, its weights shared, with one layer as its only layer."""
    n_layers = loaded.n_layers or 1
    if not 0 <= layer < n_layers:
        raise ValueError(f"layer: got {layer}, but {loaded.title} has layers 0 to {n_layers - 1}.")
    if is_spread(loaded.model):
        raise ModelError(
            f"{loaded.title} is spread over several devices, so a layer of it can't be run alone. "
            "Choose our own random heads, or a smaller model."
        )
    lists = (
        name
        for name, part in loaded.model.named_modules()
        if isinstance(part, nn.ModuleList) and len(part) == n_layers
    )
    path = next(lists, None)
    if path is None:  # as in ALBERT, whose layers are one layer run again and again
        return loaded.model
    *parents, name = path.split(".")
    model: PreTrainedModel = _with_own_parts(loaded.model)
    at: Any = model
    for parent in parents:
        at._modules[parent] = _with_own_parts(at._modules[parent])
        at = at._modules[parent]
    at._modules[name] = nn.ModuleList([at._modules[name][layer]])
    return model


def _with_own_parts(module: Any) -> Any:
    """A shallow copy whose parts can be exchanged without the original's changing."""
    copied = copy.copy(module)
    copied._modules = dict(module._modules)
    return copied


class _Taken(Exception):
    """Ends a forward pass once its first attention has what it needs."""

    def __init__(self, attention: Attention) -> None:
        self.attention = attention


class _WithoutPositions(TorchFunctionMode):
    """Looks up zeros in a model's tables of positions, in this thread only."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self._tables = {
            id(part.weight)
            for name, part in model.named_modules()
            if isinstance(part, nn.Embedding) and _POSITIONS.search(name.rpartition(".")[2])
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found = func(*args, **kwargs)
        if func is F.embedding:
            weight = args[1] if len(args) > 1 else kwargs["weight"]
            if id(weight) in self._tables:
                return torch.zeros_like(found)
        return found


def _first_call(loaded: LoadedModel, model: PreTrainedModel, tokens: Tokens) -> Attention:
    """What the first attention of a model is given for some tokens, no positions added."""

    def take(call: int, attention: Attention) -> None:
        raise _Taken(attention)

    inputs = encode_tokens(loaded, tokens).inputs
    if "position_ids" in inspect.signature(model.forward).parameters:
        # Where positions turn the queries and keys (rotary), place 0 leaves them as they are.
        inputs = {**inputs, "position_ids": torch.zeros_like(inputs["input_ids"])}
    ready = {name: tensor.to(loaded.device) for name, tensor in inputs.items()}
    try:
        with interface.changing(take), _WithoutPositions(model):
            given.forward(model, ready)
    except _Taken as taken:
        return taken.attention
    except CannotStandIn as error:
        raise _refusal(loaded) from error
    raise ModelError(f"This layer of {loaded.title} has no attention. Choose another layer.")


def _refusal(loaded: LoadedModel) -> ModelError:
    return ModelError(
        f"{loaded.title} does not let its projections be used alone. Choose our own random heads."
    )
