"""The text beside the map: the passages of the window's queries and keys, marked where they lie.

However long the text is, only a window's own passage and a little around it goes to the browser.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import streamlit as st

from explorer.tokens import Tokens
from explorer.ui import long_place
from explorer.ui.long_find import Found
from explorer.ui.long_place import Span, Window, spelt
from explorer.ui.long_run import Seen
from explorer.ui.words import plain, share, short

AROUND = 24
"""Tokens shown before and after a passage."""
MOST = 600
"""Tokens of a passage that are shown: of a longer one its beginning and its end."""
LEAD = 8
"""Tokens of a passage before its chosen word; further up they are left out."""
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Signs that change the direction of the text after them."""
STYLE = """<style>
.passage { max-height: 11rem; overflow-y: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 0.375rem;
  padding: 0.5rem 0.75rem; font-size: 0.875rem; line-height: 1.5; unicode-bidi: plaintext; }
.passage mark { background: color-mix(in srgb, #3b9abc 26%, transparent); color: inherit; }
.passage mark.word { background: #ffa94d; color: #10141b; padding: 0 1px; border-radius: 2px; }
.passage u { text-decoration: underline 2px #d9480f; text-underline-offset: 3px; }
.passage i { opacity: 0.75; }
</style>"""


def show(seen: Seen, window: Window, found: Found) -> None:
    """The passages of the window's queries and keys; one where they are the same."""
    pair = long_place.pair() or (None, None)
    if window.rows == window.keys:
        both = [at for at in pair if at is not None]
        _passage(seen, "Queries and keys", window.rows, both, found)
        return
    _passage(seen, "Queries (rows)", window.rows, [] if pair[0] is None else [pair[0]], found)
    _passage(seen, "Keys (columns)", window.keys, [] if pair[1] is None else [pair[1]], found)


def say_pair(seen: Seen, head: int) -> None:
    """The chosen query and key in a sentence, with the weight."""
    pair = long_place.pair()
    if pair is None:
        return
    query, key = pair
    attention = seen.overview.attention
    rows, keys = slice(query, query + 1), slice(key, key + 1)
    names = [f"“**{plain(short(seen.tokens.texts[at]))}**” ({at:,})" for at in pair]
    if not bool(attention.allowed([head], rows, keys).all()):
        st.markdown(f"{names[0]} may not look at {names[1]} here: there is no weight.")
        return
    weight = float(attention.weights([head], rows, keys)[0, 0, 0])
    away = query - key
    side = "before it" if away > 0 else "after it"
    where = f"{abs(away):,} token{'s' * (abs(away) != 1)} {side}" if away else "itself"
    st.markdown(f"Query {names[0]} gives key {names[1]}, {where}, **{_weight(weight)}**.")


def _weight(weight: float) -> str:
    return f"{share(weight)} of its weight" if weight >= 5e-4 else f"a weight of {weight:.2g}"


def _passage(seen: Seen, title: str, span: Span, words: Sequence[int], found: Found) -> None:
    """One passage in a box that scrolls, from the chosen word on where that lies far down."""
    start, stop = span
    words = [at for at in words if start <= at < stop]
    if found.now is not None and start <= found.now[0] < stop:
        words += range(*found.now)
    about, around = "", AROUND
    if words and min(words) - start > LEAD:
        start, around, about = min(words) - LEAD, 0, ", from the chosen word on"
    if stop - start > MOST:
        about += f", {MOST // 2} tokens from either end"
    st.markdown(f"**{title}** {spelt(span)}{about}")
    st.html(
        STYLE + f'<div class="passage" tabindex="0" role="region" aria-label="{title}">'
        f"{passage(seen.text, seen.tokens, (start, stop), words, found.places, around)}</div>"
    )


def passage(
    text: str,
    tokens: Tokens,
    span: Span,
    words: Sequence[int],
    found: Sequence[Span],
    around: int = AROUND,
) -> str:
    """The text of some tokens as safe HTML: marked, with some tokens before it and after.

    `words` are tokens to mark more strongly; `found`, runs of tokens to underline.
    """
    start, stop = span
    parts = [(start, stop)]
    if stop - start > MOST:
        parts = [(start, start + MOST // 2), (stop - MOST // 2, stop)]
    before, after = max(start - around, 0), min(stop + AROUND, len(tokens))
    pieces = ["… " if before else "", _plain(text, tokens, (before, start))]
    for place, part in enumerate(parts):
        if place:
            pieces.append(f"<i>\n… {parts[1][0] - parts[0][1]:,} tokens …\n</i>")
        pieces += ["<mark>", _marked(text, tokens, part, words, found), "</mark>"]
    pieces += [_plain(text, tokens, (stop, after)), " …" if after < len(tokens) else ""]
    return "".join(pieces)


def _plain(text: str, tokens: Tokens, span: Span) -> str:
    return _safe(_between(text, tokens, span))


def _safe(text: str) -> str:
    """The text with nothing in it that is markup, or that turns what follows about."""
    return html.escape(_TURNING.sub(lambda sign: f"⟨U+{ord(sign[0]):04X}⟩", text))


def _between(text: str, tokens: Tokens, span: Span) -> str:
    """The characters from a token's beginning to the next run's, so that runs join seamlessly."""
    start, stop = span
    return text[_begins(text, tokens, start) : _begins(text, tokens, stop)]


def _begins(text: str, tokens: Tokens, at: int) -> int:
    """Where a token begins in the text; for one that stands for none, where the next does."""
    while at < len(tokens):
        known = tokens.spans[at]
        if known is not None:
            return known[0]
        at += 1
    return len(text)


def _marked(
    text: str, tokens: Tokens, span: Span, words: Sequence[int], found: Sequence[Span]
) -> str:
    """A passage with single words and found places marked inside it."""
    tags: dict[int, tuple[str, str]] = {}
    for first, last in found:
        for at in range(max(first, span[0]), min(last, span[1])):
            tags[at] = ("<u>", "</u>")
    for at in words:
        if span[0] <= at < span[1]:
            tags[at] = ('<mark class="word">', "</mark>")
    pieces, done = [], span[0]
    for at in sorted(tags):
        word = tokens.spans[at]
        if word is None:
            continue
        opening, closing = tags[at]
        pieces += [
            _plain(text, tokens, (done, at)),
            opening,
            _safe(text[slice(*word)]),
            closing,
            _safe(text[word[1] : _begins(text, tokens, at + 1)]),
        ]
        done = at + 1
    return "".join([*pieces, _plain(text, tokens, (done, span[1]))])
