"""Our attention inside transformers' models: it runs in their forward pass, and is recorded there.

Registered under the name "explorer" with transformers' attention and mask interfaces. The model
hands over q, k, v and a scale; the mask stays a rule, so no n × n mask is made. Who records, and
what, is a context variable: many threads can share one model and never mix.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import (
    bidirectional_mask_function,
    causal_mask_function,
    eager_mask,
    sdpa_mask,
)

from explorer.attention import Attention
from explorer.masks import Mask, causal, custom, sliding_window

NAME = "explorer"


@dataclass
class Call:
    """One attention call of one module, with a record for each sequence of the batch."""

    module: nn.Module
    attentions: list[Attention]


@dataclass
class Recording:
    """The calls of one forward pass, in their order."""

    calls: list[Call] = field(default_factory=list)


@dataclass
class Comparison:
    """The model's own eager attention, compared call by call with what ours recorded."""

    calls: list[Call]
    seen: int = 0
    weights_difference: float = 0.0


_active: ContextVar[Recording | Comparison | None] = ContextVar("explorer_active", default=None)
_switching = threading.Lock()


@contextmanager
def recording() -> Iterator[Recording]:
    """Keeps every attention call that this thread makes inside the block."""
    kept = Recording()
    token = _active.set(kept)
    try:
        yield kept
    finally:
        _active.reset(token)


@contextmanager
def comparing(calls: list[Call]) -> Iterator[Comparison]:
    """Runs the model's own eager attention inside the block, and measures ours against it."""
    comparison = Comparison(calls)
    token = _active.set(comparison)
    try:
        yield comparison
    finally:
        _active.reset(token)


def use_own_attention(model: PreTrainedModel) -> bool:
    """Switches the model to our attention for good; False where its class has its own code for it.

    Outputs do not change: outside a recording our function computes the same attention.
    """
    with _switching:
        config = model.config
        if getattr(config, "_attn_implementation", None) != NAME:
            if not _is_functional(model):
                return False
            model.set_attn_implementation(NAME)
        return bool(config._attn_implementation == NAME)


def _is_functional(model: PreTrainedModel) -> bool:
    """Whether the model's code calls attention through the interface that we register with."""
    source = inspect.getsource(sys.modules[type(model).__module__])
    return "ALL_ATTENTION_FUNCTIONS" in source


@dataclass(frozen=True, eq=False)
class ModelMask:
    """transformers' own mask rule with the padding, for a whole batch, as a rule still."""

    mask_function: Callable[..., Tensor]
    padding: Tensor | None  # (batch, n_k), True for a real key
    query_offset: int
    key_offset: int
    by_index: bool
    everything: dict[str, Any]

    def sequence(self, number: int, query_length: int, key_length: int) -> Mask | None:
        """The mask of one sequence of the batch; None where every query may use every key."""
        shift = int(self.query_offset) - int(self.key_offset)
        base = self._base(number, shift if shift == key_length - query_length else None)
        if self.padding is None:
            return base
        real = self.padding[number].bool()
        keys = real[self.key_offset : self.key_offset + key_length]
        if len(keys) == key_length and bool(keys.all()):
            return base
        padded = Mask("padding", lambda q, k, n_q, n_k: (q >= 0) & keys.to(k.device)[k])
        return padded if base is None else base & padded

    def _base(self, number: int, aligned: int | None) -> Mask | None:
        """The rule without the padding: one of our own where it is the same, else theirs."""
        if self.mask_function is bidirectional_mask_function:
            return None
        if aligned is not None:
            if self.mask_function is causal_mask_function:
                return causal()
            width = _window_of(self.mask_function)
            if width is not None:
                return sliding_window(width)
        return Mask("the model's own mask", partial(self._rule, number))

    def _rule(self, number: int, q: Tensor, k: Tensor, n_q: int, n_k: int) -> Tensor:
        queries, keys = q + self.query_offset, k + self.key_offset
        if self.by_index:
            batch = torch.full((1, 1), number, device=q.device)
            return self.mask_function(batch, torch.zeros_like(batch), queries, keys)
        # Rules given by the model's own code may branch, so each cell is asked for by itself;
        # only transformers' builder knows how, and it makes the whole table.
        table = sdpa_mask(**self.everything | {"allow_is_causal_skip": False})
        assert table is not None
        return table[number, 0].to(q.device)[q, k]


