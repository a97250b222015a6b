"""What the step-by-step page shows: the reader's text or a worked example, one head, one cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from explorer.capture import Stack
from explorer.masks import Mask, causal
from explorer.tokens import Tokens
from explorer.ui import address, controls, width
from explorer.ui.lesson import Lesson, choose_lesson
from explorer.worked import EXAMPLES

Value = TypeVar("Value", str, int)

OWN_TEXT = "text"
STARTS = {OWN_TEXT: "Your text"} | {name: each.title for name, each in EXAMPLES.items()}
MASKS = {"none": "None", "causal": "Causal"}
TIMES = (
    *("0.1", "0.125", "0.16", "0.2", "0.25", "0.32", "0.4", "0.5", "0.63", "0.8", "1"),
    *("1.25", "1.6", "2", "2.5", "3.2", "4", "5", "6.3", "8", "10"),
)
"""Factors on the scale, in equal steps of its logarithm but for rounding."""
FRESH = "scene is fresh"  # in session_state, after a click on another start


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene(Lesson):
    """A lesson with the mask and scale chosen, and the head that is looked at."""

    key_tokens: Tokens
    head: int
    plain_scale: float
    """The scale before the reader's factor."""
    times: str
    """The factor on the scale, as it is written."""
    is_example: bool

    @property
    def stack(self) -> Stack:
        """The same as a stack of one layer."""
        return Stack("lesson", self.tokens, self.key_tokens, (self.attention,), (0,), 1)

    @property
    def kv_head(self) -> int:
        """The key/value head that this head uses."""
        return self.head // (self.attention.n_heads // self.attention.n_kv_heads)


def choose_scene() -> Scene:
    """A start, and what belongs to it: text and vectors, head, mask and scale."""
    start = _choose_start()
    example = EXAMPLES.get(start)
    left, right = width.side_by_side((3.4, 1.0), "small")
    with left:
        if example is None:
            lesson = choose_lesson()
            key_tokens, default_mask = lesson.tokens, "none"
        else:
            tokens, key_tokens = Tokens.plain(example.queries), Tokens.plain(example.keys)
            about = f"worked example “{example.title}”, one head"
            lesson = Lesson(tokens, None, None, example.attention, about)
            default_mask = example.mask
            st.info(example.about, icon=":material/calculate:")
    with right:
        with st.container(horizontal=True, gap="small"):
            mask = _choose_mask(default_mask)
            heads = [str(head) for head in range(lesson.attention.n_heads)]
            head = choose_at("head", "Head", heads, 0) if len(heads) > 1 else 0
        times = _choose_times()
    rule: Mask | None = causal() if mask == "causal" else None
    scale = lesson.attention.scale
    assert scale is not None  # set on construction
    attention = lesson.masked(rule).attention.replace(scale=scale * float(times))
    return Scene(
        tokens=lesson.tokens,
        x=lesson.x,
        layer=lesson.layer,
        attention=attention,
        about=lesson.about,
        key_tokens=key_tokens,
        head=head,
        plain_scale=scale,
        times=times,
        is_example=example is not None,
    )


def choose_cell(scene: Scene) -> tuple[int, int]:
    """A query and a key, by their positions."""
    example = EXAMPLES.get(st.session_state["start"])
    opens = example.opens if example is not None else (min(1, len(scene.tokens) - 1), 0)
    row = choose_at("query", "Query (row)", scene.tokens.texts, opens[0])
    key = choose_at("key", "Key (column)", scene.key_tokens.texts, opens[1])
    st.session_state[FRESH] = False
    return row, key


def choose_at(name: str, label: str, texts: tuple[str, ...] | list[str], default: int) -> int:
    """One of some tokens or numbers, by position; the default where it is not there any more."""
    options = list(range(len(texts)))
    numbered = list(texts) == [str(option) for option in options]
    return controls.choose_place(
        name,
        label,
        options,
        lambda at: texts[at] if numbered else f"{at}  {texts[at]}",
        default,
        anew=bool(st.session_state.get(FRESH)),
        width=72 if numbered else 132,
    )


def _choose_start() -> str:
    what = f"Showing “{STARTS[OWN_TEXT]}”."
    address.start("start", OWN_TEXT, address.one_of("start", STARTS.__contains__, what))
    st.pills(
        "Start from your own text, or from an example worked out by hand",
        list(STARTS),
        key="start",
        format_func=STARTS.__getitem__,
        required=True,
        on_change=_begin_anew,
    )
    address.finish("start", OWN_TEXT)
    return str(st.session_state["start"])


def _begin_anew() -> None:
    """An example opens as it is meant: with its own mask and cell, and the plain scale."""
    st.session_state[FRESH] = True


def _choose_mask(default: str) -> str:
    parse = address.one_of("mask", MASKS.__contains__, f"Showing “{MASKS[default]}”.")
    address.start("mask", default, parse)
    if st.session_state.get(FRESH) or st.session_state["mask"] not in MASKS:
        st.session_state["mask"] = default
    st.segmented_control(
        "Mask",
        list(MASKS),
        key="mask",
        format_func=MASKS.__getitem__,
        required=True,
        wrap=True,
        help="None: every query may use every key. Causal: only keys up to its own position.",
    )
    address.finish("mask", default)
    return str(st.session_state["mask"])


def _choose_times() -> str:
    what = "It goes from 0.1 to 10. Showing 1."
    address.start("times", "1", address.one_of("times", TIMES.__contains__, what))
    if st.session_state.get(FRESH):
        st.session_state["times"] = "1"
    st.select_slider(
        "Scale: soft ← 1× → hard",
        TIMES,
        key="times",
        format_func=lambda times: f"{times}×",
        help="Multiplies every score. Above 1 the largest score takes nearly all weight (hard "
        "attention, a low temperature); below 1 the weights even out (soft, a high one).",
    )
    address.finish("times", "1")
    return str(st.session_state["times"])
