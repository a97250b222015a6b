"""How far two heads' weights are from each other: for each query, each key, and in all.

Jensen–Shannon divergence: Lin 1991, “Divergence Measures Based on the Shannon Entropy”, in nats.
What a row lacks to 1 (a sink's share, words without a partner) counts as one more key, so that
both rows are whole and nothing is scaled up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

LN2 = math.log(2)
"""The largest Jensen–Shannon divergence: of two rows that share no key."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Two maps of one head each, over the same queries and keys, compared.

    Queries that mean nothing in one of them are NaN in `per_query` and in no mean. A number that
    is not defined (no query left, a constant map's correlation) is NaN.
    """

    per_query: Float[Tensor, " query_length"]
    """Jensen–Shannon divergence of each query's two rows, in nats: 0 for equal, at most ln 2."""
    per_key: Float[Tensor, " key_length"]
    """How much a key's weight differs, |right − left| averaged over the queries."""
    divergence: float
    """The mean of per_query, in nats."""
    cosine: float
    """Of the two maps as vectors: 1 where one is a multiple of the other."""
    correlation: float
    """Pearson's, over the cells that one of the two may use."""
    entropy_left: float
    """The mean entropy of a row, in nats."""
    entropy_right: float
    largest_difference: float
    """The largest |right − left| of any cell."""

    @property
    def entropy_change(self) -> float:
        """How much wider the right looks, in nats: mean entropy right − left."""
        return self.entropy_right - self.entropy_left

    def queries(self, most: int = 5) -> list[int]:
        """The queries that differ most, the largest first; none that are alike or not known."""
        return _largest(self.per_query, most)

    def keys(self, most: int = 5) -> list[int]:
        """The keys that differ most, the largest first; none that are alike."""
        return _largest(self.per_key, most)


def jensen_shannon(
    left: Float[Tensor, "*lead key_length"], right: Float[Tensor, "*lead key_length"]
) -> Float[Tensor, "*lead"]:
    """The divergence of two rows of weights, in nats: symmetric, 0 for equal, at most ln 2.

    ½ Σ p log(p / m) + ½ Σ q log(q / m) with m = (p + q) / 2, and 0 · log 0 = 0. NaN for rows that
    hold a NaN.
    """
    p, q = _whole(left), _whole(right)
    m = (p + q) / 2
    xlogy = torch.special.xlogy
    terms: Tensor = xlogy(p, p) + xlogy(q, q) - 2 * xlogy(m, m)  # each ≥ 0 but for rounding
    return (terms.sum(-1) / 2).clamp(0.0, LN2)


@torch.no_grad()
def compare(
    left: Float[Tensor, "query_length key_length"],
    right: Float[Tensor, "query_length key_length"],
    left_out: Bool[Tensor, " query_length"] | None = None,
    allowed: Bool[Tensor, "query_length key_length"] | None = None,
) -> Compared:
    """Two maps of weights over the same queries and keys.

    left_out are queries that mean nothing, such as padding; rows of zeros (no key) and rows that
    hold a NaN are left out as well. allowed are the cells that the correlation looks at: all,
    unless given.
    """
    p, q = left.double().cpu(), right.double().cpu()
    counted = (p.sum(-1) > 0) & (q.sum(-1) > 0)  # False for NaN as well
    if left_out is not None:
        counted &= ~left_out.cpu()
    per_query = torch.where(counted, jensen_shannon(p, q), torch.nan)
    cells = torch.ones_like(p, dtype=torch.bool) if allowed is None else allowed.cpu()
    ours, theirs, cells = p[counted], q[counted], cells[counted]  # (rows, n_k)
    gap = (theirs - ours).abs()
    nothing = not len(gap)
    return Compared(
        per_query,
        gap.mean(0),
        float(per_query[counted].mean()),
        _cosine(ours.flatten(), theirs.flatten()),
        _correlation(ours[cells], theirs[cells]),
        float(_entropy(ours).mean()),
        float(_entropy(theirs).mean()),
        math.nan if nothing else float(gap.max()),
    )


def _whole(rows: Tensor) -> Tensor:
    """Rows with what they lack to 1 as one more key, in float64."""
    rows = rows.double()
    return torch.cat([rows, (1 - rows.sum(-1, keepdim=True)).clamp(min=0.0)], -1)


def _entropy(rows: Tensor) -> Tensor:
    spread: Tensor = -torch.special.xlogy(rows, rows).sum(-1)
    return spread


def _cosine(left: Tensor, right: Tensor) -> float:
    return float((left @ right) / (left.norm() * right.norm()))  # 0 / 0 is NaN


def _correlation(left: Tensor, right: Tensor) -> float:
    if len(left) < 2 or bool((left == left[0]).all()) or bool((right == right[0]).all()):
        return math.nan  # a constant has no correlation; rounding would give it one
    return _cosine(left - left.mean(), right - right.mean())


def _largest(values: Tensor, most: int) -> list[int]:
    known = values.nan_to_num(0.0)
    order: Int[Tensor, " n"] = torch.argsort(known, descending=True, stable=True)
    return [at for at in order.tolist()[:most] if float(known[at]) > 0]
