"""The query or the key that the page Compare shows in full, and those that differ most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import streamlit as st
from torch import Tensor

from explorer.divergence import LN2, Compared
from explorer.figures.compared import Panel, compared_rows
from explorer.paired import Paired
from explorer.ui import address, frame
from explorer.ui.chart import chart
from explorer.ui.compare_sides import Chosen
from explorer.ui.plotly_click import Click
from explorer.ui.row_of_weights import telling
from explorer.ui.words import plain, short

MOST = 5
MOST_BARS, FEWER_BARS = 64, 32
"""Past so many keys bars would be hairlines; so many are drawn then."""


class Place(NamedTuple):
    """A query's row or a key's column."""

    axis: Literal["q", "k"]
    at: int

    @property
    def name(self) -> str:
        """As it stands in the address: q5, k3."""
        return f"{self.axis}{self.at}"


def choose_place(pair: Paired) -> Place:
    """The chosen query or key; the query that differs most where none was chosen."""
    assert pair.compared is not None
    labels = {"q": pair.left.query_labels, "k": pair.left.key_labels}
    names = {
        f"{axis}{at}": f"{'Query' if axis == 'q' else 'Key'} {at}  {short(text)}"
        for axis, texts in labels.items()
        for at, text in enumerate(texts)
    }
    most = (pair.compared.queries(1) or [min(1, len(labels["q"]) - 1)])[0]
    titles = {"": f"The query that differs most: {most}  {short(labels['q'][most])}", **names}

    def parse(given: str) -> str:
        if given not in names:
            raise ValueError(
                f"The link asks for at “{given[:60]}”. It is q and the number of a query, as q0, "
                "or k and that of a key. Showing the query that differs most."
            )
        return given

    address.start("at", "", parse)
    state = st.session_state
    # Set anew each time: Streamlit remembers the label, which another text changes.
    state["at"] = state["at"] if state["at"] in titles else ""
    st.selectbox(
        "Look at",
        list(titles),
        key="at",
        format_func=lambda name: titles.get(name, name),
        help="A click on a row of one of the pictures chooses its query.",
    )
    address.finish("at", "")
    chosen = state["at"] or f"q{most}"
    return Place("q" if chosen[0] == "q" else "k", int(chosen[1:]))


def choose_cell(click: Click, n_queries: int) -> None:
    """The callback of a click on a picture: its row."""
    if 0 <= click.y < n_queries:
        st.session_state["at"] = f"q{click.y}"


def most_different(pair: Paired) -> None:
    """Buttons for the queries and keys that differ most."""
    found = pair.compared
    assert found is not None
    _buttons(
        f"**Queries that differ most**, with their divergence in nats (at most {LN2:.3f})",
        "q",
        found.queries(MOST),
        found.per_query,
        pair.left.query_labels,
    )
    _buttons(
        "**Keys that differ most**, with the mean of |right − left| over the queries",
        "k",
        found.keys(MOST),
        found.per_key,
        pair.left.key_labels,
    )


def _buttons(
    title: str, axis: str, places: list[int], values: Tensor, labels: tuple[str, ...]
) -> None:
    st.markdown(title)
    if not places:
        st.caption("None differs.")
        return
    with st.container(horizontal=True, gap="small"):
        for at in places:
            label = f"{plain(short(labels[at], 16))} · {float(values[at]):.3f}"
            name = f"{axis}{at}"
            st.button(label, key=f"show {name}", on_click=_show, args=(name,), help=_help(name))


def _help(name: str) -> str:
    kind = "query" if name[0] == "q" else "key"
    return f"Shows {kind} {name[1:]} of both sides below."


def _show(name: str) -> None:
    st.session_state["at"] = name


def show_place(pair: Paired, place: Place, sides: Sequence[Chosen]) -> None:
    """The chosen query's two rows, or the chosen key's two columns, as bars side by side."""
    found = pair.compared
    assert found is not None
    queries, keys = pair.left.query_labels, pair.left.key_labels
    index = (place.at, slice(None)) if place.axis == "q" else (slice(None), place.at)
    rows = [each.weights[index].float().numpy() for each in (pair.left, pair.right)]
    labels = keys if place.axis == "q" else queries
    raws = pair.left.raw_keys if place.axis == "q" else pair.left.raw_queries
    ours, theirs = (side.measure for side in sides)
    where = "on the left and on the right"
    if ours != theirs:
        where = f"on the left ({ours}) and on the right ({theirs})"
    if place.axis == "q":
        value = float(found.per_query[place.at])
        told = "not compared: one side has no such row" if np.isnan(value) else f"{value:.3f} nats"
        name, what = plain(short(queries[place.at])), "Key"
        st.markdown(
            f"Where **{name}** (query {place.at}) looks, {where}. "
            f"Divergence of the two rows: **{told}**"
        )
    else:
        name, what = plain(short(keys[place.at])), "Query"
        st.markdown(
            f"How much each query gives to **{name}** (key {place.at}), {where}. "
            f"Mean of |right − left|: **{float(found.per_key[place.at]):.3f}**"
        )
    some = telling(rows, MOST_BARS, FEWER_BARS)
    figure = compared_rows(
        [
            Panel(f"{name} · {side.title}", f"sum {float(np.nansum(row)):.3f}", row[some])
            for name, side, row in zip(("Left", "Right"), sides, rows, strict=True)
        ],
        [labels[at] for at in some],
        unit=f"{ours}, share of 1" if ours == theirs else "share of 1",
        theme=frame.theme(),
        raw=[raws[at] for at in some],
        what=what,
    )
    alt = f"Two rows of bars, left and right: {what.lower()}s in the order of the text."
    chart(figure, "compare_bars", alt, width="stretch")
    if len(some) < len(labels):
        st.caption(f"The {len(some)} of {len(labels)} with the largest values on either side.")


def compared_words(found: Compared) -> str:
    """All numbers of a comparison as a table."""

    def number(value: int | float, digits: str = ".3f") -> str:
        return "–" if np.isnan(value) else f"{value:{digits}}".replace("-", "−")

    lines = [
        "| The two maps | |",
        "| --- | ---: |",
        f"| Divergence, mean over queries | **{number(found.divergence)}** nats of {LN2:.3f} |",
        f"| Cosine | {number(found.cosine)} |",
        f"| Correlation | {number(found.correlation)} |",
        f"| Entropy, left → right | {number(found.entropy_left)} → {number(found.entropy_right)} "
        f"nats ({number(found.entropy_change, '+.3f')}) |",
        f"| Largest difference of a cell | {number(found.largest_difference)} |",
    ]
    return "\n".join(lines)
