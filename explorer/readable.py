"""Text with everything in it visible, for labels."""

import unicodedata

_PICTURES = {"\n": "⏎", "\t": "⇥"}
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_JOINERS = frozenset("\u200c\u200d")
# Letters and symbols that have no ink of their own.
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def readable(text: str) -> str:
    """Text with everything in it visible: `⏎`, `⇥`, `·`, codes such as `U+202E`, `∅` if empty.

    A single space between other characters stays a space.
    """
    return "".join(_visible(text, at) for at in range(len(text))) or "∅"


def _visible(text: str, at: int) -> str:
    character = text[at]
    first, last = at == 0, at == len(text) - 1
    if character in _PICTURES:
        return _PICTURES[character]
    if character == " ":
        inside = not first and not last
        alone = inside and not text[at - 1].isspace() and not text[at + 1].isspace()
        return " " if alone else "·"
    # Joiners and variants of emoji and letters belong to the characters around them.
    if character in _JOINERS and not first and not last:
        return character
    if _is_variant(character) and not first:
        return character
    category = unicodedata.category(character)
    hidden = category in {"Cc", "Cf", "Cs", "Co", "Zs", "Zl", "Zp"} or character in _BLANKS
    if hidden or character in _BIDI or _is_variant(character) or _is_noncharacter(character):
        return f"U+{ord(character):04X}"
    if category[0] == "M" and first:
        return f"◌{character}"
    return character


def _is_variant(character: str) -> bool:
    """Whether the character only changes the look of the one before: a selector or a flag's tag."""
    code = ord(character)
    return 0xFE00 <= code <= 0xFE0F or 0xE0020 <= code <= 0xE007F or 0xE0100 <= code <= 0xE01EF


def _is_noncharacter(character: str) -> bool:
    # Unassigned characters are left alone: Python's table is often older than the emoji in use.
    return 0xFDD0 <= ord(character) <= 0xFDEF or ord(character) & 0xFFFE == 0xFFFE
