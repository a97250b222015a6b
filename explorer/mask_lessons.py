"""What a mask does, as numbers: the four steps around it, and what goes wrong when it is misplaced.

Each function takes one layer's attention with its mask in it, and leaves the queries that are
padding out of every number that sums up others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer.attention import Attention
from explorer.masks import (
    Mask,
    causal,
    custom,
    everything,
    padding,
    prefix,
    sliding_window,
)
from explorer.tokens import Tokens

Kind = Literal["none", "causal", "padding", "window", "prefix", "custom"]
Side = Literal["left", "right"]
Join = Literal["alone", "and", "or"]

LARGE_NEGATIVE = -1e9
"""What some code puts in place of −∞."""


# Rules


class Part(NamedTuple):
    """One rule of two that can be combined."""

    kind: Kind
    size: int = 1
    """Keys of a sliding window or of a prefix."""
    negated: bool = False


def rule(part: Part, real_tokens: int, side: Side, painted: Bool[Tensor, "n n"]) -> Mask:
    """The mask of one part; `real_tokens` and `side` say where padding stands."""
    masks: dict[str, Callable[[], Mask]] = {
        "none": everything,
        "causal": causal,
        "padding": lambda: padding(real_tokens, side),
        "window": lambda: sliding_window(part.size),
        "prefix": lambda: prefix(part.size),
        "custom": lambda: custom(painted),
    }
    mask = masks[part.kind]()
    return ~mask if part.negated else mask


def combined(first: Mask, join: Join, second: Mask) -> Mask:
    """Both rules as one."""
    if join == "alone":
        return first
    return first & second if join == "and" else first | second


# A batch of unequal texts


def padded(attention: Attention, length: int, side: Side = "right") -> Attention:
    """The same text in a batch of longer ones: padding has queries, keys and values as well.

    They are random here, of the size of the others: what a model computes for padding is no
    more meaningful, and only the mask keeps it out.
    """
    missing = length - attention.key_length
    if missing < 0:
        raise ValueError(f"length: got {length}, but the text has {attention.key_length} tokens.")
    generator = torch.Generator().manual_seed(0)

    def longer(real: Tensor) -> Tensor:
        noise = torch.randn(real.shape[0], missing, real.shape[2], generator=generator)
        noise = (noise * real.float().std(correction=0).cpu()).to(real)
        return torch.cat([real, noise] if side == "right" else [noise, real], 1)

    names = ("query", "key", "value")
    return attention.replace(
        mask=None, **{name: longer(getattr(attention, name)) for name in names}
    )


def padded_tokens(tokens: Tokens, length: int, side: Side = "right") -> Tokens:
    """The tokens with as many of padding as a batch of this length needs."""
    missing = length - len(tokens)
    added = Tokens.added([0] * missing, ["[PAD]"] * missing, padding=True)
    return tokens + added if side == "right" else added + tokens


def difference_from_alone(alone: Attention, batched: Attention, live: Bool[Tensor, " n"]) -> float:
    """The largest difference that a batch's padding makes to an output of the text itself."""
    return float((alone.output() - batched.output()[:, live]).abs().max())


# The four pictures


class Pictures(NamedTuple):
    """One head's way from scores to weights, (query_length, key_length) each."""

    allowed: Bool[Tensor, "query_length key_length"]
    scores: Float[Tensor, "query_length key_length"]
    masked_scores: Float[Tensor, "query_length key_length"]
    weights: Float[Tensor, "query_length key_length"]


def pictures(attention: Attention, head: int) -> Pictures:
    """What the mask does to one head; a row without a key is all zeros."""
    steps = attention.replace(on_masked_row="zero").steps()
    allowed = attention.allowed(heads=[head])[0]
    return Pictures(allowed, steps.scores[head], steps.masked_scores[head], steps.weights[head])


# (a) Zero instead of −∞


class ZeroInstead(NamedTuple):
    """A score of 0 where −∞ belongs, (n_heads, query_length, …)."""

    right: Float[Tensor, "n_heads query_length key_length"]
    """Weights with −∞."""
    wrong: Float[Tensor, "n_heads query_length key_length"]
    """Weights with 0 instead: e⁰ = 1 is not nothing."""
    leaked: Float[Tensor, "n_heads query_length"]
    """The wrong weights on forbidden keys, summed."""
    most: float
    """The largest of these among the real queries."""


