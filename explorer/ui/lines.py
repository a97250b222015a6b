"""The Lines page: what is drawn between the tokens of one layer, and the same in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from explorer.capture import Stack
from explorer.figures.colors import head_colors
from explorer.ui import address, controls, frame
from explorer.ui.token_lines import LinesView, Pinned, token_lines
from explorer.ui.words import plain, share, short

MOST_TOKENS = 512
LEAST = "0.1"
PAIRS: dict[str, tuple[int, int] | None] = {
    "all": None,
    "AA": (0, 0),
    "AB": (0, 1),
    "BA": (1, 0),
    "BB": (1, 1),
}
PAIR_TITLES = {"all": "All", "AA": "A → A", "AB": "A → B", "BA": "B → A", "BB": "B → B"}
LINKS = 25


@st.fragment
def show(stack: Stack) -> None:
    """The layer, the lines of its heads, and the strongest of them as a table."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layer = controls.choose_number("layer", list(stack.layer_numbers))
        pair = _choose_pair(stack)
        hide = controls.choose_yes("hide_special", "Hide special tokens")
    rows, keys = controls.visible(stack, hide)
    if max(len(rows), len(keys)) > MOST_TOKENS:
        st.info(
            f"Lines can be told apart for up to {MOST_TOKENS} tokens; here are "
            f"{max(len(rows), len(keys))}. Shorten the text, or look at it on the Heads page.",
            icon=":material/info:",
        )
        return
    record = stack.layer(layer)
    weights = record.weights(None, rows, keys).float().cpu().numpy()  # (n_heads, rows, keys)
    queries, columns = stack.query_tokens.select(rows), stack.key_tokens.select(keys)
    view = _chosen(len(weights), len(rows), len(keys))
    token_lines(
        weights,
        queries,
        columns,
        head_colors(len(weights), frame.theme()),
        view,
        key="token_lines",
        pair=PAIRS[pair],
        on_change=lambda found: _keep(found, len(weights)),
    )
    for name, default in (("heads", ""), ("least", LEAST), ("token", "")):
        address.finish(name, default)
    _in_words(weights, queries.texts, columns.texts, view)


def _choose_pair(stack: Stack) -> str:
    """Which text the queries and which the keys are of, where there are two."""
    there = set(stack.query_tokens.sources) | set(stack.key_tokens.sources)
    if not {0, 1} <= there or stack.name == "cross":
        return "all"
    return controls.choose_one("pairs", PAIR_TITLES, label="Between texts", buttons=True)


def _chosen(n_heads: int, n_q: int, n_k: int) -> LinesView:
    """What the address or the picture says; what is not there any more is left out."""
    address.start("heads", "", _heads_parser(n_heads))
    address.start("least", LEAST, _least)
    address.start("token", "", _token_parser(n_q, n_k))
    state = st.session_state
    given = state["heads"]
    heads = tuple(range(n_heads)) if given == "" else _numbers(given)
    kept = tuple(head for head in heads if head < n_heads)
    token = state["token"]
    pinned = Pinned(token[0], int(token[1:])) if token else None
    if pinned is not None and pinned.at >= (n_q if pinned.side == "q" else n_k):
        pinned, state["token"] = None, ""
    if len(kept) < len(heads):
        state["heads"] = _written(kept) if kept else ""
        kept = kept or tuple(range(n_heads))
    return LinesView(kept, float(state["least"]), pinned)


def _keep(view: LinesView, n_heads: int) -> None:
    """What the reader chose in the picture, into the page's memory."""
    state = st.session_state
    state["heads"] = "" if len(view.heads) == n_heads else _written(view.heads)
    state["least"] = f"{view.least:.4g}"
    state["token"] = f"{view.token.side}{view.token.at}" if view.token else ""


def _written(heads: tuple[int, ...]) -> str:
    return ",".join(map(str, heads)) if heads else "none"


def _numbers(heads: str) -> tuple[int, ...]:
    return () if heads == "none" else tuple(int(head) for head in heads.split(","))


def _heads_parser(n_heads: int) -> Callable[[str], str]:
    def parse(given: str) -> str:
        parts = given.split(",")
        fit = all(p.isascii() and p.isdigit() and int(p[:9]) < n_heads for p in parts)
        if given != "none" and not fit:
            raise ValueError(
                f"The link asks for heads “{given[:60]}”. There are 0 to {n_heads - 1}, written "
                "as 0,3,5. Showing all heads."
            )
        return given

    return parse


def _least(given: str) -> str:
    try:
        fits = 0 <= float(given) <= 1
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"The link asks for least “{given[:60]}”. It is a weight between 0 and 1. Showing "
            f"lines from {LEAST} on."
        )
    return given


def _token_parser(n_q: int, n_k: int) -> Callable[[str], str]:
    def parse(given: str) -> str:
        side, at = given[:1], given[1:10]
        count = {"q": n_q, "k": n_k}.get(side, 0)
        if not (at.isascii() and at.isdigit() and int(at) < count):
            raise ValueError(
                f"The link asks for token “{given[:60]}”. It is q and the number of a query, or k "
                "and that of a key. Showing all lines."
            )
        return given

    return parse


def _in_words(
    weights: npt.NDArray[np.float32],
    queries: tuple[str, ...],
    keys: tuple[str, ...],
    view: LinesView,
) -> None:
    """The strongest lines of the heads shown, of the pinned token where there is one."""
    heads = list(view.heads)
    shown = np.nan_to_num(weights[heads])
    about = "The strongest lines"
    if view.token is not None:
        side, at = view.token
        only = np.zeros_like(shown)
        place = (slice(None), at) if side == "q" else (slice(None), slice(None), at)
        only[place] = shown[place]
        shown = only
        about += f" of {'query' if side == 'q' else 'key'} {at}, "
        about += plain(short((queries if side == "q" else keys)[at]))
    order = np.argsort(-shown, axis=None, kind="stable")[:LINKS]
    places = [np.unravel_index(n, shown.shape) for n in order if shown.flat[n] >= view.least]
    st.markdown(f"**{about}**, as a table")
    if not places:
        st.caption("No line is strong enough. Lower the weight from which lines are drawn.")
        return
    st.dataframe(
        pd.DataFrame(
            [
                (
                    f"H{heads[h]}",
                    f"{q} {queries[q]}",
                    f"{k} {keys[k]}",
                    share(float(shown[h, q, k])),
                )
                for h, q, k in places
            ],
            columns=["head", "query", "key", "weight"],
        ),
        hide_index=True,
        height=min(36 * len(places) + 38, 300),
    )
    st.caption(
        "A weight says how much of a key's value goes into one head's output for this query. It "
        "does not say how much the key matters for what the model predicts."
    )
