"""What 1/√d_k does in real heads: how far their scores spread, and what softmax makes of a scale.

The assumption behind 1/√d_k (Vaswani et al. 2017, section 3.2.1, footnote 4): the components of
queries and keys are independent with mean 0 and variance 1, so q·k has variance d_k. Here each
head's own queries and keys are measured against it. Queries that are padding, and those with
fewer than two keys, are left out of every number: one key alone has no spread. Variances divide by
the count. Read in blocks of rows, so no n × n table is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer.attention import Attention
from explorer.metrics import MeasuredStack

BLOCK_PAIRS = 1 << 22
"""Pairs of query and key looked at at once, over all heads: 16 MiB in float32."""

NOT_KNOWN = (
    "This model computes attention in its own code and hands out its weights alone. Variances and "
    "other scales need the queries and keys behind them, so they can't be shown for it. Choose a "
    "model that runs through our attention, such as MiniLM."
)


class Scale(NamedTuple):
    """A factor on q·k to compute a head with: what it is called, and how large it is."""

    title: str
    of: Callable[[Attention], float]
    """The whole factor on q·k for a layer."""


SCALES: Mapping[str, Scale] = {
    "own": Scale("its own scale", lambda layer: layer.effective_scale),
    "one": Scale("no scaling", lambda layer: 1.0),
    "root": Scale("1/√d_k", lambda layer: 1 / math.sqrt(layer.d_k)),
    "inverse": Scale("1/d_k", lambda layer: 1 / layer.d_k),
}


def times(factor: int | float) -> Scale:
    """The layer's own scale times a factor: a temperature of 1/factor."""
    return Scale(f"{factor:g} × its own scale", lambda layer: layer.effective_scale * factor)


def rescaled(layer: Attention, scale: Scale) -> Attention:
    """The same layer with another factor on q·k; mask, bias, soft cap and sinks stay."""
    return layer.replace(scale=scale.of(layer) / layer.prescale)


class Block(NamedTuple):
    """Some rows: their places, and which pairs count."""

    rows: slice
    allowed: Bool[Tensor, "#n_heads rows key_length"]
    counted: Bool[Tensor, "#n_heads rows"]


