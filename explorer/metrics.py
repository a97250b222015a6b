"""Numbers per head, measured in blocks of rows: any length, and no n × n table.

A head's number is the mean over its queries. Queries that are padding, and rows that the metric
cannot judge (no key at all; for a share, a single key), are left out. What each number says stands
in metric_table.py, how it is worked out in row_measures.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer.cores import workers
from explorer.masks import Positions
from explorer.metric_table import BY_NAME, EVERY, METRICS, QUICK, REPEATED, Metric
from explorer.row_measures import (
    ReadTokens,
    Rows,
    TokenMarks,
    entropy,
    largest_weight,
    marks_of,
)

__all__ = [
    "BLOCK_WEIGHTS",
    "EVERY",
    "LARGEST_MAP",
    "METRICS",
    "QUICK",
    "REPEATED",
    "MeasuredStack",
    "Metric",
    "Rows",
    "TokenStack",
    "WeightedLayer",
    "entropy",
    "head_metrics",
    "largest_weight",
    "layer_metrics",
    "marks_of",
]

BLOCK_WEIGHTS = 1 << 22
"""Weights looked at at once: 16 MiB in float32."""
LARGEST_MAP = 512
"""Longest side of a map that is measured as a whole; past it such a number is NaN."""


@runtime_checkable
class WeightedLayer(Protocol):
    """What a metric reads of a layer: an `Attention` record, or a model's own weights."""

    @property
    def n_heads(self) -> int: ...
    @property
    def query_length(self) -> int: ...
    @property
    def key_length(self) -> int: ...
    def weights(
        self, heads: Positions = ..., rows: Positions = ..., keys: Positions = ...
    ) -> Tensor: ...
    def allowed(
        self, heads: Positions = ..., rows: Positions = ..., keys: Positions = ...
    ) -> Tensor: ...


@runtime_checkable
class MeasuredStack(Protocol):
    """What is read of a stack without its tokens."""

    @property
    def name(self) -> str: ...
    @property
    def layers(self) -> Sequence[WeightedLayer]: ...
    @property
    def layer_numbers(self) -> Sequence[int]: ...
    @property
    def padded_queries(self) -> Tensor: ...


@runtime_checkable
class TokenStack(MeasuredStack, Protocol):
    """What the table reads of a stack."""

    @property
    def query_tokens(self) -> ReadTokens: ...
    @property
    def key_tokens(self) -> ReadTokens: ...


@torch.no_grad()
def layer_metrics(
    layer: WeightedLayer,
    padded_queries: Bool[Tensor, " query_length"] | None = None,
    *,
    heads: Sequence[int] | None = None,
    same_sequence: bool = True,
    names: Sequence[str] = QUICK,
    marks: TokenMarks | None = None,
) -> dict[str, Float[Tensor, " heads"]]:
    """The named metrics of each head of one layer: the mean over the queries that count.

    NaN where no query counts, for metrics that need one sequence where there are two, and for
    those that need tokens (`marks`) or scores that are not there. `names` are the quick ones
    unless given; EVERY has all. Raises ValueError for an unknown name.
    """
    chosen = [_named(name) for name in names]
    fitting = [metric for metric in chosen if same_sequence or not metric.same_sequence]
    found = _means(layer, padded_queries, heads, fitting, marks)
    for metric in fitting:
        if metric.of_map is not None:
            found[metric.name] = _of_map(layer, padded_queries, heads, metric)
    n_heads = layer.n_heads if heads is None else len(heads)
    blank = torch.full((n_heads,), math.nan, dtype=torch.float64)
    return {metric.name: found.get(metric.name, blank) for metric in chosen}