def _window_of(mask_function: Callable[..., Tensor]) -> int | None:
    """The width of transformers' plain causal sliding window; None for any other rule."""
    parts = inspect.getclosurevars(mask_function).nonlocals.get("mask_functions", ())
    if len(parts) != 2 or parts[1] is not causal_mask_function:
        return None
    inside = inspect.getclosurevars(parts[0]).nonlocals
    is_window = parts[0].__qualname__.startswith("sliding_window_overlay.")
    return int(inside["sliding_window"]) if is_window else None


def _mask(**arguments: Any) -> ModelMask | Tensor | None:
    """What transformers calls instead of building its n × n mask."""
    if isinstance(_active.get(), Comparison):
        return eager_mask(**arguments)
    return ModelMask(
        arguments["mask_function"],
        arguments.get("attention_mask"),
        int(arguments.get("q_offset", 0)),
        int(arguments.get("kv_offset", 0)),
        not arguments.get("use_vmap", False),
        arguments,
    )


def _attention(
    module: nn.Module,
    query: Tensor,  # (batch, n_heads, n_q, d_k)
    key: Tensor,  # (batch, n_kv_heads, n_k, d_k)
    value: Tensor,  # (batch, n_kv_heads, n_k, d_v)
    attention_mask: ModelMask | Tensor | None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """What transformers calls instead of its own attention."""
    active = _active.get()
    if isinstance(active, Comparison):
        terms = {"softcap": softcap, "s_aux": s_aux, "position_bias": position_bias}
        others |= {name: term for name, term in terms.items() if term is not None}
        arguments = (query, key, value, attention_mask)
        return _compared(active, module, *arguments, scaling=scaling, **others)
    n_q, n_k = query.shape[2], key.shape[2]
    causal_by_flag = attention_mask is None and n_q > 1 and _flag(module, is_causal)
    outputs, records = [], []
    for number in range(query.shape[0]):
        bias = None if position_bias is None else _sequence(position_bias, number)
        mask: Mask | None
        if isinstance(attention_mask, Tensor):
            mask, bias = _from_tensor(_sequence(attention_mask, number), bias)
        elif attention_mask is None:
            mask = causal() if causal_by_flag else None
        else:
            mask = attention_mask.sequence(number, n_q, n_k)
        record = Attention(
            query[number],
            key[number],
            value[number],
            mask,
            scale=scaling,
            bias=None if bias is None else bias.to(query.dtype),
            softcap=softcap,
            sinks=None if s_aux is None else s_aux.to(query.dtype),
            on_masked_row="zero",
            prescale=_prescale(module, scaling),
        )
        record, output = record.with_row_lse()
        outputs.append(output)
        records.append(record)
    if active is not None:
        active.calls.append(Call(module, records))
    return torch.stack(outputs).transpose(1, 2).contiguous(), None  # (batch, n_q, n_heads, d_v)


def _compared(
    comparison: Comparison, module: nn.Module, *arguments: Any, **others: Any
) -> tuple[Tensor, Tensor]:
    eager = sys.modules[type(module).__module__].eager_attention_forward
    others.setdefault("dropout", 0.0)
    output, weights = eager(module, *arguments, **others)  # weights (batch, n_heads, n_q, n_k)
    call = comparison.calls[comparison.seen]
    comparison.seen += 1
    for number, ours in enumerate(call.attentions):
        live = ~ours.masked_rows()  # (n_heads or 1, n_q)
        gap = (ours.weights() - weights[number].float()).abs().amax(-1) * live
        comparison.weights_difference = max(comparison.weights_difference, float(gap.max()))
    return output, weights


def _flag(module: nn.Module, is_causal: bool | None) -> bool:
    """Whether attention without a mask is causal, by transformers' convention."""
    return bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)


def _sequence(table: Tensor, number: int) -> Tensor:
    """One sequence's part of a tensor whose batch axis may be 1."""
    return table[number if table.shape[0] > 1 else 0]


def _from_tensor(table: Tensor, bias: Tensor | None) -> tuple[Mask | None, Tensor | None]:
    """A written-out mask, (n_heads or 1, n_q, n_k): bool, or added to the scores, with a bias."""
    if table.dtype == torch.bool:
        return custom(table), bias
    allowed = table > torch.finfo(table.dtype).min / 2
    added = table.masked_fill(~allowed, 0.0)
    if bool(added.any()):
        bias = added if bias is None else bias + added
    return (None if bool(allowed.all()) else custom(allowed)), bias


def _prescale(module: nn.Module, scaling: float | None) -> float:
    """The factor that a module puts into its queries before a call with scale 1 (OPT, Whisper)."""
    own = getattr(module, "scaling", None)
    return float(own) if scaling == 1.0 and isinstance(own, float) else 1.0


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, _mask)
