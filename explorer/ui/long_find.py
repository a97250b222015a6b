"""Find a word in the long text: its places, one after the other, as a query or as a key."""

from __future__ import annotations

import bisect
import re
from typing import NamedTuple

import streamlit as st

from explorer.tokens import Tokens
from explorer.ui import address, long_place
from explorer.ui.long_place import Span, Window
from explorer.ui.long_run import Seen
from explorer.ui.words import plain, short

MOST = 2000
"""Places that are looked at; the rest are counted only."""
LONGEST = 80
CLOSE = 48
"""Tokens shown about a place that is gone to."""


class Found(NamedTuple):
    """Where a word stands, in runs of tokens, and the place that is looked at now."""

    places: list[Span]
    now: Span | None = None


def choose(seen: Seen, window: Window) -> Found:
    """The word that is looked for, and where it stands."""
    address.start("find", "", lambda given: given[:LONGEST])
    word = st.text_input("Find in the text", key="find", on_change=_first)
    address.finish("find", "")
    if not word:
        return Found([])
    places, count = _places(seen.text, seen.tokens, word, *seen.key)
    if not places:
        st.caption(f"“{plain(short(word))}” is not in the text.")
        return Found([])
    address.start("hit", 0, address.number_of("hit", list(range(len(places)))))
    at = st.session_state["hit"] = min(st.session_state["hit"], len(places) - 1)
    address.finish("hit", 0)
    _walk(places, at, len(seen.tokens), window)
    more = f" The first {len(places):,} can be gone to." if count > len(places) else ""
    st.caption(f"Place {at + 1:,} of {count:,}, token {places[at][0]:,}.{more}")
    return Found(places, places[at])


def _walk(places: list[Span], at: int, n: int, window: Window) -> None:
    """To the next place or the one before, and to its rows or columns."""
    near, whole = long_place.around(places[at][0], CLOSE, n), (0, n)
    with st.container(horizontal=True, gap="xsmall"):
        for label, icon, by in (
            ("Previous", ":material/chevron_left:", -1),
            ("Next", ":material/chevron_right:", 1),
        ):
            st.button(label, icon=icon, on_click=_step, args=(by, places, n, window))
        st.button("Its row", on_click=long_place.jump, args=(Window(near, whole),))
        st.button("Its column", on_click=long_place.jump, args=(Window(whole, near),))


def _first() -> None:
    st.session_state["hit"] = 0


def _step(by: int, places: list[Span], n: int, window: Window) -> None:
    """To another place; a window about the present one goes along."""
    before = st.session_state["hit"]
    now = st.session_state["hit"] = (before + by) % len(places)
    old, new = (long_place.around(places[at][0], CLOSE, n) for at in (before, now))
    if old in window:
        long_place.jump(Window(*(new if side == old else side for side in window)))


@st.cache_resource(max_entries=32, show_spinner=False)
def _places(_text: str, _tokens: Tokens, word: str, *key: object) -> tuple[list[Span], int]:
    return places(_text, _tokens, word)


def places(text: str, tokens: Tokens, word: str) -> tuple[list[Span], int]:
    """The runs of tokens that hold a word, whatever its case, and how many there are in all."""
    if not word.strip():
        return [], 0
    known = [(span[0], span[1], at) for at, span in enumerate(tokens.spans) if span is not None]
    starts = [start for start, _, _ in known]
    found: list[Span] = []
    count = 0
    for match in re.finditer(re.escape(word.strip()), text, re.IGNORECASE):
        count += 1
        if len(found) == MOST:
            continue
        first = max(bisect.bisect_right(starts, match.start()) - 1, 0)
        if known[first][1] <= match.start():
            first += 1  # it begins in the space before a token
        last = bisect.bisect_left(starts, match.end()) - 1
        if first < len(known) and first <= last:
            found.append((known[first][2], known[last][2] + 1))
    return found, count
