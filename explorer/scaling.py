"""What d_k does to q·k: measured on drawn vectors, beside the closed form, for any scale.

The vectors are drawn once at the largest d_k; a smaller d_k takes their first components. So every
d_k costs no more than the largest, and curves over d_k are smooth: the same vectors, grown longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from explorer.components import Components
from explorer.cores import workers

Numbers = npt.NDArray[np.float64]

POWERS = tuple(2**power for power in range(13))
"""1 … 4096."""
SIZES = tuple(sorted({*POWERS, *(3 * power for power in POWERS[:-2])}))
"""The powers of two and the sizes half-way between: 1, 2, 3, 4, 6, 8, 12 … 3072, 4096."""
MOST_PRODUCTS = 2**27
"""Of numbers in one sample's keys: a bound on time. Memory is bounded by CHUNK."""
CHUNK = 2**20
"""Numbers in the keys drawn at a time, where one query's keys are not more."""


class Sample(NamedTuple):
    """Queries with keys of their own, at each size d_k: dot products and lengths."""

    sizes: tuple[int, ...]
    dots: Numbers
    """(n_sizes, n_queries, n_keys)"""
    query_norms: Numbers
    """(n_sizes, n_queries, 1)"""
    key_norms: Numbers
    """(n_sizes, n_queries, n_keys)"""

    def at(self, d_k: int) -> Sample:
        """The same at one size."""
        place = slice(self.sizes.index(d_k), self.sizes.index(d_k) + 1)
        return Sample((d_k,), *(part[place] for part in self[1:]))


def sample(
    components: Components,
    n_queries: int,
    n_keys: int,
    seed: int,
    sizes: Sequence[int] = SIZES,
) -> Sample:
    """Draws queries and keys in chunks and keeps their dot products only.

    Raises ValueError where nothing, or more than MOST_PRODUCTS numbers, would be drawn.
    """
    sizes = tuple(sizes)
    if not sizes or min(sizes) < 1 or list(sizes) != sorted(set(sizes)):
        raise ValueError(f"sizes: got {sizes}; numbers from 1 upward, each once, would work.")
    if n_queries < 1 or n_keys < 1 or n_queries * n_keys * sizes[-1] > MOST_PRODUCTS:
        raise ValueError(
            f"n_queries, n_keys: got {n_queries}, {n_keys} at d_k = {sizes[-1]}; at least 1 of "
            f"each and at most {MOST_PRODUCTS // sizes[-1]:,} keys in all would work."
        )
    return workers().submit(_sample, components, n_queries, n_keys, seed, sizes).result()


def _sample(
    components: Components, n_queries: int, n_keys: int, seed: int, sizes: tuple[int, ...]
) -> Sample:
    generator = torch.Generator().manual_seed(seed)
    rows = max(1, CHUNK // (n_keys * sizes[-1]))
    parts = []
    for start in range(0, n_queries, rows):
        many = min(rows, n_queries - start)
        query, key = components.draw(many, n_keys, sizes[-1], generator)
        query, key_squares = query[:, None], key.square()
        parts.append(
            (
                _sums(key.mul_(query), sizes),
                _sums(query.square(), sizes).sqrt_(),
                _sums(key_squares, sizes).sqrt_(),
            )
        )
    joined = (torch.cat(part, dim=1).numpy() for part in zip(*parts, strict=True))
    return Sample(sizes, *joined)


def _sums(values: Tensor, sizes: Sequence[int]) -> Tensor:
    """Sums over the first 1, 2, 3 … components: (n_sizes, n_queries, n_keys)."""
    starts = (0, *sizes[:-1])
    pieces = [values[..., start:stop].sum(-1) for start, stop in zip(starts, sizes, strict=True)]
    return torch.stack(pieces).double().cumsum(0)


class Scale(NamedTuple):
    """A way from dot products to scores."""

    name: str
    number: float | int = 1
    """What a model would have learned, for "learned" and "cosine"."""


UNSCALED, SCALED = Scale("one"), Scale("root")
SCALES = {
    "one": "1",
    "linear": "1/d_k",
    "root": "1/√d_k",
    "learned": "one learned number",
    "cosine": "cosine (QK-norm)",
}


def scores(drawn: Sample, scale: Scale) -> Numbers:
    """The scores of a sample, (n_sizes, n_queries, n_keys).

    "learned" multiplies q·k by one number whatever d_k; "cosine" multiplies the cosine of q and k
    by it (Henry et al. 2020, Query-Key Normalization). Raises ValueError for other names.
    """
    if scale.name == "cosine":
        lengths = drawn.query_norms * drawn.key_norms
        cosines = drawn.dots / np.maximum(lengths, np.finfo(np.float64).tiny)
        return np.asarray(scale.number * cosines)
    factors = np.array([factor(scale, d_k) for d_k in drawn.sizes])
    return np.asarray(drawn.dots * factors[:, None, None])


def factor(scale: Scale, d_k: int) -> float:
    """By what q·k is multiplied at a size; a cosine has no such number."""
    factors = {"one": 1.0, "linear": 1 / d_k, "root": 1 / math.sqrt(d_k), "learned": scale.number}
    if scale.name not in factors:
        raise ValueError(f"scale: got {scale.name!r}; one of {list(factors)} would work.")
    return float(factors[scale.name])


def score_variance(
    components: Components | None = None,
    n_pairs: int = 2000,
    seed: int = 0,
    sizes: Sequence[int] = SIZES,
) -> pd.DataFrame:
    """The variance of q·k over independent pairs, a row per d_k, beside the closed form.

    Columns: d_k, mean, expected_mean, measured, standard_error, theory; for scores under 1/√d_k
    divide the last three by d_k.
    """
    components = components or Components()
    if n_pairs < 2:
        raise ValueError(f"n_pairs: got {n_pairs}; a variance needs at least 2.")
    return variance_table(components, sample(components, n_pairs, 1, seed, sizes))


def variance_table(components: Components, drawn: Sample) -> pd.DataFrame:
    """`score_variance` of pairs already drawn, one key for each query."""
    dots = drawn.dots[:, :, 0]  # (n_sizes, n_pairs)
    n = dots.shape[1]
    away = dots - dots.mean(1, keepdims=True)
    second, fourth = (away**2).mean(1), (away**4).mean(1)
    return pd.DataFrame(
        {
            "d_k": drawn.sizes,
            "mean": dots.mean(1),
            "expected_mean": [components.mean_dot(d_k) for d_k in drawn.sizes],
            "measured": second * n / (n - 1),
            # Var(S²) = (fourth moment - variance²·(n-3)/(n-1))/n: Cramér 1946, section 27.4.
            "standard_error": np.sqrt((fourth - second**2 * (n - 3) / (n - 1)) / n),
            "theory": [components.variance_dot(d_k) for d_k in drawn.sizes],
        }
    )
