"""Variances of q·k against theory, and theory against other ways to the same number."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.components import FAMILIES, Components
from explorer.scaling import (
    POWERS,
    SCALED,
    SIZES,
    UNSCALED,
    Scale,
    factor,
    sample,
    score_variance,
    scores,
)

TWELVE = POWERS[:12]
TIED = [
    {},
    {"mean": 0.5},
    {"mean": 2, "variance": 0.25},
    {"variance": 4},
    {"rho": 0.6},
    {"rho": -0.3, "mean": 1},
    {"shared": 0.1},
    {"shared": 0.5, "mean": 0.5, "rho": 0.9, "variance": 2},
]


@pytest.mark.parametrize("tied", TIED, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_measured_variances_lie_within_4_standard_errors_of_theory(
    family: str, tied: dict[str, float]
) -> None:
    table = score_variance(Components(family, **tied), 8000, seed=1, sizes=TWELVE)
    assert table["d_k"].tolist() == list(TWELVE)
    away = (table["measured"] - table["theory"]) / table["standard_error"]
    assert away.abs().max() < 4, table
    error_of_mean = np.sqrt(table["theory"] / 8000)
    assert ((table["mean"] - table["expected_mean"]).abs() < 4 * error_of_mean).all()


@given(
    st.integers(1, 4096),
    st.floats(-3, 3, allow_subnormal=False),
    st.floats(0.1, 4),
    st.sampled_from(sorted(FAMILIES)),
)
def test_independent_components_follow_the_known_formula(
    d_k: int, mean: float, variance: float, family: str
) -> None:
    expected = d_k * ((variance + mean**2) ** 2 - mean**4)
    assert Components(family, mean, variance).variance_dot(d_k) == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 64), st.floats(-2, 2), st.floats(0.1, 4), st.floats(-1, 1), st.floats(0, 1))
@settings(max_examples=50)
def test_normal_components_follow_the_formula_for_quadratic_forms(
    d_k: int, mean: float, variance: float, rho: float, shared: float
) -> None:
    """q·k = xᵀAx for the joint normal x = (q, k): Var = 2·tr(AΣAΣ) + 4·μᵀAΣAμ (Searle 1971)."""
    inner = np.full((d_k, d_k), shared) + (1 - shared) * np.eye(d_k)
    covariance = variance * np.kron(np.array([[1, rho], [rho, 1]]), inner)
    form = np.kron(np.array([[0, 0.5], [0.5, 0]]), np.eye(d_k))
    means = np.full(2 * d_k, mean)
    product_ = form @ covariance
    expected = 2 * np.trace(product_ @ product_) + 4 * means @ product_ @ form @ means
    components = Components("normal", mean, variance, rho, shared)
    assert components.variance_dot(d_k) == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert components.mean_dot(d_k) == pytest.approx(np.trace(product_) + means @ form @ means)


@pytest.mark.parametrize(("rho", "shared", "mean"), list(product((0, 0.5, 1), (0, 0.5, 1), (0, 2))))
def test_signs_follow_the_count_of_all_outcomes(rho: int, shared: float, mean: int) -> None:
    """At d_k = 2 all 2⁶ outcomes of the signs behind q and k are equally likely: no sampling."""
    outcomes = np.array(list(product((-1, 1), repeat=6)), dtype=float)
    a = np.sqrt(shared) * outcomes[:, :1] + np.sqrt(1 - shared) * outcomes[:, 1:3]
    other = np.sqrt(shared) * outcomes[:, 3:4] + np.sqrt(1 - shared) * outcomes[:, 4:]
    b = rho * a + math.sqrt(1 - rho**2) * other
    dots = ((mean + a) * (mean + b)).sum(1)
    components = Components("signs", mean, 1, rho, shared)
    assert components.mean_dot(2) == pytest.approx(dots.mean())
    assert components.variance_dot(2) == pytest.approx(dots.var(), abs=1e-12)


@pytest.mark.parametrize("tied", TIED, ids=str)
def test_softmax_sees_the_variance_over_keys_of_one_query(tied: dict[str, float]) -> None:
    components = Components(**tied)
    drawn = sample(components, 4000, 32, seed=3, sizes=(1, 8, 64))
    per_query = drawn.dots.var(-1, ddof=1)  # (3, 4000)
    error = per_query.std(1) / math.sqrt(per_query.shape[1])
    for place, d_k in enumerate(drawn.sizes):
        expected = components.variance_over_keys(d_k)
        assert abs(per_query[place].mean() - expected) < 4 * error[place]


def test_a_common_mean_cancels_over_keys() -> None:
    # Worked out in PERF-FACTS: at m = 0.5 all pairs have 1.5 d, the keys of one query 1.25 d.
    components = Components(mean=0.5)
    assert components.variance_dot(64) == 96
    assert components.variance_over_keys(64) == 80


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_mean_0_variance_1_and_its_kurtosis(family: str) -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = FAMILIES[family].draw((1_000_000,), generator).double()
    assert drawn.isfinite().all()
    assert abs(drawn.mean()) < 4e-3
    assert drawn.square().mean() == pytest.approx(1, abs=8e-3)
    assert drawn.pow(4).mean() == pytest.approx(FAMILIES[family].kurtosis, rel=0.03)


def test_the_heavy_tails_are_those_of_students_t() -> None:
    scipy = pytest.importorskip("scipy.stats")
    drawn = FAMILIES["student"].draw((100_000,), torch.Generator().manual_seed(0)).numpy()
    assert scipy.kstest(drawn * math.sqrt(9 / 7), scipy.t(9).cdf).pvalue > 0.01


def test_a_smaller_size_takes_the_first_components() -> None:
    components, generator = Components(), torch.Generator().manual_seed(5)
    query, key = components.draw(3, 4, 12, generator)
    drawn = sample(components, 3, 4, seed=5, sizes=(1, 3, 12))
    for place, d_k in enumerate(drawn.sizes):
        dots = (query[:, None, :d_k] * key[..., :d_k]).sum(-1)
        assert np.allclose(drawn.dots[place], dots, atol=1e-5)
        assert np.allclose(drawn.query_norms[place, :, 0], query[:, :d_k].norm(dim=-1))
        assert np.allclose(drawn.key_norms[place], key[..., :d_k].norm(dim=-1))
    assert np.array_equal(drawn.at(3).dots[0], drawn.dots[1])


def test_a_seed_gives_the_same_numbers_again() -> None:
    first, again, other = (score_variance(n_pairs=100, seed=seed) for seed in (7, 7, 8))
    assert first.equals(again)
    assert not first.equals(other)


@given(st.sampled_from(SIZES))
@settings(deadline=None, max_examples=30)
def test_each_scale_is_its_formula(d_k: int) -> None:
    drawn = sample(Components(), 2, 3, seed=0, sizes=(d_k,))
    dots = drawn.dots
    assert np.array_equal(scores(drawn, UNSCALED), dots)
    assert np.allclose(scores(drawn, SCALED), dots / math.sqrt(d_k))
    assert np.allclose(scores(drawn, Scale("linear")), dots / d_k)
    assert np.allclose(scores(drawn, Scale("learned", 0.3)), 0.3 * dots)
    cosine = scores(drawn, Scale("cosine"))
    query, key = Components().draw(2, 3, d_k, torch.Generator().manual_seed(0))
    expected = torch.nn.functional.cosine_similarity(query[:, None], key, dim=-1)
    assert np.allclose(cosine[0], expected, atol=1e-5)
    assert np.abs(cosine).max() <= 1 + 1e-6


@pytest.mark.parametrize(
    ("given_", "word"),
    [
        ({"family": "cauchy"}, "family"),
        ({"variance": 0}, "variance"),
        ({"mean": math.inf}, "mean"),
        ({"rho": 1.1}, "rho"),
        ({"shared": -0.1}, "shared"),
    ],
)
def test_impossible_components_are_refused(given_: dict[str, float], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Components(**given_)


def test_a_sample_is_bounded() -> None:
    with pytest.raises(ValueError, match="at most"):
        sample(Components(), 100_000, 1024, 0)
    with pytest.raises(ValueError, match="sizes"):
        sample(Components(), 1, 1, 0, sizes=(4, 2))
    with pytest.raises(ValueError, match="n_pairs"):
        score_variance(n_pairs=1)
    with pytest.raises(ValueError, match="scale"):
        factor(Scale("cosine"), 4)
