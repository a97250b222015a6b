"""What a change did, in sentences: made from the numbers of both runs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from explorer.effects import Prediction
from explorer.ui.words import plain, short, tiny

MINUS = "\N{MINUS SIGN}"
MEANING = (
    "**What this says.** The effect is that of this change on this text, in this model. "
    "A head without effect here may matter elsewhere, and others may do its work when it is off. "
    "A large weight in a map is not an influence: only the change of the output shows that."
)
NOT_NUMBERS = "The model's outputs are not finite numbers here (NaN), so they can't be compared."


def signed(value: float, digits: int = 3) -> str:
    """A change with its sign: "+0.120", "−2.050", "0" where it is none."""
    if value == 0:
        return "0"
    text = f"{abs(value):.{digits}f}"
    if not text.strip("0."):
        text = tiny(abs(value))
    return f"{MINUS if value < 0 else '+'}{text}"


def number(value: float, digits: int = 3) -> str:
    """A number that may be below zero."""
    return f"{value:.{digits}f}".replace("-", MINUS)


def probability(value: float) -> str:
    """A probability as a share: "92.3 %", "0.004 %"."""
    percent = 100 * value
    if percent >= 0.1 or percent == 0:
        return f"{percent:.1f}\u00a0%"
    return f"{percent:.2g}\u00a0%"


def predicted(found: Prediction, names: dict[int, str], watched: int) -> str:
    """What became of the watched entry, and which is the likeliest now."""
    at = found.ids.index(watched)
    name = quoted(names[watched])
    before, after = found.before[at], found.after[at]
    first = found.ids[int(np.argmax(found.before))]
    now = found.ids[int(np.argmax(found.after))]
    if not math.isfinite(before + after):
        return NOT_NUMBERS
    move = "rises" if after > before else "falls"
    if found.log_change[at] == 0:
        return f"**{name}** keeps its probability of {probability(before)}."
    was, then = probability(before), probability(after)
    if was == then:  # too near each other for so few digits
        was, then = (f"{100 * each:.4g}\u00a0%" for each in (before, after))
    sentence = (
        f"**{name}** {move} from **{was}** to **{then}**: its "
        f"log-probability changes by {signed(found.log_change[at], 2)} nats."
    )
    if now == first:
        return f"{sentence} The likeliest is still {quoted(names[now])}."
    top = probability(max(found.after))
    return f"{sentence} The likeliest is now **{quoted(names[now])}** with {top}."


def compared(before: float, after: float) -> str:
    """What became of the likeness of two texts."""
    if not math.isfinite(before + after):
        return NOT_NUMBERS
    if before == after:
        return f"The two texts are as alike as before: cosine {number(before)}."
    move = "more" if after > before else "less"
    return (
        f"The two texts are **{move} alike**: their cosine goes from **{number(before)}** to "
        f"**{number(after)}** ({signed(after - before)})."
    )


def drifted(table: npt.NDArray[np.floating], names: tuple[str, ...]) -> str:
    """How far the last hidden states have moved, and which the most. (states, tokens)"""
    last = table[-1]
    if not np.isfinite(last).any():
        return NOT_NUMBERS
    if not np.nanmax(table) > 0:
        return "No hidden state has moved."
    most = int(np.nanargmax(last))
    begins = int(np.flatnonzero((table > 0).any(1))[0])
    where = "the input" if begins == 0 else f"layer {begins - 1}"
    return (
        f"The last hidden states have moved by **{100 * float(np.nanmean(last)):.1f} %** of their "
        f"length on average, the most at **{plain(short(names[most]))}** "
        f"({100 * float(last[most]):.1f} %). The first to move is what leaves {where}."
    )


def unchanged(equal: bool, count: int) -> str:
    """What the comparison of an unchanged run with the model's own found."""
    if equal:
        return (
            f"**Nothing is changed, and nothing differs:** {count:,} numbers of the outputs were "
            "compared with the model's own run, equal to the last bit."
        )
    return (
        f"Nothing is changed, yet some of {count:,} numbers differ from the model's own run. "
        "That should not be: this device may not repeat its sums exactly."
    )


def no_effect(count: int) -> str:
    """What is said where changes leave every number as it was."""
    return (
        f"**These changes have no effect on this text:** all {count:,} numbers of the outputs and "
        "hidden states are equal to the last bit."
    )


def left_without(count: int) -> str:
    """How many rows have lost all their keys."""
    rows = "1 query of one head has" if count == 1 else f"{count} queries of single heads have"
    return f"{rows} no key left; their weights and the head's output there are zeros."


def quoted(name: str) -> str:
    """A token as a sentence has it."""
    return f"“{plain(short(name))}”"
