"""Maps by words instead of tokens, and two tokenizations of a text brought to the same words.

A word's weight as a key is the sum over its pieces, as a query the mean over them: so rows still
sum to 1 (Clark et al. 2019, section 4.1). What has no partner is left out, and named; nothing is
scaled up for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer.tokens import Tokens

Group = tuple[int, ...]
"""The positions of a word's pieces."""

LEAST_SHARED = 0.5
"""Different texts are compared where at least this share of words has a partner."""
SHARED_CHARACTER = re.compile(r"(.) \((\d+)/\d+\)")  # the label of a piece of a character: 😀 (1/4)


class CannotAlignError(ValueError):
    """Two texts have too little in common to be compared word by word; the message says why."""


class Word(NamedTuple):
    """Tokens that belong together: a word's pieces, or one special token."""

    label: str
    positions: Group
    source: int | None
    """0 for the first text, 1 for the second, None for a special token."""
    start: int
    """Where it stands in its text, in characters; 0 and 0 where that is not known."""
    end: int


@dataclass(frozen=True)
class Alignment:
    """The places that two texts have in common, each with its tokens on both sides."""

    labels: tuple[str, ...]
    left: tuple[Group, ...]
    right: tuple[Group, ...]
    left_out_left: Group
    """Tokens of the left without a partner; padding is not counted."""
    left_out_right: Group
    by_token: bool
    """True where both sides have the same tokens: then nothing is summed or averaged."""
    note: str
    """How it was done, as a sentence."""


def words_of(tokens: Tokens) -> tuple[Word, ...]:
    """The words of a text, in its order; a special token is one of its own, padding is none."""
    groups: list[list[int]] = []
    for at in range(len(tokens)):
        if tokens.padding[at]:
            continue
        before = groups[-1][-1] if groups else -1
        if tokens.continues[at] and before == at - 1 and not tokens.special[before]:
            groups[-1].append(at)
        else:
            groups.append([at])
    return tuple(_word(tokens, group) for group in groups)


def grouped(
    weights: Float[Tensor, "*lead query_length key_length"],
    queries: Sequence[Sequence[int]],
    keys: Sequence[Sequence[int]],
    left_out: Bool[Tensor, " query_length"] | None = None,
) -> Float[Tensor, "*lead queries keys"]:
    """Weights by words: summed over a key's pieces, averaged over a query's.

    left_out are queries that mean nothing (no key, padding): the mean is over the others, and a
    word with no other has a row of zeros.
    """
    n_q, n_k = weights.shape[-2:]
    counted = torch.ones(n_q, device=weights.device)
    if left_out is not None:
        counted = (~left_out).to(weights.device, counted.dtype)
    rows = _members(queries, n_q).to(weights.device) * counted  # (queries, n_q)
    mean = (rows / rows.sum(-1, keepdim=True).clamp(min=1)).to(weights.dtype)
    kept = torch.where(counted[:, None] > 0, weights, 0.0)  # 0 · NaN is NaN
    return mean @ kept @ _members(keys, n_k).to(weights).T


def grouped_allowed(
    allowed: Bool[Tensor, "*lead query_length key_length"],
    queries: Sequence[Sequence[int]],
    keys: Sequence[Sequence[int]],
) -> Bool[Tensor, "*lead queries keys"]:
    """A mask by words: True where some piece of the query may use some piece of the key."""
    n_q, n_k = allowed.shape[-2:]
    rows, columns = (_members(*each).to(allowed.device) for each in ((queries, n_q), (keys, n_k)))
    return (rows @ allowed.float() @ columns.T) > 0


def align(left: Tokens, right: Tokens, *, same_text: bool) -> Alignment:
    """The words that two texts share, with the tokens of each side.

    Of one text in two tokenizations, words are what both can be cut into: their places in the text
    decide. Of two texts, equal words in the same order are partners, and words that stand between
    the same partners, as many on both sides. Special tokens are partners by their place.

    Raises CannotAlignError where places are not known, or texts have too little in common.
    """
    if _same(left, right):
        kept = tuple((at,) for at in range(len(left)) if not left.padding[at])
        labels = tuple(left.texts[group[0]] for group in kept)
        return Alignment(labels, kept, kept, (), (), True, "Both sides have the same tokens.")
    ours, theirs = words_of(left), words_of(right)
    pairs = _by_place(ours, theirs) if same_text else _by_text(ours, theirs)
    pairs = sorted([*pairs, *_specials(ours, theirs)], key=lambda pair: pair[0].positions[0])
    labels = tuple(_label(*pair) for pair in pairs)
    groups = tuple(tuple(pair[side].positions for pair in pairs) for side in (0, 1))
    out = (_left_out(left, groups[0]), _left_out(right, groups[1]))
    note = (
        "The two models cut the text differently, so this is by words: weights are summed over a "
        "key word's pieces and averaged over a query word's."
        if same_text
        else "The two texts differ, so words are partners where they are the same, or stand "
        "between the same words. Weights are summed over a key word's pieces and averaged over a "
        "query word's."
    )
    if out[0] or out[1]:
        note += " Tokens without a partner are left out, and rows may sum to less than 1."
    return Alignment(labels, groups[0], groups[1], out[0], out[1], False, note)


