"""Continued texts side by side, each added token a button: a component of our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from explorer.figures.colors import ink
from explorer.ui.continuing_words import ordinal
from explorer.ui.frame import theme
from explorer.ui.what_if_words import probability

HERE = Path(__file__).parent


class Added(NamedTuple):
    """One added token."""

    piece: str
    """What it brings to the text, its space included."""
    name: str
    probability: float
    is_parting: bool
    """Whether it is the first that differs from the other side."""
    is_end: bool
    """Whether it ends the text."""


class Side(NamedTuple):
    """One continuation."""

    title: str
    added: tuple[Added, ...]


def continued_texts(
    prompt: str,
    sides: Sequence[Side],
    picked: int,
    *,
    key: str,
    on_pick: Callable[[int], None],
) -> None:
    """The text before and what was added to it; `on_pick` gets the place of a token clicked."""
    longest = max(len(side.added) for side in sides)

    def changed() -> None:
        at = st.session_state[key].token
        if isinstance(at, int) and not isinstance(at, bool) and 0 <= at < longest:
            on_pick(at)

    _component()(
        key=key,
        data={
            "prompt": prompt,
            "accent": ink(theme()).accent,
            "picked": picked,
            "sides": [
                {"title": side.title, "added": list(map(_described, range(longest), side.added))}
                for side in sides
            ],
        },
        on_token_change=changed,
    )


def _described(at: int, token: Added) -> dict[str, object]:
    space = token.piece[:1] == " " and len(token.piece) > 1
    share = probability(token.probability)
    words = f"{ordinal(at + 1)} added token: {token.name}, probability {share}"
    words += "; here the two part" if token.is_parting else ""
    words += "; it ends the text" if token.is_end else ""
    return {
        "space": space,
        "breaks": "\n" in token.piece,
        "text": token.name,
        "share": share,
        "tint": round(token.probability, 3),
        "parting": token.is_parting,
        "end": token.is_end,
        "words": words,
    }


@st.cache_resource
def _component() -> Callable[..., Any]:
    return st.components.v2.component(
        "continued_texts",
        html='<div class="both"></div>',
        css=(HERE / "continuing_text.css").read_text("utf-8"),
        js=(HERE / "continuing_text.js").read_text("utf-8"),
    )