def zero_instead_of_minus_inf(attention: Attention, live: Bool[Tensor, " n"]) -> ZeroInstead:
    """What a forbidden key gets when its score is set to 0."""
    allowed = _allowed(attention)
    steps = attention.replace(on_masked_row="zero").steps()
    wrong = steps.scores.masked_fill(~allowed, 0.0).softmax(-1)
    leaked = wrong.masked_fill(allowed, 0.0).sum(-1)
    return ZeroInstead(steps.weights, wrong, leaked, float(leaked[:, live].max()))


# (b) Zeroing the weights after softmax


class ZeroedAfter(NamedTuple):
    """Forbidden weights set to 0 once softmax is done, (n_heads, query_length, …)."""

    zeroed: Float[Tensor, "n_heads query_length key_length"]
    sums: Float[Tensor, "n_heads query_length"]
    """What is left of each row: no longer 1."""
    renormalised: Float[Tensor, "n_heads query_length key_length"]
    """Each row divided by its sum; NaN where nothing is left."""
    right: Float[Tensor, "n_heads query_length key_length"]
    """Masked before softmax, for comparison."""
    least: float
    """The smallest sum among the real queries."""
    difference: float
    """The largest difference of renormalised from right, among real queries that have a key."""


def zeroed_after_softmax(attention: Attention, live: Bool[Tensor, " n"]) -> ZeroedAfter:
    """Rows that no longer sum to 1, and what dividing them by their sum does."""
    allowed = _allowed(attention)
    steps = attention.replace(on_masked_row="zero").steps()
    zeroed = steps.scores.softmax(-1).masked_fill(~allowed, 0.0)
    sums = zeroed.sum(-1)
    renormalised = zeroed / sums[..., None]
    counted = live.to(sums.device) & (sums > 0)
    off = (renormalised - steps.weights).abs()[counted]
    least = float(sums[:, live].min())
    difference = float(off.max()) if off.numel() else 0.0
    return ZeroedAfter(zeroed, sums, renormalised, steps.weights, least, difference)


# (c) A fully masked row


class FullyMasked(NamedTuple):
    """One query without a key, three answers; the arrays are (n_heads, key_length)."""

    zeros: Float[Tensor, "n_heads key_length"]
    """Its row where zeros are chosen."""
    output: Float[Tensor, "n_heads d_v"]
    """What comes out then: zeros."""
    plain: Float[Tensor, "n_heads key_length"]
    """softmax over −∞ alone: 0/0, not a number."""
    large_negative: Float[Tensor, "n_heads key_length"]
    """With −10⁹ instead of −∞: the same weight on every forbidden key."""


def fully_masked_row(attention: Attention, query: int) -> FullyMasked:
    """What happens to a query when all its keys are forbidden."""
    table = torch.ones(attention.query_length, attention.key_length, dtype=torch.bool)
    table[query] = False
    steps = attention.replace(mask=custom(table), on_masked_row="zero").steps()
    row = steps.masked_scores[:, query]
    # Added, as such code does it: beside −10⁹ a float32 score leaves no trace.
    large = (steps.scores[:, query] + LARGE_NEGATIVE).softmax(-1)
    return FullyMasked(steps.weights[:, query], steps.output[:, query], row.softmax(-1), large)


# (d) Causal means causal


def last_token_changed(attention: Attention, becomes: int) -> Float[Tensor, " query_length"]:
    """How far each query's output moves when the last token turns into another of the text.

    The largest change of a number in the output of any head. The last token takes the other's
    query, key and value.
    """

    def turned(vectors: Tensor) -> Tensor:
        copy = vectors.clone()
        copy[:, -1] = copy[:, becomes]
        return copy

    names = ("query", "key", "value")
    before = attention.replace(on_masked_row="zero")
    after = before.replace(**{name: turned(getattr(before, name)) for name in names})
    moved = after.steps().output - before.steps().output  # (n_heads, n_q, d_v)
    return moved.abs().amax((0, 2)).float()


def without_padding(attention: Attention, live: Bool[Tensor, " n"]) -> Attention:
    """The text itself, its padding taken off, under what is left of the mask."""
    table = attention.allowed()[..., live, :][..., live]
    names = ("query", "key", "value")
    real = {name: getattr(attention, name)[:, live] for name in names}
    return attention.replace(mask=custom(table), **real)


def _allowed(attention: Attention) -> Bool[Tensor, "n_heads query_length key_length"]:
    return attention.allowed().expand(attention.n_heads, -1, -1)
