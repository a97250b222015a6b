"""A side's map against what NumPy makes of the layer's queries and keys."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from explorer.attention import Attention
from explorer.capture import Stack, capture
from explorer.masks import causal
from explorer.models import load
from explorer.sides import CannotLookError, Look, named_heads, seen
from explorer.stacks import GivenWeights
from explorer.tokens import Tokens


@pytest.fixture(scope="module")
def stack() -> Stack:
    return capture(load("minilm", "cpu"), "The cat sat on unaffable mats.").stacks["encoder"]


def numpy_weights(
    stack: Stack, layer: int, head: int, scale: float, allowed: np.ndarray | None = None
) -> np.ndarray:
    record = stack.layers[layer]
    assert isinstance(record, Attention)
    scores = record.query[head].double().numpy() @ record.key[head].double().numpy().T * scale
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def test_a_side_as_it_is_has_the_heads_own_weights(stack: Stack) -> None:
    side = seen(stack, Look(2, 5))
    np.testing.assert_allclose(side.weights, numpy_weights(stack, 2, 5, 32**-0.5), atol=1e-6)
    assert side.allowed.all() and not side.left_out.any()


@pytest.mark.parametrize(
    ("look", "scale"),
    [
        (Look(1, 3, scale="one"), 1.0),
        (Look(1, 3, scale="root"), 32**-0.5),
        (Look(1, 3, scale="inverse"), 1 / 32),
        (Look(1, 3, scale="times", factor=3), 3 * 32**-0.5),
    ],
)
def test_another_scale_is_the_whole_factor(stack: Stack, look: Look, scale: float) -> None:
    np.testing.assert_allclose(
        seen(stack, look).weights, numpy_weights(stack, 1, 3, scale), atol=1e-5
    )


@pytest.mark.parametrize(("mask", "window"), [("causal", 4), ("window", 1), ("window", 3)])
def test_another_mask_forbids_before_softmax(stack: Stack, mask: str, window: int) -> None:
    n = len(stack.query_tokens)
    gap = np.arange(n)[:, None] - np.arange(n)
    allowed = (gap >= 0) & ((gap < window) | (mask == "causal"))
    side = seen(stack, Look(0, 7, mask=mask, window=window))
    expected = numpy_weights(stack, 0, 7, 32**-0.5, allowed)
    np.testing.assert_allclose(side.weights, expected, atol=1e-6)
    assert np.array_equal(side.allowed.numpy(), allowed)


def test_without_a_mask_a_causal_layer_sees_all_but_padding() -> None:
    torch.manual_seed(0)
    tokens = Tokens.plain(["a", "b"]) + Tokens.added([0], ["[PAD]"], padding=True)
    q, k, v = torch.randn(3, 2, 3, 4).unbind(0)
    stack = Stack("decoder", tokens, tokens, (Attention(q, k, v, causal()),), (0,), 1)
    side = seen(stack, Look(0, 1, mask="none"))
    expected = torch.softmax(q[1] @ k[1, :2].T / 2, -1)
    torch.testing.assert_close(side.weights[:, :2], expected)
    assert not side.weights[:, 2].any() and side.allowed[:, :2].all()
    assert side.left_out.tolist() == [False, False, True]


def test_sizes_are_shares_of_their_row(stack: Stack) -> None:
    record = stack.layers[4]
    assert isinstance(record, Attention)
    lengths = record.value[6].norm(dim=-1)
    sizes = record.weights([6])[0] * lengths
    side = seen(stack, Look(4, 6, way="value_weighted"))
    torch.testing.assert_close(side.weights, sizes / sizes.sum(-1, keepdim=True))
    norm = seen(stack, Look(4, 6, way="norm_based")).weights
    torch.testing.assert_close(norm.sum(-1), torch.ones(len(norm)))


def test_an_average_is_over_the_named_heads_or_the_layer(stack: Stack) -> None:
    named = seen(stack, Look(0, 0, way="average", heads=((1, 2), (3, 4)))).weights
    expected = (stack.layers[1].weights([2])[0] + stack.layers[3].weights([4])[0]) / 2
    torch.testing.assert_close(named, expected)
    whole = seen(stack, Look(2, 0, way="average")).weights
    torch.testing.assert_close(whole, stack.layers[2].weights().mean(0))


def test_rollout_with_a_mask_never_looks_ahead(stack: Stack) -> None:
    side = seen(stack, Look(3, 0, way="rollout", mask="causal"))
    assert not side.weights.triu(1).any()
    torch.testing.assert_close(side.weights.sum(-1), torch.ones(len(side.weights)))
    assert torch.equal(side.allowed, torch.ones_like(side.allowed).tril())


def test_the_capture_is_left_as_it_was(stack: Stack) -> None:
    before = stack.layers[0].weights().clone()
    seen(stack, Look(0, 0, mask="causal", scale="one", way="rollout"))
    assert torch.equal(stack.layers[0].weights(), before)


def test_given_weights_can_be_looked_at_but_not_changed() -> None:
    weights = torch.tensor([[[0.25, 0.75], [1.0, 0.0]]])
    tokens = Tokens.plain(["a", "b"])
    stack = Stack("decoder", tokens, tokens, (GivenWeights(weights),), (0,), 1)
    assert torch.equal(seen(stack, Look(0, 0)).weights, weights[0])
    with pytest.raises(CannotLookError, match="mask and scale can't be changed"):
        seen(stack, Look(0, 0, scale="one"))
    with pytest.raises(CannotLookError, match="Choose another way to weigh"):
        seen(stack, Look(0, 0, way="norm_based"))


def test_rollout_between_two_texts_is_refused_in_a_sentence() -> None:
    q, k, v = torch.randn(1, 2, 4), torch.randn(1, 3, 4), torch.randn(1, 3, 4)
    queries, keys = Tokens.plain(["a", "b"]), Tokens.plain(["c", "d", "e"])
    stack = Stack("cross", queries, keys, (Attention(q, k, v),), (0,), 1)
    with pytest.raises(CannotLookError, match="Rollout follows tokens"):
        seen(stack, Look(0, 0, way="rollout"))


def test_names_and_changes_in_words() -> None:
    assert Look(3, 5).name == "L3H5" and Look(3, 5).changes == ()
    assert Look(3, 5, way="rollout").name == "Rollout to L3"
    assert Look(3, 5, way="average").name == "Mean of layer 3"
    assert Look(3, 5, way="average", heads=((0, 1), (2, 3))).name == "Mean of L0H1, L2H3"
    changed = Look(3, 5, mask="window", window=3, scale="times", factor=0.5, way="norm_based")
    assert changed.changes == (
        "mask: its own and a sliding window of 3",
        "scale: 0.5 × its own",
        "Weight × value × W_O, as shares of each row",
    )


def test_heads_named_in_a_text(stack: Stack) -> None:
    assert named_heads("L0H2, l5h11;L0H2", stack) == ((0, 2), (5, 11))
    assert named_heads("  ", stack) == ()
    for text, told in (
        ("L6H0", "There is no layer 6 here; the layers are 0 to 5"),
        ("L0H12", "Layer 0 has no head 12; its heads are 0 to 11"),
        ("head 3", "“head” is no head. Write heads as L0H2"),
        ("L0H0 L0H1 L0H2", "3 heads are named; at most 2 fit"),
    ):
        with pytest.raises(ValueError, match=told):
            named_heads(text, stack, 2)


def test_a_query_without_any_key_is_left_out() -> None:
    q, k, v = torch.randn(3, 1, 3, 4).unbind(0)
    tokens = Tokens.plain(["a", "b", "c"])
    padded = Tokens.added([0], ["[PAD]"], padding=True) + Tokens.plain(["b", "c"])
    stack = Stack("decoder", tokens, padded, (Attention(q, k, v),), (0,), 1)
    # The first key is padding, so a window of one leaves the first query nothing … with its mask.
    own = Stack(
        "decoder", tokens, padded, (Attention(q, k, v, ~causal(), on_masked_row="zero"),), (0,), 1
    )
    assert seen(stack, Look(0, 0)).left_out.tolist() == [False] * 3
    assert seen(own, Look(0, 0)).left_out.tolist() == [False, False, True]
    assert math.isclose(float(seen(own, Look(0, 0)).weights.sum()), 2, abs_tol=1e-5)
