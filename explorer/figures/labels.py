"""Token text made safe and readable for Plotly, whose text is pseudo-HTML.

Spaces at the edges or repeated show as ``·``, newline ``⏎``, tab ``⇥``, nothing ``∅``; control and
bidirectional characters show as their code. Escaping comes last, on the text already cut.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

ELLIPSIS = "…"
LABEL_HEIGHT = 15  # pixels one line of tick text needs, at 12 px type
SLANTED_LABEL_WIDTH = 17  # pixels along the axis for the same line at 45 degrees

_ESCAPES = str.maketrans({c: f"&#{ord(c)};" for c in "&<>$#"})
_VISIBLE = {"\n": "⏎", "\t": "⇥"}
_JOINERS = {"\u200c", "\u200d"}  # inside Arabic, Indic and emoji they shape the word: kept there
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"


def escape(text: str) -> str:
    """The text with Plotly's (and Streamlit's) special characters as numeric entities."""
    return text.translate(_ESCAPES)


def tick_label(text: str, width: int = 16) -> str:
    """A token for an axis: visible, at most `width` columns (wide characters take two), escaped."""
    return _isolated(escape(_cut(visible(text), width)), text)


def hover_label(text: str, width: int = 200) -> str:
    """A token for a tooltip: like `tick_label` but long enough to be the full text."""
    return tick_label(text, width)


def visible(text: str) -> str:
    """The text with a sign for each character that would vanish, reorder or break the line."""
    if not text:
        return "∅"
    shown = []
    last = len(text) - 1
    for place, char in enumerate(text):
        edge = place in (0, last)
        if char == " ":
            doubled = edge or text[place - 1] == " " or text[place + 1] == " "
            shown.append("·" if doubled else " ")
        else:
            shown.append(_visible_char(char, edge))
    if unicodedata.combining(text[0]):
        shown.insert(0, "◌")  # a mark with nothing to sit on
    return "".join(shown)


def _visible_char(char: str, edge: bool) -> str:
    if char in _VISIBLE:
        return _VISIBLE[char]
    if char in _JOINERS:
        return _code(char) if edge else char
    category = unicodedata.category(char)
    if category == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    if category in {"Cc", "Cf", "Zs", "Zl", "Zp"} and not 0xE0020 <= ord(char) <= 0xE007F:
        return _code(char)
    return char


def _code(char: str) -> str:
    return f"⟨U+{ord(char):04X}⟩"


def _columns(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def text_columns(text: str) -> int:
    """How many columns a text takes, wide (East Asian, emoji) characters counting two."""
    return sum(map(_columns, text))


def _cut(text: str, width: int) -> str:
    """At most `width` columns, and no more than eight code points a column (stacked marks)."""
    if text_columns(text) <= width and len(text) <= 8 * width:
        return text
    used = 0
    end = 0
    for end, char in enumerate(text):  # `end` is where the cut falls
        used += _columns(char)
        if used > width - 1 or end >= 8 * width:
            break
    while end > 1 and (text[end] in _JOINERS or text[end - 1] in _JOINERS or _clings(text[end])):
        end -= 1
    return text[:end] + ELLIPSIS


def _clings(char: str) -> bool:
    """Whether a character belongs to the one before: a mark, a variation, a skin tone."""
    return unicodedata.category(char).startswith("M") or 0x1F3FB <= ord(char) <= 0x1F3FF


def _isolated(shown: str, text: str) -> str:
    if any(unicodedata.bidirectional(c) in {"R", "AL", "AN"} for c in text):
        return f"{_FIRST_STRONG_ISOLATE}{shown}{_POP_ISOLATE}"
    return shown


def label_pixels(text: str, pixels_per_column: int | float = 7.2) -> float:
    """A generous estimate of how wide a tick label is drawn, at 12 px type."""
    return text_columns(_cut(visible(text), 16)) * pixels_per_column


def tick_stride(n: int, pixels: int | float, label_pixels: int | float = LABEL_HEIGHT) -> int:
    """The smallest of 1, 2, 5, 10, 20, … that keeps labels on `n` positions from overlapping."""
    room = pixels / max(n, 1)
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if factor * scale * room >= label_pixels or factor * scale >= max(n, 1):
                return factor * scale
        scale *= 10


def ticks(texts: Sequence[str], pixels: int | float, vertical: bool) -> tuple[list[int], list[str]]:
    """Tick positions and texts for token labels along `pixels`; labels across lie at 45 degrees."""
    stride = tick_stride(len(texts), pixels, LABEL_HEIGHT if vertical else SLANTED_LABEL_WIDTH)
    places = list(range(0, len(texts), stride))
    return places, [tick_label(texts[place]) for place in places]


def hover_texts(labels: Sequence[str], raw: Sequence[str] | None) -> list[str]:
    """Place, token and, where it reads differently, the raw token."""
    texts = []
    for place, label in enumerate(labels):
        text = f"{place}: <b>{hover_label(label)}</b>"
        if raw is not None and raw[place] != label:
            text += f" (raw {hover_label(raw[place])})"
        texts.append(text)
    return texts
