"""Which long text: a sample, a pasted one, or a file. Visitors' own are kept by their hash."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.long_texts import ENCODINGS, SAMPLES, read_text
from explorer.models import TextError
from explorer.text import clean
from explorer.ui import address, long_place
from explorer.ui.long_kept import DIGITS, keep_text, kept_text
from explorer.ui.words import plain, short

FROM = {"sample": "A sample", "paste": "Paste", "file": "File"}
REFUSED = "long file refused"
SHOWN_IN_FIELD = "long paste is"
LEVEL = """<style>[data-testid="stMain"] [data-testid="stButtonGroup"] button {
  min-height: 2.5rem; }</style>"""
"""Buttons as tall as the select boxes beside them, so that the labels of a row stand in a line."""


class LongText(NamedTuple):
    """A text, what it is called, and the hash that stands for it."""

    name: str
    text: str
    digest: str


def choose(row: DeltaGenerator) -> LongText:
    """The text to look at, chosen in a row of controls and, where it is the reader's, below it.

    Ends the page with a sentence where there is none yet.
    """
    st.html(LEVEL)
    with row:
        kind = _choose_kind()
        if kind == "sample":
            return _sample()
    address.start("doc", "", _digest)
    (_paste if kind == "paste" else _file)()
    address.finish("doc", "")
    digest = st.session_state["doc"]
    refused = st.session_state.pop(REFUSED, None)
    if refused:
        st.error(plain(refused), icon=":material/info:")
        address.stop()
    if not digest:
        st.info(
            "Paste a text, then press Ctrl+Enter or click beside the field."
            if kind == "paste"
            else "Choose a file.",
            icon=":material/info:",
        )
        address.stop()
    kept = kept_text(digest)
    if kept is None:
        st.warning(
            "The text of this link is not here any more: the app keeps the last few texts in "
            "memory, as long as it runs. Paste or upload it again, and the link's view comes back.",
            icon=":material/link_off:",
        )
        address.stop()
    name, text = kept
    if kind == "file":
        st.caption(plain(name))
    return LongText(name, text, digest)


def _choose_kind() -> str:
    address.start("from", "sample", address.one_of("from", FROM.__contains__, "Showing a sample."))
    if st.session_state["from"] not in FROM:
        st.session_state["from"] = "sample"
    st.segmented_control(
        "Text",
        list(FROM),
        key="from",
        format_func=FROM.__getitem__,
        required=True,
        on_change=long_place.forget,
    )
    address.finish("from", "sample")
    return str(st.session_state["from"])


def _sample() -> LongText:
    first = next(iter(SAMPLES))
    known = SAMPLES.__contains__
    address.start(
        "sample", first, address.one_of("sample", known, f"Showing “{SAMPLES[first].title}”.")
    )
    if st.session_state["sample"] not in SAMPLES:
        st.session_state["sample"] = first
    st.selectbox(
        "Sample",
        list(SAMPLES),
        key="sample",
        format_func=lambda name: f"{SAMPLES[name].title} · {SAMPLES[name].tokens:,} tokens",
        on_change=long_place.forget,
        help="These come with Python; nothing is fetched. The counts are MiniLM's, about.",
        width=310,
    )
    address.finish("sample", first)
    name = str(st.session_state["sample"])
    text = _sample_text(name)
    return LongText(SAMPLES[name].title, text, hashlib.sha256(text.encode()).hexdigest()[:DIGITS])


@st.cache_resource(max_entries=16, show_spinner=False)
def _sample_text(name: str) -> str:
    return SAMPLES[name].text


def _paste() -> None:
    state = st.session_state
    if state.get(SHOWN_IN_FIELD) != state["doc"] or "long_paste" not in state:
        kept = kept_text(state["doc"]) if state["doc"] else None
        state["long_paste"] = "" if kept is None else kept[1]
        state[SHOWN_IN_FIELD] = state["doc"]
    st.text_area("Your text", key="long_paste", height=160, on_change=_pasted)


def _pasted() -> None:
    text, _ = clean(st.session_state["long_paste"])
    _take("Pasted text.", text)


def _file() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.file_uploader(
            "A file of text: txt, md, source code …",
            key="long_file",
            on_change=_uploaded,
            help="Read here and kept in memory only.",
        )
        if st.session_state["long_file"] is not None:
            st.selectbox(
                "Read as",
                ["", *ENCODINGS],
                key="long_encoding",
                format_func=lambda name: ENCODINGS.get(name, "found by itself"),
                on_change=_uploaded,
                help="Letters that look wrong? The file may be in another encoding.",
                width=240,
            )


def _uploaded() -> None:
    state = st.session_state
    file = state["long_file"]
    if file is None:
        return
    try:
        found = read_text(file.getvalue(), file.name, state.get("long_encoding") or None)
    except TextError as error:
        state[REFUSED] = str(error)
        return
    name = f"{short(file.name, 40)}, read as {found.encoding_title}"
    _take(" ".join((f"{name}.", *found.notes)), found.text)


def _take(name: str, text: str) -> None:
    """Makes a visitor's text the one that is shown."""
    before = st.session_state.get("doc", "")
    digest = keep_text(name, text) if text.strip() else ""
    st.session_state["doc"] = digest
    st.session_state[SHOWN_IN_FIELD] = digest
    if digest != before:
        long_place.forget()


def _digest(given: str) -> str:
    if not re.fullmatch(f"[0-9a-f]{{{DIGITS}}}", given):
        raise ValueError(
            f"The link asks for text “{given[:60]}”, which is no text's number. Choose a text."
        )
    return given
