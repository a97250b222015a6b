"""Up to six heads at once on the page Compare, each a click away from being left or right."""

from __future__ import annotations

import math

import streamlit as st

from explorer.figures.strip import heads_strip, strip_alt
from explorer.sides import named_heads
from explorer.similarity import HeadDistances, head_distances
from explorer.ui import address, cached, frame, width
from explorer.ui.chart import chart
from explorer.ui.compare_fields import SideName
from explorer.ui.compare_sides import Chosen, choose_from
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.words import plain

MOST = 6
QUERIES = 64
"""Queries that the search for similar heads looks at, evenly spread."""
TITLES = {"left": "Left", "right": "Right"}
Head = tuple[int, int]


@st.cache_resource(max_entries=16, show_spinner="Comparing all heads …")
def distances(_chosen: Chosen, *key: object) -> HeadDistances:
    """How far all heads of a stack are from each other; `key` names the capture and the stack."""
    return head_distances(_chosen.stack, QUERIES)


def strip(left: Chosen, right: Chosen) -> None:
    """Small maps of the left side's model: chosen ones, or those most and least like its head."""
    st.subheader("More heads of the left model", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        given = _choose_heads(left)
        to = _choose_target()
    notes = _notes(left, given)
    heads, words = list(notes), list(notes.values())
    if not heads:
        st.caption("There is no other head to compare with.")
        return
    if not given:
        first = f"L{left.look.layer}H{left.look.head}"
        st.caption(
            f"The heads most like {first}, and those least like it, by the mean divergence of "
            "their rows on this text, in nats. All as the model has them, whatever mask, scale or "
            "weighing is chosen above. Name others in the field. A click puts a head on the "
            f"{to} side."
        )
    else:
        st.caption(
            f"As the model has them; with the mean divergence from L{left.look.layer}"
            f"H{left.look.head}, in nats. A click puts a head on the {to} side."
        )
    _picture(left, heads, words, to)
    same = left.key[:5] == right.key[:5] and left.stack.name == right.stack.name
    if to == "right" and not same:
        st.caption(
            "The right side has another model or text; a head of that number is shown there."
        )
    with st.container(horizontal=True, gap="small"):
        for layer, head in heads:
            st.button(
                f"L{layer}H{head} → {to}",
                key=f"strip L{layer}H{head}",
                on_click=choose_from,
                args=(to, layer, head),
            )


def _choose_heads(left: Chosen) -> tuple[Head, ...]:
    def parse(given: str) -> str:
        try:
            named_heads(given, left.stack, MOST)
        except ValueError as error:
            raise ValueError(
                f"The link asks for strip “{given[:60]}”. {error} Showing the nearest and the "
                "farthest heads."
            ) from error
        return given

    address.start("strip", "", parse)
    text = st.text_input(
        "Heads, up to six",
        key="strip",
        placeholder="L0H2, L3H5 … (empty: the nearest and the farthest)",
        width=330,
    )
    address.finish("strip", "")
    try:
        return named_heads(text, left.stack, MOST)
    except ValueError as error:
        st.warning(plain(str(error)), icon=":material/info:")
        return ()


def _choose_target() -> SideName:
    parse = address.one_of("click_to", lambda given: given in TITLES, "Showing “Right”.")
    address.start("click_to", "right", parse)
    st.segmented_control(
        "A click makes it",
        list(TITLES),
        key="click_to",
        format_func=TITLES.__getitem__,
        required=True,
    )
    address.finish("click_to", "right")
    return "left" if st.session_state["click_to"] == "left" else "right"


def _notes(left: Chosen, given: tuple[Head, ...]) -> dict[Head, str]:
    """The heads of the strip, each with how far it is from the left side's."""
    found = distances(left, *left.key, left.stack.name)
    own = (left.look.layer, left.look.head)
    order = found.like(*own)
    far = {head: f"{distance**2:.3f} nats" for head, distance in order}
    far[own] = "the left one"
    if given:
        return {head: far.get(head, "not known") for head in given}
    half = math.ceil(MOST / 2)
    chosen = order if len(order) <= MOST else [*order[:half], *order[-(MOST - half) :]]
    return {head: far[head] for head, _ in chosen}


def _picture(left: Chosen, heads: list[Head], notes: list[str], to: SideName) -> None:
    small = cached.grid(left.capture, left.stack.name, *left.key)
    barred = small.forbidden
    figure = heads_strip(
        [small.maps[layer, head] for layer, head in heads],
        heads,
        notes,
        theme=frame.theme(),
        forbidden=[barred[layer, min(head, barred.shape[1] - 1)] for layer, head in heads],
        width_px=_whole_width() - 24,
    )
    alt = strip_alt(heads, notes)
    chart(figure, "compare_strip", alt)
    cell_clicks("compare_strip", "compare_strip_click", lambda click: _clicked(click, heads, to))


def _whole_width() -> int:
    """The page's width in pixels; on a phone that is one column's."""
    return (
        width.column()
        if width.column() < width.USUAL - width.STEP * 3
        else (2 * width.column() + 60)
    )


def _clicked(click: Click, heads: list[Head], to: SideName) -> None:
    data = click.customdata or ()
    if len(data) == 2 and all(type(number) is int for number in data) and tuple(data) in heads:
        choose_from(to, int(data[0]), int(data[1]))
