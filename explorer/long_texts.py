"""Long texts: a file's bytes read as text, and samples that every Python installation has."""

from __future__ import annotations

import codecs
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from charset_normalizer import CharsetMatch, from_bytes

from explorer.text import TextError, clean

MOST_BYTES = 5_000_000
ENCODINGS = {
    "utf_8": "UTF-8",
    "utf_16": "UTF-16",
    "utf_32": "UTF-32",
    "cp1252": "Latin (Windows-1252)",
    "cp932": "Japanese (Shift-JIS)",
    "euc_jp": "Japanese (EUC-JP)",
    "gb18030": "Chinese (GB 18030)",
    "big5": "Chinese (Big5)",
    "cp949": "Korean (EUC-KR)",
    "cp1251": "Cyrillic (Windows-1251)",
    "koi8_r": "Cyrillic (KOI8-R)",
    "cp866": "Cyrillic (DOS)",
    "cp1250": "Central European (Windows-1250)",
    "cp1253": "Greek (Windows-1253)",
    "cp1254": "Turkish (Windows-1254)",
    "cp1255": "Hebrew (Windows-1255)",
    "cp1256": "Arabic (Windows-1256)",
    "cp1257": "Baltic (Windows-1257)",
    "mac_roman": "Latin (old Macintosh)",
}
"""What is looked for, by Python's names."""
_OTHERS = ["ascii", "utf_16_le", "utf_16_be"]
_ALIKE = 5.0
"""Percent within which two encodings fit equally well."""
_JAPANESE = ("cp932", "euc_jp")
_CHINESE_KOREAN = ("gb18030", "big5", "cp949")
_KANA = re.compile("[ぁ-んァ-ヴ]{2}")
_WORD = re.compile(r"[^\W\d_]+")
_WESTERN = frozenset(
    "àáâãäåæçèéêëìíîïñòóôõöøùúûüœßÿÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜŒ€£§©®°«»„“”‘’–—…¡¿ºª·×±µ²³½¼™\xa0"
)
"""What Western texts have beyond ASCII; Š, ž, ð and the like stand for other encodings' letters."""
_BOMS = (
    (codecs.BOM_UTF8, "utf_8", "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf_32", "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf_32", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf_16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf_16", "utf-16"),
)
_KINDS = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a zip archive (Word and Excel files are such, too)"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "a database"),
)
_MOST_CONTROLS = 0.01
"""Share of control characters up to which a file is text."""


@dataclass(frozen=True)
class ReadText:
    """A file as text, its line ends `\\n`, and how it was read."""

    text: str
    encoding: str
    """Python's name, a key of ENCODINGS."""
    notes: tuple[str, ...] = ()
    """Sentences for the user: what was not as it should be."""

    @property
    def encoding_title(self) -> str:
        """The encoding as people call it."""
        return ENCODINGS.get(self.encoding, self.encoding)


def read_text(data: bytes, name: str, encoding: str | None = None) -> ReadText:
    """The text of a file: .txt, .md, source code, in any common encoding.

    Which one it is charset-normalizer finds, where the file's first bytes and UTF-8 do not
    settle it; `encoding`, a key of ENCODINGS, overrules it. Raises TextError for what is empty,
    too large or no text.
    """
    if len(data) > MOST_BYTES:
        raise TextError(
            f"{name} has {len(data) / 1e6:.1f} MB, and at most {MOST_BYTES / 1e6:.0f} MB are read. "
            "Please choose a part of it."
        )
    for start, kind in _KINDS:
        if data.startswith(start):
            raise TextError(
                f"{name} is {kind}, not text. Please save its text as a .txt file, or paste it."
            )
    text, found = _decoded(data, name, encoding)
    notes = []
    lost = text.count("\ufffd")
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    if not text.strip().strip("\0"):
        raise TextError(f"{name} is empty. Please choose a file with some text in it.")
    controls = sum(letter < " " and letter not in "\n\t\f" for letter in text)
    if controls > max(len(text) * _MOST_CONTROLS, 1):
        raise _no_text(name)
    if "\0" in text:
        notes.append("The file has NUL characters, which are shown as �.")
        text = text.replace("\0", "\ufffd")
    text, note = clean(text)
    notes += [] if note is None else [note]
    if lost and b"\xef\xbf\xbd" not in data:
        what = "1 place" if lost == 1 else f"{lost:,} places"
        notes.append(f"{what} could not be read as {ENCODINGS[found]} and shows �.")
    return ReadText(text, found, tuple(notes))


