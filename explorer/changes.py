"""What a reader changes in a model's attention: a change as a value, and as a short code.

A code such as "off_L2H1 times_2_L0-3" stands in a page's address. Its items are parted by spaces,
the parts of an item by "_": what, how, where. Without a where it is all layers and heads; S1 before
it names the second stack of a model that has several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from explorer.painting import decode_painted

What = Literal[
    "times", "rule", "causal", "window", "nokeys", "nofirst", "nospecial", "paint",
    "off", "uniform", "mean", "set", "novalue", "patch",
]  # fmt: skip
WHATS: tuple[What, ...] = get_args(What)
OF_POSITIONS: frozenset[What] = frozenset({"nokeys", "paint", "set", "novalue", "patch"})
"""Those that name places in one text, and mean nothing in another."""
RULES = {"1": "1", "root": "1/√d_k", "d": "1/d_k"}
"""The scale rules as a code writes them."""
MOST = 40
"""Changes in one code."""
LARGEST = 9999
"""The largest number that a code may hold."""

_WHERE = re.compile(r"(?:S([0-9]+))?(?:L([0-9.-]+))?(?:H([0-9.-]+))?")
_NUMBER = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4})?")


@dataclass(frozen=True)
class Change:
    """One change of some heads; which of the further values count depends on `what`."""

    what: What
    layers: tuple[int, ...] | None = None
    """None for all layers."""
    heads: tuple[int, ...] | None = None
    """None for all heads."""
    stack: int = 0
    """The place of the stack among the model's stacks."""
    number: float = 1.0
    """times: the factor on the scale. set: the weight."""
    how: str = ""
    """rule: a key of RULES. causal: "on" or "off". set: "" or "raw", the others are left as they
    are. paint: the mask as `encode_painted` writes it."""
    keys: tuple[int, ...] = ()
    """nokeys, novalue: the keys. set: the query and the key. window: its width."""


def encode_changes(changes: Sequence[Change]) -> str:
    """The code of some changes, in their order; "" for none."""
    return " ".join(_written(change) for change in changes)


def decode_changes(code: str) -> list[Change]:
    """The changes that a code describes. Raises ValueError with a sentence for anything else."""
    items = code.split()
    if len(items) > MOST:
        raise ValueError(f"It has {len(items)} changes; at most {MOST} would work.")
    return [_read(item) for item in items]


def numbers_written(numbers: Sequence[int]) -> str:
    """Whole numbers in order, runs joined: "0-3.5"."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ".".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _written(change: Change) -> str:
    middle = {
        "times": [f"{change.number:.4f}".rstrip("0").rstrip(".")],
        "rule": [change.how],
        "causal": [change.how],
        "window": [str(*change.keys)] if change.what == "window" else [],
        "nokeys": [numbers_written(change.keys)],
        "novalue": [numbers_written(change.keys)],
        "paint": [change.how],
        "set": [*map(str, change.keys), f"{change.number:.4f}".rstrip("0").rstrip(".")],
    }.get(change.what, [])
    what = "setraw" if change.what == "set" and change.how == "raw" else change.what
    where = f"S{change.stack}" if change.stack else ""
    if change.layers is not None:
        where += f"L{numbers_written(change.layers)}"
    if change.heads is not None:
        where += f"H{numbers_written(change.heads)}"
    return "_".join([what, *middle, *([where] if where else [])])


def _read(item: str) -> Change:
    what, *parts = item.split("_")
    raw, what = what == "setraw", "set" if what == "setraw" else what
    if what not in WHATS:
        raise ValueError(f"“{item[:40]}” is no change: it begins with none of {', '.join(WHATS)}.")
    readers: dict[str, list[Callable[[str], object]]] = {
        "times": [_number],
        "rule": [_among(*RULES)],
        "causal": [_among("on", "off")],
        "window": [_numbers],
        "nokeys": [_numbers],
        "novalue": [_numbers],
        "paint": [_painted],
        "set": [_whole, _whole, _number],
    }
    wanted = readers.get(what, [])
    try:
        if not len(wanted) <= len(parts) <= len(wanted) + 1:
            raise ValueError(f"after “{what}” come {len(wanted)} values, then where")
        found = [read(part) for read, part in zip(wanted, parts, strict=False)]
        place = _where(parts[len(wanted)]) if len(parts) > len(wanted) else (0, None, None)
        return _made(what, found, raw, *place)
    except ValueError as error:
        raise ValueError(f"“{item[:40]}” can't be read: {error}.") from error


def _made(
    what: What,
    found: list[object],
    raw: bool,
    stack: int,
    layers: tuple[int, ...] | None,
    heads: tuple[int, ...] | None,
) -> Change:
    number, how = 1.0, "raw" if raw else ""
    keys: tuple[int, ...] = ()
    for each in found:
        if isinstance(each, float):
            number = each
        elif isinstance(each, str):
            how = each
        elif isinstance(each, int):
            keys = (*keys, each)
        elif isinstance(each, tuple):
            keys = each
    if what == "set" and number > 1:
        raise ValueError("a weight lies between 0 and 1")
    if what == "window" and (len(keys) != 1 or keys[0] < 1):
        raise ValueError("a window has one width, at least 1")
    return Change(what, layers, heads, stack, number, how, keys)


def _where(text: str) -> tuple[int, tuple[int, ...] | None, tuple[int, ...] | None]:
    found = _WHERE.fullmatch(text)
    if found is None or not text:
        raise ValueError(f"“{text[:20]}” is no place such as L2H1 or L0-3")
    stack, layers, heads = found.groups()
    return (
        0 if stack is None else _whole(stack),
        None if layers is None else _numbers(layers),
        None if heads is None else _numbers(heads),
    )


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise ValueError(f"“{text[:20]}” is no whole number up to {LARGEST}")
    return int(text)


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"“{text[:20]}” is no number such as 2 or 0.5")
    return float(text)


def _numbers(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in text.split("."):
        first, _, last = part.partition("-")
        low, high = _whole(first), _whole(last or first)
        if high < low:
            raise ValueError(f"“{part}” runs backwards")
        found += range(low, high + 1)
    return tuple(sorted(set(found)))


def _among(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"“{text[:20]}” is none of {', '.join(words)}")
        return text

    return read


def _painted(text: str) -> str:
    try:
        decode_painted(text)
    except ValueError as error:
        raise ValueError(str(error).rstrip(".")) from error
    return text
