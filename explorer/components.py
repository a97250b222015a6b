"""How the numbers in a query and a key are distributed, and what follows for their dot product.

Each component is m + s·z with z of mean 0 and variance 1. Two correlations may tie them: `rho`
between a query's component and the same one of a key, and `shared` among the components of one
vector. The closed forms are derived where they stand and checked by sampling in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

DEGREES = 9
"""Of Student's t: E[z⁸] is still finite, so a variance has a standard error, correlated or not."""

Draw = Callable[[tuple[int, ...], torch.Generator], Tensor]


class Family(NamedTuple):
    """A symmetric distribution with mean 0 and variance 1."""

    title: str
    kurtosis: float
    """E[z⁴]; 3 for a normal distribution."""
    draw: Draw


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator)


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator).sub_(0.5).mul_(math.sqrt(12))


def _signs(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator).sub_(0.5).sign_().add_(0.5).sign_()


def _student(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Bailey 1994, doi:10.2307/2153537: Box and Muller's method for Student's t."""
    size = torch.rand(shape, generator=generator).neg_().add_(1)  # in (0, 1]
    size.pow_(-2 / DEGREES).sub_(1).mul_(DEGREES - 2).sqrt_()  # the variance is then 1
    angle = torch.rand(shape, generator=generator).mul_(2 * math.pi)
    return size.mul_(angle.cos_())


FAMILIES: dict[str, Family] = {
    "normal": Family("normal", 3.0, _normal),
    "uniform": Family("uniform", 1.8, _uniform),
    "signs": Family("±1", 1.0, _signs),
    "student": Family(
        f"heavy tails (Student t, {DEGREES} degrees)",
        3 * (DEGREES - 2) / (DEGREES - 4),
        _student,
    ),
}


@dataclass(frozen=True)
class Components:
    """The distribution of queries and keys; by itself the one that the argument for 1/√d_k assumes.

    Raises ValueError for a family that is not in FAMILIES, a variance that is not above 0, rho
    outside [-1, 1] and shared outside [0, 1].
    """

    family: str = "normal"
    mean: float | int = 0
    variance: float | int = 1
    rho: float | int = 0
    """Correlation of a query's component with the same component of each of its keys."""
    shared: float | int = 0
    """Correlation of any two components of one vector."""

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"family: got {self.family!r}; one of {list(FAMILIES)} would work.")
        if not (self.variance > 0 and math.isfinite(self.variance + self.mean)):
            raise ValueError(
                f"mean, variance: got {self.mean}, {self.variance}; finite numbers, the variance "
                "above 0, would work."
            )
        if not (-1 <= self.rho <= 1 and 0 <= self.shared <= 1):
            raise ValueError(
                f"rho, shared: got {self.rho}, {self.shared}; rho in [-1, 1] and shared in [0, 1] "
                "would work."
            )

    @property
    def assumed(self) -> bool:
        """Whether they are what the argument assumes: mean 0, variance 1, nothing correlated."""
        return (self.mean, self.variance, self.rho, self.shared) == (0, 1, 0, 0)

    def mean_dot(self, d_k: int) -> float:
        """The mean of q·k: each component adds m² + ρ·s²."""
        return float(d_k * (self.mean**2 + self.rho * self.variance))

    def variance_dot(self, d_k: int) -> float:
        """The variance of q·k over pairs of a query and a key.

        With q = m + s·a and k = m + s·b it is m²s²·Var(Σ(a+b)) + s⁴·Var(Σab): what is of odd order
        in a and b has mean 0. As b = ρ·a + √(1-ρ²)·b' with b' like a, Var(Σab) is
        ρ²·Var(Σa²) + (1-ρ²)·tr(C²), C being the correlations among components. Without
        correlations all this is d((s²+m²)² - m⁴).
        """
        c, kurtosis = self.shared, FAMILIES[self.family].kurtosis
        total, trace = self._total(d_k), d_k + d_k * (d_k - 1) * c**2
        # a = √c·u + √(1-c)·z, so Σa² = c·d·u² + 2√(c(1-c))·u·Σz + (1-c)·Σz², uncorrelated terms.
        squares = (kurtosis - 1) * (c**2 * d_k**2 + (1 - c) ** 2 * d_k) + 4 * c * (1 - c) * d_k
        products = self.rho**2 * squares + (1 - self.rho**2) * trace
        of_means = 2 * (1 + self.rho) * self.mean**2 * self.variance * total
        return float(of_means + self.variance**2 * products)

    def variance_over_keys(self, d_k: int) -> float:
        """The variance over the keys of one query, which is what softmax sees, on average.

        For a given q it is (1-ρ²)·s²·qᵀCq, and E[qqᵀ] = s²C + m²·11ᵀ.
        """
        trace = d_k + d_k * (d_k - 1) * self.shared**2
        inner = self.variance * trace + self.mean**2 * self._total(d_k)
        return float((1 - self.rho**2) * self.variance * inner)

    def _total(self, d_k: int) -> float:
        """Var(Σa): the sum of all correlations among d_k components."""
        return float(d_k + d_k * (d_k - 1) * self.shared)

    def draw(self, n_queries: int, n_keys: int, d_k: int, generator: torch.Generator) -> Pair:
        """Queries, and for each of them keys of its own."""
        query = self._vectors((n_queries, d_k), generator)
        key = self._vectors((n_queries, n_keys, d_k), generator)
        if self.rho:
            key.mul_(math.sqrt(1 - self.rho**2)).add_(query[:, None], alpha=self.rho)
        deviation = math.sqrt(self.variance)
        for vectors in (query, key):
            if self.variance != 1:
                vectors.mul_(deviation)
            if self.mean:
                vectors.add_(self.mean)
        return Pair(query, key)

    def _vectors(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        draw = FAMILIES[self.family].draw
        own = draw(shape, generator)
        if self.shared:
            common = draw((*shape[:-1], 1), generator)
            own.mul_(math.sqrt(1 - self.shared)).add_(common, alpha=math.sqrt(self.shared))
        return own


class Pair(NamedTuple):
    """(n_queries, d_k) and (n_queries, n_keys, d_k)."""

    query: Tensor
    key: Tensor