def blocks(
    layer: Attention, padded: Tensor | None, heads: Sequence[int] | None = None
) -> Iterator[Block]:
    """The layer's rows in blocks that are small for all these heads together."""
    n_heads = layer.n_heads if heads is None else len(heads)
    step = max(1, BLOCK_PAIRS // (n_heads * layer.key_length))
    for start in range(0, layer.query_length, step):
        rows = slice(start, min(start + step, layer.query_length))
        allowed = layer.allowed(heads, rows)  # (n_heads or 1, rows, n_k)
        counted = allowed.sum(-1) > 1
        if padded is not None:
            counted = counted & ~padded[rows].to(counted.device)
        yield Block(rows, allowed, counted)


class _RowMoments(NamedTuple):
    """Of each row: how many pairs, their mean, and the sum of squares about it."""

    pairs: Float[Tensor, "n_heads rows"]
    mean: Float[Tensor, "n_heads rows"]
    squares: Float[Tensor, "n_heads rows"]

    @classmethod
    def of(cls, values: Tensor, block: Block) -> _RowMoments:
        allowed = block.allowed.expand(values.shape)
        pairs = allowed.sum(-1)  # (n_heads, rows)
        mean = values.masked_fill(~allowed, 0.0).sum(-1) / pairs.clamp(min=1)
        apart = (values - mean[..., None]).masked_fill_(~allowed, 0.0)
        squares = apart.square_().sum(-1)
        # A row that holds NaN or infinity counts no pairs, as one that is left out.
        counted = block.counted & squares.isfinite()
        parts = (pairs, mean, squares)
        pairs, mean, squares = (part.double().masked_fill(~counted, 0.0).cpu() for part in parts)
        return cls(pairs, mean, squares)

    def scaled(self, factor: int | float) -> _RowMoments:
        """The moments of the same values times a factor."""
        return _RowMoments(self.pairs, self.mean * factor, self.squares * factor**2)

    def summed(self) -> dict[str, Float[Tensor, " n_heads"]]:
        """Mean and variance over all pairs, and the mean over queries of each row's variance."""
        n = self.pairs.sum(-1)  # (n_heads,)
        mean = (self.pairs * self.mean).sum(-1) / n  # 0 / 0 is NaN: no query counted
        between = (self.pairs * (self.mean - mean[:, None]).square()).sum(-1)
        rows = self.squares / self.pairs.clamp(min=1)
        return {
            "mean": mean,
            "variance": (self.squares.sum(-1) + between) / n,
            "row_variance": rows.sum(-1) / (self.pairs > 0).sum(-1),
            "queries": (self.pairs > 0).sum(-1).double(),
        }


def predicted_variance(
    query: Float[Tensor, "*heads n_q d_k"], key: Float[Tensor, "*heads n_k d_k"]
) -> tuple[Float[Tensor, "*heads"], Float[Tensor, "*heads"]]:
    """Variance of q·k if all components were independent, with the means and variances they have.

    Over all pairs Σᵢ (s²_qᵢ + m²_qᵢ)(s²_kᵢ + m²_kᵢ) − m²_qᵢ m²_kᵢ; and for a fixed query, averaged
    over queries, Σᵢ (s²_qᵢ + m²_qᵢ) s²_kᵢ: a mean that all keys share moves all its scores alike.
    """
    q, k = query.double(), key.double()
    q_square = q.square().mean(-2)  # s² + m² of each component, (*heads, d_k)
    k_mean, k_variance = k.mean(-2), k.var(-2, correction=0)
    shared = q.mean(-2).square() * k_mean.square()
    pairs = (q_square * (k_variance + k_mean.square()) - shared).sum(-1)
    return pairs, (q_square * k_variance).sum(-1)


@torch.no_grad()
def layer_variances(
    layer: Attention, padded_queries: Bool[Tensor, " query_length"] | None = None
) -> dict[str, Float[Tensor, " n_heads"]]:
    """Each head's measured variances and what two assumptions predict; names as in COLUMNS.

    The prediction takes each query that counts and each key that one of them may use, once.
    """
    # Without a bias or a soft cap the scores are the dots times the scale: no second look.
    bent = layer.bias is not None or layer.softcap is not None
    dots, scores, queries, keys = [], [], [], []
    for block in blocks(layer, padded_queries):
        # A scale already in the query is taken out again: q·k as the projections give it.
        found = _RowMoments.of(layer.dots(None, block.rows) / layer.prescale, block)
        dots.append(found)
        scores.append(
            _RowMoments.of(layer.scores(None, block.rows), block)
            if bent
            else found.scaled(layer.effective_scale)
        )
        queries.append(block.counted)
        keys.append((block.allowed & block.counted[..., None]).any(-2))
    of_dots, of_scores = (
        _RowMoments(*(torch.cat(parts, -1) for parts in zip(*each, strict=True))).summed()
        for each in (dots, scores)
    )
    used_queries = torch.cat(queries, -1).expand(layer.n_heads, -1)
    used_keys = torch.stack(keys).any(0).expand(layer.n_heads, -1)
    group = layer.n_heads // layer.n_kv_heads
    predicted = [
        predicted_variance(
            layer.query[head][used_queries[head]].cpu() / layer.prescale,
            layer.key[head // group][used_keys[head]].cpu(),
        )
        if bool(used_queries[head].any())
        else (torch.tensor(math.nan),) * 2
        for head in range(layer.n_heads)
    ]
    pairs, rows = (
        torch.stack([part.double() for part in each]) for each in zip(*predicted, strict=True)
    )
    squared = layer.effective_scale**2
    return {
        "dots_mean": of_dots["mean"],
        "dots_variance": of_dots["variance"],
        "dots_row_variance": of_dots["row_variance"],
        "dots_predicted": pairs,
        "dots_row_predicted": rows,
        "scores_mean": of_scores["mean"],
        "scores_variance": of_scores["variance"],
        "scores_row_variance": of_scores["row_variance"],
        "scores_predicted": pairs * squared,
        "scores_row_predicted": rows * squared,
        "queries": of_scores["queries"],
    }


@torch.no_grad()
def layer_softmax(
    layer: Attention,
    scale: Scale,
    padded_queries: Bool[Tensor, " query_length"] | None = None,
) -> dict[str, Float[Tensor, " n_heads"]]:
    """What softmax makes of each head with a scale: the mean over its queries; names in SOFTMAX.

    A sink's share is not among the keys.
    """
    # Rows without a key are left out below, so they need no error.
    other = rescaled(layer, scale).replace(on_masked_row="zero")
    sums = torch.zeros(len(SOFTMAX), layer.n_heads, dtype=torch.float64)
    counts = torch.zeros(layer.n_heads, dtype=torch.float64)
    for block in blocks(layer, padded_queries):
        weights = other.weights(None, block.rows)
        spread = -torch.special.xlogy(weights, weights).sum(-1).double()  # (n_heads, rows)
        largest = weights.amax(-1)
        log_keys = block.allowed.sum(-1).double().log()
        counted = block.counted & spread.isfinite()
        for at, values in enumerate((spread, spread / log_keys, largest, spread.exp())):
            sums[at] += torch.where(counted, values.double(), 0.0).sum(-1).cpu()
        counts += counted.sum(-1).cpu()
    return dict(zip(SOFTMAX, sums / counts, strict=True))


SOFTMAX = ("entropy", "entropy_share", "largest_weight", "effective_keys")


def variance_table(stack: MeasuredStack) -> pd.DataFrame:
    """A row for each layer and head: d_k, scale, and the variances of `layer_variances`.

    Raises ValueError where a layer has weights alone, without queries and keys.
    """
    tables = []
    for number, layer in _layers(stack):
        found = layer_variances(layer, stack.padded_queries)
        sizes = {
            "d_k": layer.d_k,
            "call_scale": layer.scale,
            "scale": layer.effective_scale,
            "dots_assumed": float(layer.d_k),
            "scores_assumed": layer.d_k * layer.effective_scale**2,
        }
        columns = {name: values.numpy() for name, values in found.items()}
        heads = {"layer": number, "head": range(layer.n_heads)}
        tables.append(pd.DataFrame({**heads, **sizes, **columns}))
    return pd.concat(tables, ignore_index=True)


def softmax_table(stack: MeasuredStack, scale: Scale) -> pd.DataFrame:
    """A row for each layer and head: SOFTMAX with this scale, and how large it is there."""
    tables = []
    for number, layer in _layers(stack):
        found = layer_softmax(layer, scale, stack.padded_queries)
        columns = {name: values.numpy() for name, values in found.items()}
        heads = {"layer": number, "head": range(layer.n_heads), "with_scale": scale.of(layer)}
        tables.append(pd.DataFrame({**heads, **columns}))
    return pd.concat(tables, ignore_index=True)


def _layers(stack: MeasuredStack) -> Iterator[tuple[int, Attention]]:
    for number, layer in zip(stack.layer_numbers, stack.layers, strict=True):
        if not isinstance(layer, Attention):
            raise ValueError(NOT_KNOWN)
        yield number, layer
