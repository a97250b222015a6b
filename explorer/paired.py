"""Two maps side by side: over the same places where they can be, with what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer.aligning import CannotAlignError, Group, align, grouped, grouped_allowed, words_of
from explorer.divergence import Compared, compare
from explorer.sides import Side
from explorer.tokens import Tokens

BY_WORDS = "By words: weights are summed over a key word's pieces and averaged over a query word's."


@dataclass(frozen=True, eq=False)
class Map:
    """A map with the labels of its rows and columns: tokens or words."""

    weights: Float[Tensor, "query_length key_length"]
    allowed: Bool[Tensor, "query_length key_length"]
    padded: Bool[Tensor, " query_length"]
    left_out: Bool[Tensor, " query_length"]
    """Queries that mean nothing: padding, and those without any key."""
    query_labels: tuple[str, ...]
    key_labels: tuple[str, ...]
    raw_queries: tuple[str, ...]
    """The tokenizer's own pieces; the labels again for words."""
    raw_keys: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Paired:
    """Both maps, and how they differ where they stand over the same places."""

    left: Map
    right: Map
    compared: Compared | None
    """None where the two can't be aligned."""
    note: str
    """How the two were brought together, or why they could not be, as a sentence."""

    @property
    def left_out(self) -> Bool[Tensor, " query_length"]:
        """Queries that mean nothing on one of two aligned sides."""
        return self.left.left_out | self.right.left_out

    @property
    def difference(self) -> Float[Tensor, "query_length key_length"]:
        """right − left, for two that are aligned."""
        return self.right.weights - self.left.weights


def paired(
    left: Side, right: Side, *, same_queries: bool, same_keys: bool, by_words: bool
) -> Paired:
    """Two sides over the same tokens, or else over words; apart where that can't be.

    same_queries and same_keys say whether the two sides' texts are the same one.
    """
    try:
        down = _axis(left.queries, right.queries, same_queries, by_words)
        across = (
            down
            if left.queries is left.keys and right.queries is right.keys
            else _axis(left.keys, right.keys, same_keys, by_words)
        )
    except CannotAlignError as error:
        apart = [_alone(side, by_words) for side in (left, right)]
        return Paired(apart[0], apart[1], None, str(error))
    if down.whole and across.whole:
        maps = [_as_it_is(side) for side in (left, right)]
    else:
        names = down.labels, across.labels
        maps = [
            _by_groups(left, down.left, across.left, *names),
            _by_groups(right, down.right, across.right, *names),
        ]
    ours, theirs = maps
    compared = compare(
        ours.weights,
        theirs.weights,
        ours.left_out | theirs.left_out,
        ours.allowed | theirs.allowed,
    )
    note = down.note if down.note == across.note else f"{down.note} For keys: {across.note}"
    return Paired(ours, theirs, compared, note)


class _Axis(NamedTuple):
    """The places that both sides share along one axis."""

    labels: tuple[str, ...]
    left: tuple[Group, ...]
    right: tuple[Group, ...]
    whole: bool
    """True where both sides have the same tokens and nothing is grouped."""
    note: str


def _axis(left: Tokens, right: Tokens, same_text: bool, by_words: bool) -> _Axis:
    found = align(left, right, same_text=same_text)
    if found.by_token and by_words:
        labels, groups = _words(left)
        return _Axis(labels, groups, groups, False, BY_WORDS)
    return _Axis(found.labels, found.left, found.right, found.by_token, found.note)


def _words(tokens: Tokens) -> tuple[tuple[str, ...], tuple[Group, ...]]:
    words = words_of(tokens)
    return tuple(word.label for word in words), tuple(word.positions for word in words)


def _alone(side: Side, by_words: bool) -> Map:
    if not by_words:
        return _as_it_is(side)
    (queries, rows), (keys, columns) = _words(side.queries), _words(side.keys)
    return _by_groups(side, rows, columns, queries, keys)


def _as_it_is(side: Side) -> Map:
    return Map(
        side.weights,
        side.allowed,
        side.padded,
        side.left_out,
        side.queries.texts,
        side.keys.texts,
        side.queries.raws,
        side.keys.raws,
    )


def _by_groups(
    side: Side,
    queries: Sequence[Group],
    keys: Sequence[Group],
    query_labels: tuple[str, ...],
    key_labels: tuple[str, ...],
) -> Map:
    out = side.left_out
    return Map(
        grouped(side.weights, queries, keys, out),
        grouped_allowed(side.allowed, queries, keys),
        torch.tensor([all(bool(side.padded[at]) for at in group) for group in queries]),
        torch.tensor([all(bool(out[at]) for at in group) for group in queries]),
        query_labels,
        key_labels,
        query_labels,
        key_labels,
    )
