"""What softmax makes of scores: how few keys it listens to, and how much gradient it lets through.

All in float64: a saturated row's gradient lies far below float32's smallest step from 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
QUANTILES = (0.1, 0.5, 0.9)


def softmax(scores: Numbers) -> Numbers:
    """Weights over the last axis."""
    raised: Numbers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


def entropy(weights: Numbers) -> Numbers:
    """How widely each row spreads its weights, in nats: 0 for one key, log n for n equal ones."""
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)  # 0·log 0 = 0
    return np.asarray(-(weights * logs).sum(-1))


def jacobian_norm(weights: Numbers) -> Numbers:
    """The Frobenius norm of softmax's Jacobian, diag(w) - w·wᵀ, of each row.

    Its square is Σ w_i²(1-w_i)² + Σ_{i≠j} w_i²w_j². Written with the largest weight apart, so that
    nothing cancels where that is almost 1. It is 0 for one key alone.
    """
    ordered = np.sort(weights, axis=-1)
    largest, rest = ordered[..., -1], ordered[..., :-1]
    squares, fourths = (rest**2).sum(-1), (rest**4).sum(-1)
    diagonal = (largest * rest.sum(-1)) ** 2 + (rest**2 * (1 - rest) ** 2).sum(-1)
    others = 2 * largest**2 * squares + np.maximum(squares**2 - fourths, 0)
    return np.asarray(np.sqrt(diagonal + others))


class Saturation(NamedTuple):
    """For each size d_k, over the queries of a sample; bands are the 10 % to 90 % quantiles."""

    deviation: Numbers
    """(n_sizes,): the standard deviation of scores over the keys of a query, root mean square."""
    largest: Numbers
    """(n_sizes,): mean largest weight."""
    entropy: Numbers
    """(n_sizes,): mean entropy in nats."""
    keys: Numbers
    """(3, n_sizes): effective number of keys, exp(entropy), as quantiles."""
    mean_keys: Numbers
    """(n_sizes,): the mean of the same."""
    jacobian: Numbers
    """(3, n_sizes): norm of softmax's Jacobian, as quantiles."""
    mean_jacobian: Numbers
    """(n_sizes,): the mean of the same."""


def saturation(scores: Numbers) -> Saturation:
    """What softmax makes of scores (n_sizes, n_queries, n_keys)."""
    weights = softmax(scores)
    spread = entropy(weights)
    keys, norms = np.exp(spread), jacobian_norm(weights)
    single = scores.shape[-1] == 1
    variance = np.zeros(scores.shape[:2]) if single else scores.var(-1, ddof=1)
    return Saturation(
        np.sqrt(variance.mean(1)),
        weights.max(-1).mean(1),
        spread.mean(1),
        np.quantile(keys, QUANTILES, axis=1),
        keys.mean(1),
        np.quantile(norms, QUANTILES, axis=1),
        norms.mean(1),
    )
