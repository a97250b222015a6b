"""Our attention inside transformers' models: it runs in their forward pass, and is recorded there.

Registered under the name "explorer" with transformers' attention and mask interfaces. The model
hands over q, k, v and a scale; the mask stays a rule, so no n × n mask is made. Who records, and
what, is a context variable: many threads can share one model and never mix.
"""

from __future__ import annotations

import inspect
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from explorer.attention import Attention
from explorer.changed_attention import ChangedAttention
from explorer.masks import Mask, causal, custom
from explorer.model_masks import CannotStandIn, ModelMask
from explorer.output_projection import OutputProjection, OutputWatch

NAME = "explorer"


@dataclass
class Call:
    """One attention call of one module, with a record for each sequence of the batch."""

    module: nn.Module
    attentions: list[Attention | ChangedAttention]


Change = Callable[[int, Attention], ChangedAttention | None]
"""(number of the call in the forward pass, what the model made) -> what to use instead, if so."""


@dataclass
class _Changing:
    """The changes to one forward pass, and how many calls it has made."""

    change: Change
    calls: int = 0


@dataclass
class Recording:
    """The calls of one forward pass, in their order."""

    calls: list[Call] = field(default_factory=list)
    watch: OutputWatch | None = None
    """Finds each layer's W_O; in a model's first recording only, as it costs 5 % of the pass."""


@dataclass
class Comparison:
    """The model's own eager attention, compared call by call with what ours recorded."""

    calls: list[Call]
    padded_queries: Mapping[Attention, Tensor]
    seen: int = 0
    weights_difference: float = 0.0
    """The largest of any weight; infinite where one of the two is not a number."""


_active: ContextVar[Recording | Comparison | None] = ContextVar("explorer_active", default=None)
_changing: ContextVar[_Changing | None] = ContextVar("explorer_changing", default=None)
_switching = threading.Lock()
_with_own_code: WeakSet[PreTrainedModel] = WeakSet()
_output_known: WeakSet[PreTrainedModel] = WeakSet()
_output_of: WeakKeyDictionary[nn.Module, OutputProjection | None] = WeakKeyDictionary()


@contextmanager
def recording(model: PreTrainedModel) -> Iterator[Recording]:
    """Keeps every attention call of this model that this thread makes inside the block."""
    kept = Recording(watch=None if model in _output_known else OutputWatch())
    token = _active.set(kept)
    try:
        with kept.watch or nullcontext():
            yield kept
    finally:
        _active.reset(token)
    if kept.watch is None:  # the records were made with W_O
        if any(call.module not in _output_of for call in kept.calls):
            _output_known.discard(model)  # one had no part in the first pass: look again next time
        return
    for number, call in enumerate(kept.calls):
        # What was fetched for this run alone is not kept: it would fill the device.
        lent = any(each.is_meta for each in call.module.parameters())
        found = _output_of[call.module] = None if lent else kept.watch.found.get(number)
        if found is not None:
            changes = {"output_weight": found.weight, "output_bias": found.bias}
            call.attentions = [each.replace(**changes) for each in call.attentions]
    _output_known.add(model)


@contextmanager
def changing(change: Change) -> Iterator[None]:
    """Lets `change` replace attentions in the one forward pass that this thread makes inside."""
    token = _changing.set(_Changing(change))
    try:
        yield
    finally:
        _changing.reset(token)


@contextmanager
def comparing(
    calls: list[Call], padded_queries: Mapping[Attention, Tensor]
) -> Iterator[Comparison]:
    """Runs the model's own eager attention inside the block, and measures ours against it.

    padded_queries are True for the rows of a record that mean nothing and are left out.
    """
    comparison = Comparison(calls, padded_queries)
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
        if config._attn_implementation == NAME:
            return True
        # The parts count too: a model of two towers has no attention in its own file.
        files = {sys.modules[type(part).__module__] for part in model.modules()}
        uses_interface = any(hasattr(file, "ALL_ATTENTION_FUNCTIONS") for file in files)
        if model in _with_own_code or not uses_interface:
            return False
        model.set_attn_implementation(NAME)
        return bool(config._attn_implementation == NAME)


def use_eager_attention(model: PreTrainedModel) -> None:
    """Switches the model to its own eager attention for good: that alone can tell its weights."""
    with _switching:
        _with_own_code.add(model)
        for part in model.modules():
            if isinstance(part, PreTrainedModel):
                part.config._attn_implementation = "eager"


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
    for name in _further_terms(sys.modules[type(module).__module__]):
        if others.get(name) is not None:
            raise CannotStandIn(f"its attention has a term {name!r}")
    n_q, n_k = query.shape[2], key.shape[2]
    causal_by_flag = attention_mask is None and n_q > 1 and _flag(module, is_causal)
    changes = _changing.get()
    call = 0
    if changes is not None:
        call, changes.calls = changes.calls, changes.calls + 1
    known = None if active is None else _output_of.get(module)
    outputs: list[Tensor] = []
    records: list[Attention | ChangedAttention] = []
    for number in range(query.shape[0]):
        bias = None if position_bias is None else _sequence(position_bias, number)
        mask: Mask | None
        if isinstance(attention_mask, Tensor):
            written = _sequence(attention_mask, number)
            mask, bias = _from_tensor(written.expand(-1, n_q, n_k), bias)
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
            sinks=None if s_aux is None else s_aux.detach().to(query.dtype),
            on_masked_row="zero",
            prescale=_prescale(module, scaling),
            output_weight=None if known is None else known.weight,
            output_bias=None if known is None else known.bias,
        )
        record, output = record.with_row_lse()
        changed = None if changes is None else changes.change(call, record)
        outputs.append(output if changed is None else changed.output(output))
        records.append(record if changed is None else changed)
    joined = torch.stack(outputs).transpose(1, 2).contiguous()  # (batch, n_q, n_heads, d_v)
    if active is not None:
        if active.watch is not None:
            active.watch.expect(len(active.calls), joined)
        active.calls.append(Call(module, records))
    return joined, None


def _compared(
    comparison: Comparison, module: nn.Module, *arguments: Any, **others: Any
) -> tuple[Tensor, Tensor]:
    eager = sys.modules[type(module).__module__].eager_attention_forward
    others.setdefault("dropout", 0.0)
    output, weights = eager(module, *arguments, **others)  # weights (batch, n_heads, n_q, n_k)
    call = comparison.calls[comparison.seen]
    comparison.seen += 1
    for number, ours in enumerate(call.attentions):
        assert isinstance(ours, Attention)  # only runs without interventions are compared
        left_out = ours.masked_rows() | comparison.padded_queries[ours].to(weights.device)
        gap = (ours.weights() - weights[number].float()).abs().amax(-1)  # (n_heads, n_q)
        gap = gap.masked_fill(left_out, 0.0).nan_to_num(math.inf)
        comparison.weights_difference = max(comparison.weights_difference, float(gap.max()))
    return output, weights


@cache
def _further_terms(file: ModuleType) -> frozenset[str]:
    """What a family's own eager attention takes beyond the terms that ours knows.

    A window is known too: the mask has it.
    """
    eager = getattr(file, "eager_attention_forward", None)
    names = () if eager is None else inspect.signature(eager).parameters
    known = inspect.signature(_attention).parameters
    return frozenset(names) - {*known, "dropout", "sliding_window", "kwargs"}


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