def _decoded(data: bytes, name: str, encoding: str | None) -> tuple[str, str]:
    """The text, and the encoding by its key in ENCODINGS."""
    if encoding is not None:
        if encoding not in ENCODINGS:
            raise ValueError(f'encoding: got "{encoding}"; there are {", ".join(ENCODINGS)}.')
        return data.decode(encoding, "replace"), encoding
    for mark, key, codec in _BOMS:
        if data.startswith(mark):
            return data.decode(codec, "replace"), key
    try:
        return data.decode("utf-8", "surrogatepass"), "utf_8"
    except UnicodeDecodeError as error:
        # Cut off in the middle of a character, as the last of many.
        cut = error.reason == "unexpected end of data" and not data[: error.start].isascii()
        if cut:
            return data.decode("utf-8", "replace"), "utf_8"
    match = _best(data)
    if match is None:
        raise _no_text(name)
    return data.decode(match[1], "replace"), match[0]


def _reads_western(data: bytes) -> bool:
    """Whether the bytes are Western words as Windows-1252: "Bär", "déjà vu", "10 €".

    Each word has letters of ASCII, or is a letter alone, and no sign stands inside a word. Bytes
    of other alphabets read so have words without any, and those of an old Macintosh have signs.
    """
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return False
    beyond = {letter for letter in text if not letter.isascii()}
    if not beyond <= _WESTERN:
        return False
    signs = "".join(letter for letter in beyond if not letter.isalpha() and letter not in "’·")
    if signs and re.search(rf"[^\W\d_][{re.escape(signs)}][^\W\d_]", text):
        return False
    return all(len(word) == 1 or any(map(str.isascii, word)) for word in _WORD.findall(text))


def _best(data: bytes) -> tuple[str, str] | None:
    """The encoding that fits best, by its key in ENCODINGS, and the codec."""
    matches: list[CharsetMatch] = []
    for cut in range(4):  # the last character may be cut off in the middle
        matches = list(from_bytes(data[: len(data) - cut], cp_isolation=[*ENCODINGS, *_OTHERS]))
        if matches and matches[0].percent_chaos < 2 * _ALIKE:
            break
    western = _reads_western(data)
    if not matches:
        return ("cp1252", "cp1252") if western else None
    first = matches[0]
    if western:
        # A few words tell the library too little: it weighs how often letters follow each other.
        own = [m.percent_coherence for m in matches if "cp1252" in m.could_be_from_charset]
        if max(m.percent_coherence for m in matches) <= max(own, default=0.0) + _ALIKE:
            return "cp1252", "cp1252"

    def alike(match: CharsetMatch, times: int = 1) -> bool:
        return (
            match.percent_chaos <= first.percent_chaos + times * _ALIKE
            and match.percent_coherence >= first.percent_coherence - times * _ALIKE
        )

    codec = first.encoding
    if codec in _CHINESE_KOREAN:
        # Japanese bytes may read as Chinese or Korean; the other way no kana come out.
        japanese = [each for each in matches if each.encoding in _JAPANESE and alike(each, 2)]
        kana = [each.encoding for each in japanese if _KANA.search(str(each))]
        codec = kana[0] if kana else codec
    elif codec not in _JAPANESE:
        # Encodings that give the same text are one match. Western texts are the commonest.
        common = any("cp1252" in each.could_be_from_charset for each in matches if alike(each))
        codec = "cp1252" if common else codec
    return ("utf_16" if codec.startswith("utf_16") else codec), codec


def _no_text(name: str) -> TextError:
    return TextError(
        f"{name} is not a text file, or is in an encoding not known here. Please save it as a .txt "
        "file in UTF-8."
    )


@dataclass(frozen=True)
class Sample:
    """A long text that comes with Python."""

    title: str
    about: str
    """What kind of text it is, and whose."""
    tokens: int
    """About how many tokens MiniLM makes of it."""
    load: Callable[[], str]

    @property
    def text(self) -> str:
        """The text itself, read now."""
        return self.load()


def _topic(name: str) -> Callable[[], str]:
    return lambda: str(importlib.import_module("pydoc_data.topics").topics[name])


def _source(module: str) -> Callable[[], str]:
    return lambda: inspect.getsource(importlib.import_module(module))


SAMPLES: Mapping[str, Sample] = MappingProxyType(
    {
        "running": Sample(
            "How Python runs a program", "Prose: Python's reference", 2_200, _topic("execmodel")
        ),
        "textwrap": Sample("textwrap.py", "Code: Python's library", 5_100, _source("textwrap")),
        "random": Sample("random.py", "Code: Python's library", 8_900, _source("random")),
        "types": Sample("Python's types", "Prose: Python's reference", 9_900, _topic("types")),
        "methods": Sample(
            "Special methods", "Prose: Python's reference", 17_500, _topic("specialnames")
        ),
        "argparse": Sample("argparse.py", "Code: Python's library", 24_400, _source("argparse")),
    }
)
"""Texts that every Python has, under the licence of the Python Software Foundation (PSF), by a
short name for links. Another version of Python has them a little longer or shorter."""