def head_metrics(stack: TokenStack, names: Sequence[str] = QUICK) -> pd.DataFrame:
    """A row for each layer and head, a column for each named metric; units in METRICS."""
    marks = marks_of(stack.query_tokens, stack.key_tokens)

    def measured(layer: WeightedLayer) -> dict[str, Tensor]:
        return layer_metrics(
            layer,
            stack.padded_queries,
            same_sequence=not stack.name.startswith("cross"),
            names=names,
            marks=marks,
        )

    tables = []
    # Many small steps: a layer for each core stalls less than cores that share each step.
    found = workers().map(measured, stack.layers)
    for number, layer, numbers in zip(stack.layer_numbers, stack.layers, found, strict=True):
        columns = {name: values.numpy() for name, values in numbers.items()}
        tables.append(pd.DataFrame({"layer": number, "head": range(layer.n_heads), **columns}))
    return pd.concat(tables, ignore_index=True)


def _named(name: str) -> Metric:
    if name not in BY_NAME:
        raise ValueError(f'names: there is no metric "{name}"; there are {", ".join(EVERY)}.')
    return BY_NAME[name]


def _means(
    layer: WeightedLayer,
    padded_queries: Tensor | None,
    heads: Sequence[int] | None,
    metrics: Sequence[Metric],
    marks: TokenMarks | None,
) -> dict[str, Tensor]:
    """The mean over the rows that count, for each metric that looks at one row at a time."""
    used = [(metric, metric.measure) for metric in metrics if metric.measure is not None]
    if not used:
        return {}
    n_q, n_k = layer.query_length, layer.key_length
    n_heads = layer.n_heads if heads is None else len(heads)
    # Read-only layers have weights alone.
    with_scores = any(metric.needs_scores for metric, _ in used) and hasattr(layer, "scores")
    sums = torch.zeros(len(used), n_heads, dtype=torch.float64)
    counts = torch.zeros(len(used), n_heads, dtype=torch.float64)
    step = max(1, BLOCK_WEIGHTS // (n_heads * n_k))
    for start in range(0, n_q, step):
        rows = slice(start, min(start + step, n_q))
        weights = layer.weights(heads, rows)
        allowed = layer.allowed(heads, rows).to(weights.device)
        places = torch.arange(rows.start, rows.stop, device=weights.device) + (n_k - n_q)
        block = Rows(
            weights,
            allowed,
            places.to(weights.dtype),
            None if marks is None else marks.query_codes[rows].to(weights.device),
            marks,
            layer.scores(heads, rows) if with_scores else None,  # type: ignore[attr-defined]
        )
        live = _live(allowed, padded_queries, rows)
        for at, (_, measure) in enumerate(used):
            values = measure(block).double()  # (n_heads, rows)
            counted = live & values.isfinite()
            sums[at] += torch.where(counted, values, 0.0).sum(-1).cpu()
            counts[at] += counted.sum(-1).cpu()
    means = sums / counts  # 0 / 0 is NaN: no query counted
    return {metric.name: means[at] for at, (metric, _) in enumerate(used)}


def _of_map(
    layer: WeightedLayer,
    padded_queries: Tensor | None,
    heads: Sequence[int] | None,
    metric: Metric,
) -> Tensor:
    """A number of the whole map, its rows that don't count set to 0; NaN for a map too large."""
    n_heads = layer.n_heads if heads is None else len(heads)
    found = torch.full((n_heads,), math.nan, dtype=torch.float64)
    if max(layer.query_length, layer.key_length) > LARGEST_MAP:
        return found
    every = slice(0, layer.query_length)
    weights = layer.weights(heads, every)
    live = _live(layer.allowed(heads).to(weights.device), padded_queries, every)
    counted = (live & weights.isfinite().all(-1))[..., None]  # (h, n_q, 1)
    assert metric.of_map is not None  # the caller's choice
    for head, (table, rows) in enumerate(zip(weights, counted, strict=True)):
        if bool(rows.any()):
            found[head] = metric.of_map(torch.where(rows, table, 0.0)[None])[0].cpu()
    return found


def _live(allowed: Tensor, padded_queries: Tensor | None, rows: slice) -> Tensor:
    """True for the rows that mean something, (n_heads or 1, rows)."""
    live = allowed.any(-1)
    if padded_queries is not None:
        live = live & ~padded_queries[rows].to(live.device)
    return live
