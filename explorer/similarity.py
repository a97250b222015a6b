"""Which heads of a stack look alike: distances between all of them, a map, clusters, neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from torch import Tensor

from explorer.cores import workers
from explorer.metrics import MeasuredStack

BLOCK_WEIGHTS = 1 << 18
"""Weights of all heads looked at at once: 1 MiB in float32, what a core's caches hold."""
TINY = 1e-30
"""Added to each weight, so that no logarithm meets 0; far below what float32 adds to a weight."""

Matrix = Float[np.ndarray, "heads heads"]


@dataclass(frozen=True, eq=False)
class HeadDistances:
    """How far each two heads are from each other."""

    heads: tuple[tuple[int, int], ...]
    """Layer number and head, in the order of the rows."""
    matrix: Matrix
    """From 0 for equal to √ln 2 = 0.83 for heads that never look at the same key; NaN where no
    query counts."""
    queries: int
    """How many queries were looked at."""

    def known(self) -> HeadDistances:
        """The same without heads of which nothing is known (weights that are not numbers)."""
        kept = np.flatnonzero(np.isfinite(self.matrix).sum(1) > min(1, len(self.heads) - 1))
        heads = tuple(self.heads[at] for at in kept)
        return HeadDistances(heads, self.matrix[np.ix_(kept, kept)], self.queries)

    def like(self, layer: int, head: int) -> list[tuple[tuple[int, int], float]]:
        """All other heads with their distance from this one, the most similar first.

        Raises ValueError for a head that is not there.
        """
        if (layer, head) not in self.heads:
            raise ValueError(f"head: L{layer}H{head} is not among these heads.")
        row = self.matrix[self.heads.index((layer, head))]
        order = [int(at) for at in np.argsort(row, kind="stable")]  # NaN comes last
        others = [(self.heads[at], float(row[at])) for at in order]
        return [(name, far) for name, far in others if name != (layer, head) and not np.isnan(far)]


@torch.no_grad()
def head_distances(stack: MeasuredStack, most_queries: int | None = None) -> HeadDistances:
    """The Jensen–Shannon distance of every two heads: √ of the mean divergence of their rows.

    Padded queries and rows that one of the two lacks are left out. With most_queries, at most so
    many queries are looked at, evenly spread; time grows with heads² · queries · keys, memory
    stays that of a block. Lin 1991; for heads: Clark et al. 2019, section 6, with √ so that it
    is a distance in a flat space (Fuglede and Topsøe 2004).
    """
    heads = tuple(
        (number, head)
        for number, layer in zip(stack.layer_numbers, stack.layers, strict=True)
        for head in range(layer.n_heads)
    )
    rows_used = _spread((~stack.padded_queries).nonzero().flatten(), most_queries)
    blocks = _blocks(rows_used, len(heads) * stack.layers[0].key_length)
    sums = torch.zeros(len(heads), len(heads), dtype=torch.float64)
    counts = torch.zeros_like(sums)
    # Many small steps: a block for each core stalls less than cores that share each step.
    for some, number in workers().map(lambda rows: _divergences(*_all_heads(stack, rows)), blocks):
        sums += some
        counts += number
    mean = (sums + sums.T) / (counts + counts.T)  # 0 / 0 is NaN: no query counted
    matrix = mean.clamp(0.0).sqrt().fill_diagonal_(0.0).numpy()
    return HeadDistances(heads, matrix, len(rows_used))


def classical_mds(matrix: Matrix, axes: int = 2) -> tuple[Float[np.ndarray, "heads axes"], float]:
    """Points whose distances are as near to the given ones as a few axes allow.

    And the share of all squared distance that these axes show. Torgerson 1952: the largest
    eigenvectors of the doubly centred squared distances. The sign of an axis is free; here its
    largest coordinate is positive. Raises ValueError for distances that are not numbers.
    """
    _check(matrix)
    n = len(matrix)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ matrix**2 @ centre)
    order = np.argsort(values)[::-1][:axes]
    lengths = np.sqrt(np.clip(values[order], 0, None))
    points = np.zeros((n, axes))
    points[:, : len(order)] = vectors[:, order] * lengths
    # Of coordinates as large as each other the first decides, whatever rounding says.
    largest = np.argmax(np.abs(points) >= np.abs(points).max(0) * (1 - 1e-6), axis=0)
    points *= np.where(points[largest, range(axes)] < 0, -1.0, 1.0)
    total = np.clip(values, 0, None).sum()
    return points, float((lengths**2).sum() / total) if total > 0 else 1.0


