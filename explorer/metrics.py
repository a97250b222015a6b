"""Numbers per head: each a function of a block of weights, one number for each head and query.

A head's number is the mean over its queries. Queries that are padding, and rows that the metric
cannot judge (no key at all; for a share, a single key), are left out. Weights are read in blocks
of rows, so a number needs no n × n table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer.masks import Positions

BLOCK_WEIGHTS = 1 << 22
"""Weights looked at at once: 16 MiB in float32."""


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
    def allowed(self, heads: Positions = ..., rows: Positions = ...) -> Tensor: ...


@runtime_checkable
class MeasuredStack(Protocol):
    """What the table reads of a stack."""

    @property
    def name(self) -> str: ...
    @property
    def layers(self) -> Sequence[WeightedLayer]: ...
    @property
    def layer_numbers(self) -> Sequence[int]: ...
    @property
    def padded_queries(self) -> Tensor: ...


class Rows(NamedTuple):
    """Some rows of a layer, as a metric sees them."""

    weights: Float[Tensor, "n_heads rows key_length"]
    allowed: Bool[Tensor, "#n_heads rows key_length"]
    positions: Float[Tensor, " rows"]
    """Each query's own position among the keys; the queries are the last ones."""


@dataclass(frozen=True)
class Metric:
    """A number per head: what it is called, its unit, what it says, and where it comes from."""

    name: str
    title: str
    unit: str
    meaning: str
    source: str
    measure: Callable[[Rows], Float[Tensor, "n_heads rows"]]
    same_sequence: bool = False
    """Whether it needs queries and keys to be the same tokens; cross-attention has no such."""


def entropy(rows: Rows) -> Float[Tensor, "n_heads rows"]:
    """How widely a query spreads its weights, in nats: 0 for one key, log n for n equal ones."""
    spread: Tensor = -torch.special.xlogy(rows.weights, rows.weights).sum(-1)
    return spread


def entropy_share(rows: Rows) -> Float[Tensor, "n_heads rows"]:
    """Entropy as a share of log(keys the query may use); NaN where it may use one only."""
    n_allowed = rows.allowed.sum(-1)  # (n_heads or 1, rows)
    largest = n_allowed.to(rows.weights.dtype).log()
    return torch.where(n_allowed > 1, entropy(rows) / largest, torch.nan)


def distance(rows: Rows) -> Float[Tensor, "n_heads rows"]:
    """How far from itself a query looks, in tokens: |query − key| averaged by weight."""
    keys = torch.arange(rows.weights.shape[-1], device=rows.weights.device)
    return (rows.weights * (rows.positions[:, None] - keys).abs()).sum(-1)


def largest_weight(rows: Rows) -> Float[Tensor, "n_heads rows"]:
    """The query's largest weight, a share of 1."""
    return rows.weights.amax(-1)


def weight_on_first(rows: Rows) -> Float[Tensor, "n_heads rows"]:
    """The weight on the first key, a share of 1."""
    return rows.weights[..., 0]


def weight_on_self(rows: Rows) -> Float[Tensor, "n_heads rows"]:
    """The weight on the query's own position, a share of 1; NaN where it is not among the keys."""
    return _weight_at(rows, 0)


def weight_on_previous(rows: Rows) -> Float[Tensor, "n_heads rows"]:
    """The weight on the position before the query's, a share of 1; NaN for the first query."""
    return _weight_at(rows, -1)


def sink_weight(rows: Rows) -> Float[Tensor, "n_heads rows"]:
    """What a row lacks to 1: the share that a model's sink takes."""
    return 1 - rows.weights.sum(-1)


def _weight_at(rows: Rows, offset: int) -> Tensor:
    """The weight on the key `offset` places from the query, NaN where there is none."""
    key = rows.positions.long() + offset  # (rows,)
    there = (key >= 0) & (key < rows.weights.shape[-1])
    index = key.clamp(0, rows.weights.shape[-1] - 1).expand(rows.weights.shape[0], -1)
    found = rows.weights.gather(-1, index[..., None])[..., 0]
    return torch.where(there, found, torch.nan)


