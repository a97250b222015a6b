"""Our own multi-head attention: projections, heads, and the record that it produces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from explorer.attention import Attention, FullyMaskedRowError
from explorer.masks import causal, custom, padding
from explorer.multihead import MultiHeadAttention

NAMES = ("W_Q", "W_K", "W_V", "W_O")


def weights_of(module: MultiHeadAttention) -> dict[str, Tensor]:
    return {name: getattr(module, name).weight.detach() for name in NAMES}


def test_the_same_seed_gives_the_same_projections_and_another_seed_others() -> None:
    first, again, other = (weights_of(MultiHeadAttention(12, 3, seed=s)) for s in (7, 7, 8))
    for name in NAMES:
        assert torch.equal(first[name], again[name])
        assert not torch.equal(first[name], other[name])


def test_a_seed_leaves_the_callers_random_state_alone() -> None:
    before = torch.get_rng_state()
    module = MultiHeadAttention(12, 3, seed=7)
    module.reset_parameters(9)
    # Making nn.Linear draws too; only what reset_parameters draws is its own.
    torch.set_rng_state(before)
    module.reset_parameters(9)
    assert torch.equal(torch.get_rng_state(), before)


def test_reset_draws_the_projections_of_a_fresh_module() -> None:
    module = MultiHeadAttention(12, 3, seed=7)
    module.reset_parameters(8)
    expected = weights_of(MultiHeadAttention(12, 3, seed=8))
    for name, weight in weights_of(module).items():
        assert torch.equal(weight, expected[name])


def test_without_a_seed_two_modules_differ() -> None:
    first, second = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2)
    assert not torch.equal(first.W_Q.weight, second.W_Q.weight)


def test_projections_have_mean_0_and_variance_one_over_their_input_size() -> None:
    module = MultiHeadAttention(256, 4, d_k=64, d_v=128, seed=0)
    for name, weight in weights_of(module).items():
        n_in = 512 if name == "W_O" else 256
        assert weight.shape[1] == n_in
        # Standard errors: of the mean 1/√(n · n_in), of the variance share √(2/n).
        n = weight.numel()
        assert abs(float(weight.mean())) < 5 / (n * n_in) ** 0.5
        assert float(weight.var()) * n_in == pytest.approx(1, abs=5 * (2 / n) ** 0.5)


def test_normalised_input_gives_queries_and_keys_of_unit_variance_and_scores_too() -> None:
    module = MultiHeadAttention(128, 4, seed=0)
    record = module.attention(torch.randn(400, 128))
    assert float(record.query.var()) == pytest.approx(1, abs=0.1)
    assert float(record.key.var()) == pytest.approx(1, abs=0.1)
    assert float(record.dots().var()) == pytest.approx(record.d_k, rel=0.15)
    assert float(record.scores().var()) == pytest.approx(1, abs=0.15)


def by_hand(module: MultiHeadAttention, x: Tensor, context: Tensor, allowed: Any) -> np.ndarray:
    """Concat(head_1 … head_h) W_O, head by head in NumPy."""
    w = {name: weight.double().numpy() for name, weight in weights_of(module).items()}
    a, b = x.double().numpy(), context.double().numpy()
    heads = []
    for h in range(module.n_heads):
        g = h // (module.n_heads // module.n_kv_heads)
        q = a @ w["W_Q"][h * module.d_k : (h + 1) * module.d_k].T
        k = b @ w["W_K"][g * module.d_k : (g + 1) * module.d_k].T
        v = b @ w["W_V"][g * module.d_v : (g + 1) * module.d_v].T
        shares = np.where(allowed, np.exp(q @ k.T / np.sqrt(module.d_k)), 0)
        heads.append(shares / shares.sum(-1, keepdims=True) @ v)
    return np.concatenate(heads, -1) @ w["W_O"].T


CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"d_k": 5},
    {"d_v": 3},
    {"d_k": 7, "d_v": 2, "d_out": 9},
    {"n_kv_heads": 1},
    {"n_kv_heads": 2, "d_k": 1, "d_v": 11},
    {"d_out": 1},
]


@pytest.mark.parametrize("sizes", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("cross", [False, True])
def test_the_output_is_the_heads_side_by_side_times_w_o(sizes: dict[str, Any], cross: bool) -> None:
    module = MultiHeadAttention(12, 4, seed=2, **sizes).double()
    x = torch.randn(5, 12, dtype=torch.float64)
    context = torch.randn(7, 12, dtype=torch.float64) if cross else None
    keys = x if context is None else context
    for mask, allowed in (
        (None, True),
        (causal(), np.tri(5, len(keys), len(keys) - 5, dtype=bool)),
        (padding(4), np.arange(len(keys)) < 4),
    ):
        expected = by_hand(module, x, keys, allowed)
        output = module(x, context, mask)
        assert output.shape == (5, sizes.get("d_out", 12))
        np.testing.assert_allclose(output.detach(), expected, rtol=1e-10, atol=1e-12)
        record = module.attention(x, context, mask)
        assert isinstance(record, Attention)
        joined = module.join(record.output()).detach()
        np.testing.assert_allclose(joined, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("sizes", CONFIGURATIONS, ids=str)
def test_the_record_has_the_sizes_that_were_asked_for(sizes: dict[str, Any]) -> None:
    module = MultiHeadAttention(12, 4, **sizes)
    record = module.attention(torch.randn(5, 12), torch.randn(7, 12))
    assert record.query.shape == (4, 5, sizes.get("d_k", 3))
    assert record.key.shape == (sizes.get("n_kv_heads", 4), 7, sizes.get("d_k", 3))
    assert record.value.shape == (sizes.get("n_kv_heads", 4), 7, sizes.get("d_v", 3))
    assert not record.query.requires_grad


def test_a_size_that_does_not_divide_is_fine_where_d_k_and_d_v_are_given() -> None:
    module = MultiHeadAttention(10, 3, d_k=4, d_v=2)
    assert module(torch.randn(2, 10)).shape == (2, 10)


def test_leading_axes_are_a_batch() -> None:
    module = MultiHeadAttention(8, 2, n_kv_heads=1, seed=0).double()
    x, context = torch.randn(2, 3, 5, 8).double(), torch.randn(2, 3, 6, 8).double()
    together = module(x, context, causal())
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(together[i, j], module(x[i, j], context[i, j], causal()))


def test_each_sequence_of_a_batch_may_have_its_own_padding() -> None:
    module = MultiHeadAttention(8, 2, seed=0).double()
    x = torch.randn(2, 6, 8).double()
    together = module(x, mask=padding([3, 6]))
    torch.testing.assert_close(together[0], module(x[0], mask=padding(3)))
    torch.testing.assert_close(together[1], module(x[1]))


def test_changing_a_later_token_leaves_earlier_outputs_exactly_as_they_were() -> None:
    module = MultiHeadAttention(16, 4, seed=0)
    x = torch.randn(9, 16)
    changed = x.clone()
    changed[6] = torch.randn(16)
    before, after = module(x, mask=causal()), module(changed, mask=causal())
    assert torch.equal(before[:6], after[:6])
    assert (before[6:] != after[6:]).any(-1).all()


def test_without_a_mask_order_does_not_matter() -> None:
    """Attention alone knows no positions: permuted tokens give permuted outputs."""
    module = MultiHeadAttention(8, 2, seed=0).double()
    x, order = torch.randn(6, 8).double(), torch.tensor([3, 0, 5, 1, 4, 2])
    torch.testing.assert_close(module(x[order]), module(x)[order])


def test_a_written_out_mask_equals_the_rule() -> None:
    module = MultiHeadAttention(8, 2, seed=0)
    x = torch.randn(4, 8)
    table = torch.ones(4, 4, dtype=torch.bool).tril()
    assert torch.equal(module(x, mask=table), module(x, mask=causal()))
    assert torch.equal(module(x, mask=custom(table)), module(x, mask=causal()))


def test_gradients_of_input_context_and_projections_are_right() -> None:
    module = MultiHeadAttention(4, 2, n_kv_heads=1, d_v=3, seed=0).double()
    inputs = [torch.randn(3, 4).double(), torch.randn(5, 4).double()]
    inputs += [getattr(module, name).weight.detach().clone() for name in NAMES]

    def output(x: Tensor, context: Tensor, *weights: Tensor) -> Tensor:
        named = {f"{name}.weight": w for name, w in zip(NAMES, weights, strict=True)}
        result: Tensor = functional_call(module, named, (x, context, causal()))
        return result

    torch.autograd.gradcheck(output, [tensor.requires_grad_() for tensor in inputs])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d_model": 0, "n_heads": 1}, r"^d_model: got 0; it must be at least 1"),
        ({"d_model": 8, "n_heads": 0}, r"^n_heads: got 0"),
        ({"d_model": 8, "n_heads": -2}, r"^n_heads: got -2"),
        ({"d_model": 8, "n_heads": 2, "n_kv_heads": 0}, r"^n_kv_heads: got 0"),
        ({"d_model": 8, "n_heads": 2, "d_k": 0}, r"^d_k: got 0"),
        ({"d_model": 8, "n_heads": 2, "d_v": 0}, r"^d_v: got 0"),
        ({"d_model": 8, "n_heads": 2, "d_out": 0}, r"^d_out: got 0"),
        ({"d_model": 8, "n_heads": 4, "n_kv_heads": 3}, r"^n_kv_heads: got 3, but the 4 query"),
        ({"d_model": 8, "n_heads": 2, "n_kv_heads": 4}, r"^n_kv_heads: got 4, but the 2 query"),
        ({"d_model": 10, "n_heads": 3}, r"^n_heads: got 3, .*d_model = 10.*give d_k and d_v"),
        ({"d_model": 10, "n_heads": 3, "d_k": 2}, r"^n_heads: got 3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**arguments)


@pytest.mark.parametrize(
    ("x", "context", "message"),
    [
        ((3, 7), None, r"^x: got the shape \(3, 7\), but d_model = 8 .*\(\.\.\., positions, 8\)"),
        ((8,), None, r"^x: got the shape \(8,\)"),
        ((3, 8), (3, 7), r"^context: got the shape \(3, 7\), but d_model = 8"),
        ((3, 8), (8,), r"^context: got the shape \(8,\)"),
        ((0, 8), None, r"^query: got the shape \(2, 0, 4\); it needs at least one query"),
        ((3, 8), (0, 8), r"^key: got the shape \(2, 0, 4\); it needs at least one key"),
    ],
)
def test_input_that_does_not_fit_is_refused_by_name(
    x: tuple[int, ...], context: tuple[int, ...] | None, message: str
) -> None:
    module = MultiHeadAttention(8, 2)
    with pytest.raises(ValueError, match=message):
        module(torch.zeros(x), None if context is None else torch.zeros(context))


@pytest.mark.parametrize("name", ["x", "context"])
def test_the_record_is_of_one_sequence(name: str) -> None:
    inputs = {"x": torch.zeros(3, 8), "context": torch.zeros(3, 8)}
    inputs[name] = torch.zeros(2, 3, 8)
    with pytest.raises(
        ValueError, match=rf"^{name}: got the shape \(2, 3, 8\), .*\(positions, 8\)"
    ):
        MultiHeadAttention(8, 2).attention(**inputs)


def test_a_query_without_a_key_is_an_error() -> None:
    module = MultiHeadAttention(8, 2)
    x = torch.randn(3, 8)
    with pytest.raises(FullyMaskedRowError, match="query row 0, 1, 2 in every head"):
        module(x, mask=padding(0))
    with pytest.raises(FullyMaskedRowError, match="query row 0, 1, 2 in every head"):
        module.attention(x, mask=padding(0)).output()