def clusters(matrix: Matrix, count: int) -> Int[np.ndarray, " heads"]:
    """A cluster's number for each head, at most `count`, numbered as they first appear.

    Ward 1963: those two clusters are joined that add least to the squared distances within, which
    leaves few heads alone. Raises ValueError for a count below 1 and for distances that are not
    numbers.
    """
    _check(matrix)
    if count < 1:
        raise ValueError(f"count: got {count}; there is at least 1 cluster.")
    if len(matrix) < 2:
        return np.zeros(len(matrix), dtype=int)
    tree = linkage(squareform(matrix, checks=False), "ward")
    found = fcluster(tree, count, "maxclust")
    number: dict[int, int] = {}
    return np.array([number.setdefault(int(each), len(number)) for each in found])


def _check(matrix: Matrix) -> None:
    if not np.isfinite(matrix).all():
        raise ValueError("matrix: some distances are not numbers; leave those heads out first.")


def _spread(rows: Tensor, most: int | None) -> Tensor:
    """At most so many of the rows, evenly spread, the first and the last among them."""
    if most is not None and most < 1:
        raise ValueError(f"most_queries: got {most}; it is at least 1.")
    if most is None or len(rows) <= most:
        return rows
    return rows[torch.linspace(0, len(rows) - 1, most).round().long()]


def _blocks(rows: Tensor, weights_a_row: int) -> Iterator[Tensor]:
    yield from torch.split(rows, max(1, BLOCK_WEIGHTS // weights_a_row))


@torch.no_grad()
def _all_heads(
    stack: MeasuredStack, rows: Tensor
) -> tuple[Float[Tensor, "heads rows keys"], Bool[Tensor, "heads rows"]]:
    """Some rows of every head, and which of them mean something.

    What a row lacks to 1 (a sink's share) is one more key.
    """
    parts: list[Tensor] = []
    lives: list[Tensor] = []
    device = stack.layers[0].weights(rows=rows[:1].tolist()).device
    for layer in stack.layers:
        weights = layer.weights(rows=rows.tolist()).float()  # (h, rows, n_k)
        live = layer.allowed(rows=rows.tolist()).any(-1).to(weights.device)
        weights, live = weights.to(device), live.to(device)  # layers may be on several
        lives.append(live & weights.isfinite().all(-1))
        parts.append(torch.cat([weights, 1 - weights.sum(-1, keepdim=True)], -1))
    weights, live = torch.cat(parts), torch.cat(lives)
    return weights.clamp_(min=0.0).nan_to_num_() + TINY, live


@torch.no_grad()
def _divergences(weights: Tensor, live: Tensor) -> tuple[Tensor, Tensor]:
    """Each pair's divergences summed over the rows that both have, and how many those are.

    Above the diagonal; JS(p, q) = ½ (Σ p log p + Σ q log q − Σ m log m) + log 2 · Σ m / 2 with
    m = p + q.
    """
    own = torch.special.xlogy(weights, weights).sum(-1)  # (heads, rows)
    mass = weights.sum(-1)
    room, logs = torch.empty_like(weights), torch.empty_like(weights)
    sums = weights.new_zeros(len(weights), len(weights), dtype=torch.float64)
    counts = torch.zeros_like(sums)
    for at in range(len(weights) - 1):
        others = slice(at + 1, None)
        m, log = room[: -at - 1], logs[: -at - 1]
        torch.add(weights[others], weights[at], out=m)
        torch.log(m, out=log)
        mixed = log.mul_(m).sum(-1)  # (others, rows)
        total = mass[others] + mass[at]
        rows = (own[others] + own[at] - mixed + math.log(2) * total) / 2
        both = live[others] & live[at]
        sums[at, others] = torch.where(both, rows, 0.0).sum(-1).double()
        counts[at, others] = both.sum(-1).double()
    return sums.cpu(), counts.cpu()


def names(heads: Sequence[tuple[int, int]]) -> list[str]:
    """L5H1 for layer 5, head 1."""
    return [f"L{layer}H{head}" for layer, head in heads]