METRICS: tuple[Metric, ...] = (
    Metric(
        "entropy",
        "Entropy",
        "nats",
        "How widely a query spreads its weights: 0 for one key, log n for n equal ones.",
        "Shannon 1948; for heads: Clark et al. 2019, “What Does BERT Look At?”",
        entropy,
    ),
    Metric(
        "entropy_share",
        "Entropy, of its maximum",
        "share of 1",
        "Entropy divided by the log of the number of keys the query may use.",
        "Entropy normalised, so that rows with few keys (causal masks) can be compared.",
        entropy_share,
    ),
    Metric(
        "distance",
        "Distance",
        "tokens",
        "How far away a query looks: |query − key| averaged by weight.",
        "Vig and Belinkov 2019, “Analyzing the Structure of Attention”",
        distance,
        same_sequence=True,
    ),
    Metric(
        "largest_weight",
        "Largest weight",
        "share of 1",
        "The largest weight of a row.",
        "Voita et al. 2019, who call it a head's confidence",
        largest_weight,
    ),
    Metric(
        "first",
        "On the first token",
        "share of 1",
        "The weight on the first key, where many heads put what they don't need.",
        "Xiao et al. 2024, “Efficient Streaming Language Models with Attention Sinks”",
        weight_on_first,
    ),
    Metric(
        "self",
        "On itself",
        "share of 1",
        "The weight on the query's own position.",
        "Clark et al. 2019, “What Does BERT Look At?”",
        weight_on_self,
        same_sequence=True,
    ),
    Metric(
        "previous",
        "On the previous token",
        "share of 1",
        "The weight on the position before the query's own; the first query has none.",
        "Clark et al. 2019; Elhage et al. 2021, previous-token heads",
        weight_on_previous,
        same_sequence=True,
    ),
    Metric(
        "sink",
        "In the sink",
        "share of 1",
        "What the weights lack to 1. Only models with a learned sink, as gpt-oss, have any.",
        "The row sum, by definition",
        sink_weight,
    ),
)


def layer_metrics(
    layer: WeightedLayer,
    padded_queries: Bool[Tensor, " query_length"] | None = None,
    *,
    heads: Sequence[int] | None = None,
    same_sequence: bool = True,
) -> dict[str, Float[Tensor, " heads"]]:
    """Each metric of each head of one layer: the mean over the queries that count.

    NaN where no query counts, and for metrics that need one sequence where there are two.
    """
    n_q, n_k = layer.query_length, layer.key_length
    n_heads = layer.n_heads if heads is None else len(heads)
    used = [metric for metric in METRICS if same_sequence or not metric.same_sequence]
    sums = torch.zeros(len(used), n_heads, dtype=torch.float64)
    counts = torch.zeros(len(used), n_heads, dtype=torch.float64)
    step = max(1, BLOCK_WEIGHTS // (n_heads * n_k))
    for start in range(0, n_q, step):
        rows = slice(start, min(start + step, n_q))
        weights = layer.weights(heads, rows)
        allowed = layer.allowed(heads, rows).to(weights.device)
        places = torch.arange(rows.start, rows.stop, device=weights.device) + (n_k - n_q)
        block = Rows(weights, allowed, places.to(weights.dtype))
        live = allowed.any(-1)  # (n_heads or 1, rows)
        if padded_queries is not None:
            live = live & ~padded_queries[rows].to(weights.device)
        for at, metric in enumerate(used):
            values = metric.measure(block).double()  # (n_heads, rows)
            counted = live & values.isfinite()
            sums[at] += torch.where(counted, values, 0.0).sum(-1).cpu()
            counts[at] += counted.sum(-1).cpu()
    means = sums / counts  # 0 / 0 is NaN: no query counted
    found = {metric.name: means[at] for at, metric in enumerate(used)}
    blank = torch.full((n_heads,), math.nan, dtype=torch.float64)
    return {metric.name: found.get(metric.name, blank) for metric in METRICS}


def head_metrics(stack: MeasuredStack) -> pd.DataFrame:
    """A row for each layer and head, a column for each metric; units in METRICS."""
    tables = []
    for number, layer in zip(stack.layer_numbers, stack.layers, strict=True):
        numbers = layer_metrics(
            layer, stack.padded_queries, same_sequence=not stack.name.startswith("cross")
        )
        columns = {name: values.numpy() for name, values in numbers.items()}
        tables.append(pd.DataFrame({"layer": number, "head": range(layer.n_heads), **columns}))
    return pd.concat(tables, ignore_index=True)
