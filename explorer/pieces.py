"""A tokenizer's raw tokens, spelt out and laid over the text they came from.

Only for tokenizers that give no offsets. The marks are those of the common families: `##ing`
(WordPiece), `Ġthe` (byte-level), `▁the` and `<0x0A>` (SentencePiece), `to@@` and `the</w>` (BPE).
"""

import re
import unicodedata
from collections.abc import Sequence

Span = tuple[int, int]

# Parts two words where no token holds the space between them. Python counts it as white space.
_GAP = "\x1f"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# How far ahead in the text a lost place is looked for, in characters.
_LOOK_AHEAD = 16


def _byte_letters() -> dict[str, int]:
    """The byte each letter of a byte-level vocabulary stands for (GPT-2's table).

    Printable Latin-1 stands for itself; the other bytes take the letters from U+0100 on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    letters.update({chr(0x100 + place): byte for place, byte in enumerate(others)})
    return letters


_BYTE_OF_LETTER = _byte_letters()


def spell_out(raws: Sequence[str], text: str = "") -> tuple[str, list[Span]]:
    """The text that raw tokens spell, and the characters of it that each one touches.

    Tokens that share the bytes of one character all touch it. `text`, where known, only helps to
    tell raw tokens that are the bytes of the text one by one.
    """
    byte_level = any("Ġ" in raw or "Ċ" in raw for raw in raws)
    word_piece = any(raw.startswith("##") and len(raw) > 2 for raw in raws[1:])
    word_ends = any(raw.endswith("</w>") for raw in raws)
    joined_by_at = any(raw.endswith("@@") for raw in raws)
    own_spaces = (
        byte_level or any("▁" in raw for raw in raws) or any(map(_BYTE_TOKEN.fullmatch, raws))
    )
    plain_bytes = _are_bytes_of(raws, text)

    spelt = bytearray()
    ranges: list[Span] = []  # in bytes
    joint = True  # nothing stands before the first token
    for raw in raws:
        body, ends_word = raw, True
        if plain_bytes:
            content, ends_word = raw.encode("latin-1"), False
        elif byte_token := _BYTE_TOKEN.fullmatch(raw):
            content, ends_word = bytes([int(byte_token[1], 16)]), False
        elif byte_level and all(letter in _BYTE_OF_LETTER for letter in raw):
            content, ends_word = bytes(_BYTE_OF_LETTER[letter] for letter in raw), False
        else:
            if word_piece and raw.startswith("##") and len(raw) > 2:
                body, joint = raw[2:], True
            elif word_ends:
                body, ends_word = raw.removesuffix("</w>"), raw.endswith("</w>")
            elif joined_by_at:
                body, ends_word = raw.removesuffix("@@"), not raw.endswith("@@")
            elif own_spaces:
                body, ends_word = raw.replace("▁", " "), False
            content = body.encode("utf-8", errors="replace")
        if not joint:
            spelt += _GAP.encode()
        ranges.append((len(spelt), len(spelt) + len(content)))
        spelt += content
        joint = not ends_word
    return _in_characters(bytes(spelt), ranges)


def _are_bytes_of(raws: Sequence[str], text: str) -> bool:
    """Whether the raw tokens are the UTF-8 bytes of the text, each as the letter of that number."""
    if not text or any(len(raw) != 1 or ord(raw) > 0xFF for raw in raws):
        return False
    # The text may go on: its end may have been cut off.
    return text.encode("utf-8", errors="replace").startswith("".join(raws).encode("latin-1"))


def _in_characters(spelt: bytes, ranges: Sequence[Span]) -> tuple[str, list[Span]]:
    """Bytes as text, and ranges of bytes as spans of the characters that they touch."""
    characters: list[str] = []
    character_of_byte: list[int] = []
    place = 0
    while place < len(spelt):
        for width in (1, 2, 3, 4):
            try:
                character = spelt[place : place + width].decode("utf-8")
            except UnicodeDecodeError:
                continue
            break
        else:  # half a character: some of its bytes are missing
            character, width = "\N{REPLACEMENT CHARACTER}", 1
        # Past the end a slice is shorter than asked.
        width = min(width, len(spelt) - place)
        character_of_byte += [len(characters)] * width
        characters.append(character)
        place += width
    character_of_byte.append(len(characters))
    spans = [
        (character_of_byte[start], character_of_byte[end - 1] + 1)
        if end > start
        else (character_of_byte[start], character_of_byte[start])
        for start, end in ranges
    ]
    return "".join(characters), spans


def align(spelt: str, spans: Sequence[Span], text: str) -> list[Span | None]:
    """Spans of the spelt text as spans of the true text; None where the place is not found.

    Case, accents and the amount of white space may differ between the two.
    """
    place_of: list[int | None] = []
    at = 0
    for letter in spelt:
        if letter == _GAP:
            place_of.append(None)
            continue
        if not letter.isspace():
            while at < len(text) and text[at].isspace():
                at += 1
        found = next(
            (
                place
                for place in range(at, min(len(text), at + _LOOK_AHEAD))
                if _base(text[place]) == _base(letter)
            ),
            None,
        )
        if letter.isspace() and found != at:
            # A space that the tokenizer put there itself.
            found = None
        place_of.append(found)
        if found is not None:
            at = found + 1
    aligned: list[Span | None] = []
    for start, end in spans:
        places = [place for place in place_of[start:end] if place is not None]
        lost = any(
            place is None and not letter.isspace()
            for place, letter in zip(place_of[start:end], spelt[start:end], strict=True)
        )
        aligned.append((places[0], places[-1] + 1) if places and not lost else None)
    return aligned


def _base(letter: str) -> str:
    """A letter without its case and accents; every white space is the same."""
    if letter.isspace():
        return " "
    return unicodedata.normalize("NFKD", letter)[0].casefold()
