"""User's text and numbers, made safe and short for a page."""

from __future__ import annotations

import re

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|$~:^&=])")


def plain(text: str) -> str:
    """The text as it is, in a place that reads Markdown: nothing in it is markup."""
    return _MARKDOWN.sub(r"\\\1", text).replace("\n", " ")


def short(text: str, most: int = 24) -> str:
    """The text cut to some characters, where a token is as long as a page."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def tiny(value: float) -> str:
    """A deviation that should be 0, to two digits: "0", "3.6e-07", "0.012"."""
    return "0" if value == 0 else f"{value:.2g}"


def share(value: float) -> str:
    """A share of 1, as a reader expects it: "12.3 %"."""
    return f"{100 * value:.1f} %"


def small_share(value: float) -> str:
    """A share of 1 where most are tiny, as of a long text's keys: "12.3 %", "0.006 %", "0 %"."""
    return share(value) if value >= 0.0005 else f"{100 * value:.1g} %" if value >= 1e-7 else "0 %"
