"""What softmax makes of scores, and the gradient it lets through, against autograd and torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd.functional import jacobian

from explorer.components import Components
from explorer.layer_gradients import layer_gradients
from explorer.multihead import MultiHeadAttention
from explorer.saturation import Saturation, entropy, jacobian_norm, saturation, softmax
from explorer.scaling import SCALED, SIZES, UNSCALED, Scale, sample, scores

rows = st.lists(st.floats(-30, 30), min_size=1, max_size=8)


@given(rows)
def test_weights_are_torchs_softmax(row: list[float]) -> None:
    expected = torch.softmax(torch.tensor(row, dtype=torch.float64), 0)
    assert np.allclose(softmax(np.array(row)), expected, rtol=1e-12, atol=1e-300)


@given(rows)
def test_the_jacobians_norm_is_that_of_autograds_jacobian(row: list[float]) -> None:
    values = torch.tensor(row, dtype=torch.float64)
    found = jacobian(lambda x: torch.softmax(x, 0), values)
    norm = float(torch.linalg.matrix_norm(found))
    assert jacobian_norm(softmax(np.array(row))) == pytest.approx(norm, rel=1e-6, abs=1e-12)


def test_the_jacobians_norm_of_two_keys_is_worked_by_hand() -> None:
    # ¼ and ¾: every entry is ± ¼·¾ = 3/16, and four of them have the norm 2·3/16.
    assert jacobian_norm(np.array([0.25, 0.75])) == pytest.approx(3 / 8)


def test_the_jacobians_norm_is_exact_where_a_weight_is_almost_1() -> None:
    # Two keys, a score of 60 apart: the norm is 2·w(1-w), far below float64's step from 1.
    assert jacobian_norm(softmax(np.array([0.0, 60.0]))) == pytest.approx(2 * math.exp(-60))


def test_entropy_is_log_n_for_equal_keys_and_0_for_one() -> None:
    assert entropy(np.full(8, 1 / 8)) == pytest.approx(math.log(8))
    assert entropy(np.array([1.0, 0, 0])) == 0


def test_scores_that_shrink_make_all_keys_equal_and_scores_that_grow_one() -> None:
    drawn = sample(Components(), 64, 16, seed=0)
    flat = saturation(scores(drawn, Scale("linear")))
    sharp = saturation(scores(drawn, Scale("learned", 1000)))
    assert flat.mean_keys[-1] == pytest.approx(16, rel=1e-3)
    assert sharp.mean_keys[-1] == pytest.approx(1, abs=0.01)
    assert (np.diff(flat.mean_keys[4:]) > 0).all()


@pytest.fixture(scope="module")
def sixteen() -> dict[str, Saturation]:
    drawn = sample(Components(), 512, 16, seed=0)
    return {scale.name: saturation(scores(drawn, scale)) for scale in (UNSCALED, SCALED)}


@pytest.mark.parametrize(
    ("d_k", "name", "deviation", "largest", "share"),
    [  # measured before, for one layer: PERF-FACTS, section 7
        (1, "one", 0.90, 0.17, 0.91),
        (16, "root", 0.99, 0.23, 0.87),
        (16, "one", 3.97, 0.67, 0.35),
        (64, "one", 7.62, 0.86, 0.14),
        (256, "one", 15.6, 0.91, 0.078),
        (512, "root", 1.05, 0.27, 0.83),
        (512, "one", 23.7, 0.95, 0.042),
        (4096, "one", 64, 0.985, 0.013),
    ],
)
def test_saturation_is_what_was_measured_before(
    sixteen: dict[str, Saturation],
    d_k: int,
    name: str,
    deviation: float,
    largest: float,
    share: float,
) -> None:
    found, place = sixteen[name], SIZES.index(d_k)
    assert found.deviation[place] == pytest.approx(deviation, rel=0.12)
    assert found.largest[place] == pytest.approx(largest, abs=0.04)
    assert found.entropy[place] / math.log(16) == pytest.approx(share, abs=0.04)


def test_scaling_holds_softmax_at_every_size(sixteen: dict[str, Saturation]) -> None:
    scaled, unscaled = sixteen["root"], sixteen["one"]
    assert np.ptp(scaled.mean_keys[SIZES.index(16) :]) < 0.5
    assert (np.diff(unscaled.mean_keys[::3]) < 0).all()


def test_gradients_of_the_layer_are_those_of_the_formula_differentiated_by_hand() -> None:
    """∂L/∂q = scale·Σ_j (∂L/∂s_j)·k_j and ∂L/∂k_j = scale·(∂L/∂s_j)·q, s being the scores."""
    d_k, n, scale = 8, 5, 1 / math.sqrt(8)
    found = layer_gradients(n, 3, scaled=True, sizes=(d_k,), n_examples=2)
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randn(2, n, 32, generator=generator).double()
    target = torch.randn(2, 1, 32, generator=generator).double()
    layer = MultiHeadAttention(32, 1, d_k=d_k, d_v=32, seed=3).double()
    w_q, w_k, w_v, w_o = (
        part.weight.detach() for part in (layer.W_Q, layer.W_K, layer.W_V, layer.W_O)
    )
    for example in range(2):
        x = tokens[example]
        q, k, v = w_q @ x[-1], x @ w_k.T, x @ w_v.T
        weights = torch.softmax(scale * k @ q, 0)
        off = w_o @ (weights @ v) - target[example, 0]
        of_weights = v @ (w_o.T @ (2 * off / 32))
        of_scores = weights * (of_weights - weights @ of_weights)
        assert found.query[0, example] == pytest.approx(float((scale * of_scores @ k).norm()))
        of_key = scale * of_scores[:, None] * q
        assert found.key[0, example] == pytest.approx(float(of_key.norm()))


def test_without_the_scale_the_median_examples_gradient_vanishes_and_the_mean_hides_it() -> None:
    unscaled = layer_gradients(16, 0, scaled=False, sizes=(1, 512, 4096))
    scaled = layer_gradients(16, 0, scaled=True, sizes=(1, 512, 4096))
    for without, with_scale in ((unscaled.query, scaled.query), (unscaled.key, scaled.key)):
        assert np.allclose(without[0], with_scale[0])  # at d_k = 1 the scale is 1
        assert np.median(without[1]) < np.median(with_scale[1]) / 10
        assert np.median(without[2]) < np.median(with_scale[2]) / 1e4
        assert without[1].mean() > with_scale[1].mean()


def test_an_examples_gradient_does_not_depend_on_how_examples_are_run_together() -> None:
    alone = layer_gradients(16, 0, scaled=True, sizes=(4096,), n_examples=64)
    wide = layer_gradients(16, 0, scaled=True, sizes=(64, 4096), n_examples=64)
    assert np.array_equal(alone.query[0], wide.query[1])
    assert alone.query.shape == (1, 64) and (alone.key > 0).all()


def test_nothing_to_run_is_refused() -> None:
    with pytest.raises(ValueError, match="n_keys"):
        layer_gradients(0, 0, scaled=True, sizes=(4,))
