"""One cell of attention, every number on its way from two vectors to a weight and an output."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.attention import Attention, scored


@dataclass(frozen=True, eq=False)
class Products:
    """Two vectors, multiplied place by place and summed."""

    first: Float[Tensor, " n"]
    second: Float[Tensor, " n"]
    total: float
    """The sum, as the whole matrix product has it: to rounding, that of the terms and the bias."""
    bias: float | None = None
    """A number added to the sum, where the layer has one."""

    @property
    def terms(self) -> Float[Tensor, " n"]:
        """first × second, place by place."""
        return self.first * self.second


@dataclass(frozen=True)
class Cell:
    """Query `row` on key `key` in one head: each step from q·k to the weight.

    A forbidden key has masked_score and shifted −inf and exponential 0. In a row with no allowed
    key row_max is −inf, row_sum 0 and every weight 0.
    """

    head: int
    row: int
    key: int
    dot: Products
    scale: float
    scaled: float
    """dot × scale."""
    softcap: float | None
    capped: float
    """softcap · tanh(scaled / softcap); scaled itself where there is no cap."""
    bias: float | None
    score: float
    """capped + bias: the score before the mask."""
    allowed: bool
    masked_score: float
    row_max: float
    """The largest masked score of the row, the sink's among them."""
    shifted: float
    """masked_score − row_max, so that no exponential overflows."""
    exponential: float
    row_exponentials: tuple[float, ...]
    """e^(masked score − row_max) of every key."""
    sink: float | None
    """The head's sink: one more score in the row, whose weight goes to no key."""
    sink_exponential: float
    row_sum: float
    """The sum of all exponentials, the sink's among them."""
    weight: float
    masked_row: bool


def cell(attention: Attention, head: int, row: int, key: int) -> Cell:
    """Every number behind one weight. Raises ValueError for a place that is not there."""
    attention.dots([head], [row], [key])  # raises for a place that is not there
    kv_head = head // (attention.n_heads // attention.n_kv_heads)
    query, key_vector = attention.query[head, row].float(), attention.key[kv_head, key].float()
    dot = attention.dots([head], [row])[0, 0, key]
    scores = attention.scores([head], [row])[0, 0]  # (n_k,)
    assert attention.scale is not None  # set on construction
    scaled = dot * attention.scale
    bias = attention.bias
    if bias is not None:
        sizes = zip((head, row, key), bias.shape, strict=True)
        bias = bias[tuple(min(at, size - 1) for at, size in sizes)]  # one of 1 serves all

    allowed = attention.allowed([head], [row])[0, 0]  # (n_k,)
    masked = scores.masked_fill(~allowed, -torch.inf)  # (n_k,)
    sink = None if attention.sinks is None else float(attention.sinks[head])
    masked_row = not bool(allowed.any())
    row_max = max(float(masked.max()), -math.inf if sink is None or masked_row else sink)
    shifted = masked - (0.0 if masked_row else row_max)
    exponentials = shifted.exp()  # (n_k,)
    sink_exponential = 0.0 if sink is None or masked_row else math.exp(sink - row_max)
    weights = attention.replace(on_masked_row="zero").weights([head], [row])[0, 0]
    return Cell(
        head=head,
        row=row,
        key=key,
        dot=Products(query, key_vector, float(dot)),
        scale=attention.scale,
        scaled=float(scaled),
        softcap=attention.softcap,
        capped=float(scored(dot, attention.scale, None, attention.softcap)),
        bias=None if bias is None else float(bias),
        score=float(scores[key]),
        allowed=bool(allowed[key]),
        masked_score=float(masked[key]),
        row_max=row_max,
        shifted=float(shifted[key]),
        exponential=float(exponentials[key]),
        row_exponentials=tuple(exponentials.tolist()),
        sink=sink,
        sink_exponential=sink_exponential,
        row_sum=float(exponentials.sum()) + sink_exponential,
        weight=float(weights[key]),
        masked_row=masked_row,
    )


def output(attention: Attention, head: int, row: int, dimension: int) -> Products:
    """One number of a head's output: each weight of the row times its value, and the sum.

    Raises ValueError for a place that is not there.
    """
    if not 0 <= dimension < attention.d_v:
        raise ValueError(f"dimension: got {dimension}; 0 to {attention.d_v - 1} would work.")
    live = attention.replace(on_masked_row="zero")
    weights = live.weights([head], [row])[0, 0]
    kv_head = head // (attention.n_heads // attention.n_kv_heads)
    values = attention.value[kv_head, :, dimension].to(weights.dtype)
    return Products(weights, values, float(live.output()[head, row, dimension]))


@torch.no_grad()
def projected(x: Tensor, projection: torch.nn.Linear, row: int, column: int) -> Products:
    """One number of x · W: row `row` of x on column `column` of W, and their sum."""
    weight = projection.weight.detach()[column]
    return Products(x[row], weight, float(projection(x)[row, column]))


@torch.no_grad()
def concatenated(attention: Attention) -> Float[Tensor, "query_length all_heads"]:
    """The heads' outputs side by side, head 0 first: n_heads · d_v numbers for each query."""
    heads = attention.replace(on_masked_row="zero").output()  # (h, n_q, d_v)
    return heads.transpose(0, 1).flatten(1)


@torch.no_grad()
def joined(attention: Attention) -> Float[Tensor, "query_length d_out"]:
    """The heads joined: their outputs side by side, times W_O. The record must have a W_O."""
    return attention.replace(on_masked_row="zero").joined()


@torch.no_grad()
def joined_number(attention: Attention, row: int, dimension: int) -> Products:
    """One number of the layer's output: the heads side by side on a column of W_O."""
    W_O, bias = attention.output_weight, attention.output_bias
    if W_O is None:
        raise ValueError("attention: this record has no W_O, so its heads can't be joined.")
    return Products(
        concatenated(attention)[row],
        W_O[:, :, dimension].detach().flatten().float(),
        float(joined(attention)[row, dimension]),
        None if bias is None else float(bias[dimension]),
    )