def _word(tokens: Tokens, group: Sequence[int]) -> Word:
    # A space that is a piece of its own belongs to the word after it, but not to its name.
    named = [at for at in group if not _is_space(tokens, at)] or group
    label = "".join(tokens.texts[at] for at in named)
    if len(named) > 1:  # of a character cut into pieces, the first stands for it
        label = SHARED_CHARACTER.sub(lambda cut: cut[1] if cut[2] == "1" else "", label)
    spans = [span for at in named if (span := tokens.spans[at]) is not None]
    source = None if tokens.special[group[0]] else tokens.sources[group[0]]
    start, end = (min(s for s, _ in spans), max(e for _, e in spans)) if spans else (0, 0)
    return Word(label, tuple(group), source, start, end)


def _is_space(tokens: Tokens, at: int) -> bool:
    """Whether a token is white space alone, made visible."""
    return not tokens.texts[at].strip("·") and "·" not in tokens.raws[at]


def _members(groups: Sequence[Sequence[int]], length: int) -> Float[Tensor, "groups length"]:
    """1 where a position is in a group."""
    table = torch.zeros(len(groups), length)
    for row, group in enumerate(groups):
        table[row, list(group)] = 1
    return table


def _same(left: Tokens, right: Tokens) -> bool:
    return (left.raws, left.special, left.padding, left.sources) == (
        right.raws,
        right.special,
        right.padding,
        right.sources,
    )


Pair = tuple[Word, Word]


def _by_place(left: Sequence[Word], right: Sequence[Word]) -> list[Pair]:
    """The finest words that both sides can be cut into, from their places in one text."""
    pairs: list[Pair] = []
    for source in (0, 1):
        sides = [[w for w in words if w.source == source] for words in (left, right)]
        if not (sides[0] and sides[1]):
            continue
        if not all(any(word.end > word.start for word in side) for side in sides):
            raise CannotAlignError(
                "One of the tokenizers does not tell where its tokens stand in the text, so the "
                "two can't be matched word by word. They are shown side by side."
            )
        placed = [(word, side) for side in (0, 1) for word in sides[side] if word.end > word.start]
        placed.sort(key=lambda each: (each[0].start, each[0].end))
        joined: list[list[tuple[Word, int]]] = []
        reached = -1
        for word, side in placed:
            if word.start < reached:
                joined[-1].append((word, side))
            else:
                joined.append([(word, side)])
            reached = max(reached, word.end)
        for part in joined:
            ours, theirs = ([word for word, side in part if side == which] for which in (0, 1))
            if ours and theirs:
                pairs.append((_merged(ours), _merged(theirs)))
    if not pairs:
        raise CannotAlignError("The two have no word in common. They are shown side by side.")
    return pairs


def _by_text(left: Sequence[Word], right: Sequence[Word]) -> list[Pair]:
    """Equal words in the same order, and as many other words between the same ones."""
    ours, theirs = ([w for w in words if w.source is not None] for words in (left, right))
    names = [[(word.source, word.label.casefold()) for word in side] for side in (ours, theirs)]
    matcher = SequenceMatcher(None, names[0], names[1], autojunk=False)
    pairs: list[Pair] = []
    equal = 0
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and b - a == d - c):
            pairs += [pair for pair in zip(ours[a:b], theirs[c:d], strict=True) if _fit(*pair)]
            equal += (b - a) * (kind == "equal")
    longer = max(len(ours), len(theirs))
    if equal == 0 or len(pairs) < LEAST_SHARED * longer:
        raise CannotAlignError(
            f"The two texts share {equal} of {longer} words in the same order, too few for a "
            "difference that means something. They are shown side by side."
        )
    return pairs


def _fit(left: Word, right: Word) -> bool:
    return left.source == right.source


def _specials(left: Sequence[Word], right: Sequence[Word]) -> list[Pair]:
    """Special tokens at the same place: before the text, after it, between two texts."""
    pairs: list[Pair] = []
    runs = [_special_runs(words) for words in (left, right)]
    for place in runs[0].keys() & runs[1].keys():
        ours, theirs = runs[0][place], runs[1][place]
        if len(ours) == len(theirs):
            pairs += zip(ours, theirs, strict=True)
    return pairs


def _special_runs(words: Sequence[Word]) -> dict[str, list[Word]]:
    """Special tokens by where they stand."""
    texts = [at for at, word in enumerate(words) if word.source is not None]
    runs: dict[str, list[Word]] = {}
    for at, word in enumerate(words):
        if word.source is None:
            after = [words[place] for place in texts if place < at]
            before = [words[place] for place in texts if place > at]
            if not after:
                place = "start"
            elif not before:
                place = "end"
            elif after[-1].source != before[0].source:
                place = "between"
            else:  # typed by a person inside a text
                place = f"{after[-1].source} {after[-1].end}"
            runs.setdefault(place, []).append(word)
    return runs


def _merged(words: Sequence[Word]) -> Word:
    """Neighbouring words as one."""
    label = words[0].label
    for before, word in pairwise(words):
        label += " " * (word.start > before.end) + word.label
    positions = tuple(at for word in words for at in word.positions)
    ends = max(word.end for word in words)
    return Word(label, positions, words[0].source, words[0].start, ends)


def _label(left: Word, right: Word) -> str:
    """Both names where they differ by more than case."""
    if left.label.casefold() == right.label.casefold():
        return left.label
    return f"{left.label} / {right.label}"


def _left_out(tokens: Tokens, groups: Sequence[Group]) -> Group:
    used = {at for group in groups for at in group}
    return tuple(at for at in range(len(tokens)) if at not in used and not tokens.padding[at])
