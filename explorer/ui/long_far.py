"""Who looks far away, and where: the largest weights beyond a distance, each to go to."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from explorer.far_links import far_links
from explorer.models import memory_errors
from explorer.tokens import Tokens
from explorer.ui import address, controls, lesson, long_kept, long_place
from explorer.ui.long_place import Window
from explorer.ui.long_run import Seen
from explorer.ui.words import share, short

MOST = 50
CLOSE = 24
"""Tokens shown about a query and a key that are gone to."""
DISTANCES = (8, 32, 128, 512, 2048, 8192)
WHO = {"all": "All heads", "one": "This head"}


def show(seen: Seen, head: int) -> None:
    """The list; a choice in it goes to that pair, in its head."""
    n = len(seen.tokens)
    st.subheader("Who looks far away, and where", anchor=False)
    if n < 2:
        st.caption("A text of one token has no other to look at.")
        return
    options = tuple(d for d in DISTANCES if d < n) or (1,)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        fit = min(options, key=lambda option: abs(option - 128))
        distance = lesson.pick("far", "At least so many tokens away", options, fit)
        who = controls.choose_one("who", WHO, label="Of", buttons=True)
    heads = [head] if who == "one" else None

    def work() -> pd.DataFrame:
        with memory_errors():
            return far_links(seen.overview, distance, MOST, heads)

    slot = long_kept.window_slot(*seen.key, "far", distance, head if heads else None)
    found: pd.DataFrame = slot.filled(work)
    if not len(found):
        st.caption("No weight goes so far here. Choose a shorter distance or another mask.")
        return
    table = _named(found, seen.tokens)
    st.dataframe(
        table,
        hide_index=True,
        key="far_table",
        on_select=lambda: _chosen(found, n),
        selection_mode="single-row",
        height=min(36 * len(table) + 38, 330),
    )
    st.selectbox(
        "Go to a link",
        range(len(found)),
        index=None,
        key="far_link",
        placeholder="Choose one …",
        format_func=lambda at: _in_words(table, at),
        on_change=lambda: _picked(found, n),
    )
    st.caption(f"The {len(found)} largest weights at that distance, exact, over the whole text.")


def _named(found: pd.DataFrame, tokens: Tokens) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "head": found["head"],
            "query": [f"{at:,} {short(tokens.texts[at])}" for at in found["query"]],
            "key": [f"{at:,} {short(tokens.texts[at])}" for at in found["key"]],
            "weight": [share(float(weight)) for weight in found["weight"]],
            "tokens away": [f"{away:,}" for away in found["distance"]],
        }
    )


def _in_words(table: pd.DataFrame, at: int) -> str:
    row = table.iloc[at]
    return f"head {row['head']}: {row['query']} → {row['key']}, {row['weight']}"


def _chosen(found: pd.DataFrame, n: int) -> None:
    rows = st.session_state["far_table"]["selection"]["rows"]
    if rows and rows[0] < len(found):
        _go(found, rows[0], n)


def _picked(found: pd.DataFrame, n: int) -> None:
    at = st.session_state["far_link"]
    if at is not None:
        _go(found, at, n)
        st.session_state["far_link"] = None


def _go(found: pd.DataFrame, at: int, n: int) -> None:
    head, query, key = (int(found.iloc[at][name]) for name in ("head", "query", "key"))
    address.put(head=head)
    rows, keys = (long_place.around(place, CLOSE, n) for place in (query, key))
    long_place.enter(Window(rows, keys))
    long_place.choose_pair(query, key)
