"""What the page Continue says of two continuations, in sentences made from them."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.continuing_steps import Step
from explorer.figures.labels import visible
from explorer.ui.what_if_words import probability
from explorer.ui.words import plain, short

Names = Sequence[Sequence[str]]
"""Each added token by itself, of each side."""
SAME = 0.0005
"""Probabilities that differ by less read as the same."""


def ordinal(number: int) -> str:
    """ "1st", "2nd", "13th"."""
    last = number % 10
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(last, "th")
    return f"{number}{ending}"


def shown(piece: str) -> str:
    """An added token by itself, without the space that parts words; signs for what is unseen."""
    return visible(piece[1:] if piece[:1] == " " and len(piece) > 1 else piece)


def quoted(name: str) -> str:
    """An added token as a sentence has it."""
    return f"“{plain(short(name))}”"


def tokens(count: int) -> str:
    """ "1 token", "20 tokens"."""
    return "1 token" if count == 1 else f"{count} tokens"


def compared(steps: Sequence[Sequence[Step]], names: Names, parted: int | None) -> str:
    """Whether and where the two part; of one text alone how far it is."""
    least = min(map(len, steps))
    if max(map(len, steps)) == 0:
        return "No token is added yet. **Next token** adds one, **Run** all."
    if len(steps) == 1:
        return (
            f"**{tokens(least).capitalize()} added.** Nothing is changed, so there is one text. "
            "Add a change below, and the text with it stands beside."
        )
    if parted is not None:
        pair = " against ".join(f"**{quoted(texts[parted])}**" for texts in names)
        if parted == 0:
            return f"They part at once, at the 1st added token: {pair}."
        return f"From the **{ordinal(parted + 1)}** added token on they part: {pair}."
    if len(steps[0]) != len(steps[1]):
        longer = "with the change" if len(steps[1]) > least else "as the model is"
        return f"Both write the same {tokens(least)}; then only the text {longer} goes on."
    return f"**Both write the same {tokens(least)}.** {_moved(steps, names)}"


def _moved(steps: Sequence[Sequence[Step]], names: Names) -> str:
    """How much the probability of a token that both write has changed, the most."""
    pairs = [(a.probability, b.probability) for a, b in zip(*steps, strict=True)]
    most = max(range(len(pairs)), key=lambda at: abs(pairs[at][1] - pairs[at][0]))
    before, after = pairs[most]
    if abs(after - before) < SAME:
        return "Their probabilities hardly differ either."
    return (
        f"The probability of the {ordinal(most + 1)}, {quoted(names[0][most])}, changes the "
        f"most: from {probability(before)} to {probability(after)}."
    )


def ended(who: str, count: int, by_itself: bool, limit: int | None) -> str:
    """Why a text goes no further before as many tokens as wanted are there."""
    if by_itself:
        return f"{who}: the model ended the text itself, with its end token."
    if count == 0:
        return (
            f"{who}: the text fills all {limit} tokens that the model reads, so nothing can be "
            "added. Shorten it."
        )
    return f"{who}: it ends here, because the model reads no more than {limit} tokens."
