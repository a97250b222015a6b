"""The four demonstrations of the Masks page, on one query of the reader's own text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st

from explorer.attention import Attention
from explorer.figures.compared import Panel, compared_rows
from explorer.mask_lessons import (
    fully_masked_row,
    last_token_changed,
    without_padding,
    zero_instead_of_minus_inf,
    zeroed_after_softmax,
)
from explorer.masks import causal
from explorer.ui import controls, frame, width
from explorer.ui.chart import chart
from explorer.ui.mask_rule import Built
from explorer.ui.mask_views import Row, as_array, name_of
from explorer.ui.words import plain, share, tiny

WORDS_AND_PICTURE = (2.0, 3.0)
DEMOS = {
    "zero": "Zero instead of −∞",
    "after": "Zeroing after softmax",
    "row": "A row without a key",
    "causal": "Causal means causal",
}
Drawing = Callable[[], None]
"""Draws a demonstration's picture where it is called."""
ONE_TOKEN = "One token alone has no other to be kept from. Write a longer text."


@dataclass(frozen=True, eq=False)
class Scene:
    """What the demonstrations act on: one head and one query of a mask that forbids something."""

    built: Built
    attention: Attention
    head: int
    query: int
    demo: str
    """One of DEMOS."""

    @property
    def name(self) -> str:
        """The query, for a sentence."""
        return f"**{plain(self.built.lesson.tokens.texts[self.query])}** (query {self.query})"

    @property
    def forbidden(self) -> npt.NDArray[np.bool_]:
        """True for the keys that the query may not use."""
        found: npt.NDArray[np.bool_] = (~self.attention.allowed(rows=[self.query])[0, 0]).numpy()
        return found

    def bars(self, key: str, panels: Sequence[Panel], marked: npt.NDArray[np.bool_]) -> None:
        """The panels as a picture."""
        tokens = self.built.lesson.tokens
        figure = _rows(
            panels,
            tokens.texts,
            unit="weight",
            theme=frame.theme(),
            marked=marked,
            marked_name="forbidden key",
            raw=tokens.raws,
        )
        _chart(figure, key, f"Weights of query {name_of(self.built, self.query)}", panels)


def choose_scene(built: Built, head: int) -> Scene:
    """Which demonstration, the query it follows, and a mask that forbids it something."""
    attention, rule = built.lesson.attention, built.name
    if bool(built.allowed[built.live].all()) and len(built.lesson.tokens) > 1:
        attention, rule = (
            attention.replace(mask=causal()),
            "causal, as the rule above forbids nothing",
        )
    allowed = attention.allowed()[0]
    live = built.live.nonzero().flatten().tolist()
    telling = [at for at in live if bool(allowed[at].any()) and not bool(allowed[at].all())]
    default = (telling or live)[min(1, len(telling or live) - 1)]
    st.subheader("Four demonstrations, computed on your text", anchor=False)
    label = "What goes wrong, and what does not"
    demo = controls.choose_one("demo", DEMOS, label=label, buttons=True)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        texts = built.lesson.tokens.texts
        query = controls.choose_place(
            "query", "Query to follow", live, lambda at: f"{at}  {texts[at]}", default
        )
        st.caption(f"Head {head} · mask: {plain(rule)}")
    return Scene(built, attention, head, query, demo)


def show(scene: Scene) -> None:
    """The chosen demonstration: words, and a picture beside them."""
    demos: dict[str, Callable[[Scene], Drawing | None]] = {
        "zero": _zero_instead,
        "after": _zeroed_after,
        "row": _row_without_key,
        "causal": _causal_means_causal,
    }
    words, picture = width.side_by_side(WORDS_AND_PICTURE)
    with words:
        draw = demos[scene.demo](scene)
    if draw is not None:
        with picture:
            draw()


def _zero_instead(scene: Scene) -> Drawing | None:
    """(a) A score of 0 is not a score of −∞."""
    if len(scene.built.lesson.tokens) == 1:
        st.info(ONE_TOKEN)
        return None
    found = zero_instead_of_minus_inf(scene.attention, scene.built.live)
    leaked = float(found.leaked[scene.head, scene.query])
    if scene.forbidden.any():
        said = (
            f"{scene.name} may not use {_keys(int(scene.forbidden.sum()))}. With a score of 0 in "
            f"place of −∞, **{_share(leaked)}** of its weight still goes there, since e⁰ is 1."
        )
    else:
        said = f"{scene.name} may use every key, so nothing changes here. Choose another query."
    st.markdown(f"{said} The worst row of all heads loses {_share(found.most)}.")
    rows = (
        as_array(found.right[scene.head, scene.query]),
        as_array(found.wrong[scene.head, scene.query]),
    )
    there = "forbidden keys: "
    panels = [
        Panel(
            "−∞, as it should be", there + _share(float(rows[0][scene.forbidden].sum())), rows[0]
        ),
        Panel("0 instead", there + _share(leaked), rows[1]),
    ]
    return lambda: scene.bars("zero_instead", panels, scene.forbidden)


def _zeroed_after(scene: Scene) -> Drawing | None:
    """(b) After softmax it is too late, unless the row is divided anew."""
    if len(scene.built.lesson.tokens) == 1:
        st.info(ONE_TOKEN)
        return None
    found = zeroed_after_softmax(scene.attention, scene.built.live)
    at = scene.head, scene.query
    total = float(found.sums[at])
    st.markdown(
        f"The forbidden keys had their part in the sum, so what is left of {scene.name} sums to "
        f"**{total:.3f}** and not to 1; in the worst row of all heads to {found.least:.3f}. "
        "Dividing each row by its sum gives what masking before softmax gives: the largest "
        f"difference anywhere is **{tiny(found.difference)}**."
    )
    if total == 0:
        st.markdown("This row has nothing left: 0/0 is not a number (NaN).")
    rows = [as_array(row[at]) for row in (found.zeroed, found.renormalised, found.right)]
    titles = "Zeroed after", "÷ its sum", "Masked before"
    panels = [
        Panel(title, f"sum {_sum(row)}", row) for title, row in zip(titles, rows, strict=True)
    ]
    return lambda: scene.bars("zeroed_after", panels, scene.forbidden)


def _row_without_key(scene: Scene) -> Drawing:
    """(c) A query that may use nothing."""
    found = fully_masked_row(scene.attention, scene.query)
    st.markdown(
        f"Now forbid every key to {scene.name}. Softmax over nothing is undefined, so our "
        "attention refuses, in every head, unless zeros are asked for."
    )
    rows = [as_array(row[scene.head]) for row in (found.zeros, found.plain, found.large_negative)]
    each = float(rows[2][0])
    st.markdown(
        "Where zeros are asked for, weights and output are **0**, and the row is flagged: it does "
        "not sum to 1. Code that does not look gets NaN from softmax over −∞ alone, or, with −10⁹ "
        f"in place of −∞, **{_share(each)}** on each forbidden key."
    )
    titles = "Zeros, flagged", "−∞ only", "−10⁹ for −∞"
    panels = [
        Panel(title, f"sum {_sum(row)}", row) for title, row in zip(titles, rows, strict=True)
    ]
    return lambda: scene.bars("row_without_key", panels, np.ones(len(rows[0]), bool))


def _causal_means_causal(scene: Scene) -> Drawing | None:
    """(d) The last token changes: who notices?"""
    built = scene.built
    tokens = built.alone.tokens
    last = len(tokens) - 1
    others = [at for at in range(last) if tokens.raws[at] != tokens.raws[last]]
    if not others:
        st.info("This needs two tokens that differ. Write a longer text.")
        return None
    becomes = _choose_other(others, tokens.texts, last)
    record = built.alone.attention
    mine = without_padding(built.lesson.attention, built.live).replace(on_masked_row="zero")
    mine = record.replace(mask=mine.mask)
    ways = {"Causal": record.replace(mask=causal()), "No mask": record.replace(mask=None)}
    if built.name not in ("causal", "everything"):
        ways["Your rule"] = mine
    moved = {name: as_array(last_token_changed(way, becomes)) for name, way in ways.items()}
    earlier = {name: row[:last] for name, row in moved.items()}
    most = float(earlier["Causal"].max())
    free = int((moved["No mask"] > 0).sum())
    free_said = f"all {free}" if free == last + 1 else f"{free} of {last + 1}"
    least = tiny(float(moved["No mask"].min()))
    by = "exactly **0**" if most == 0 else f"up to **{tiny(most)}**"
    st.markdown(
        f"**{plain(tokens.texts[last])}** turns into **{plain(tokens.texts[becomes])}**. Under the "
        f"causal mask the outputs of the {last} before it move by {by}. "
        f"Without a mask {free_said} move, the one that moves least by {least}."
    )
    panels = [
        Panel(name, f"{int((row > 0).sum())} of {last + 1} move", row)
        for name, row in moved.items()
    ]
    figure = _rows(
        panels,
        tokens.texts,
        unit="change of output",
        theme=frame.theme(),
        marked=np.arange(last + 1) == last,
        marked_name="the token that changed",
        raw=tokens.raws,
        what="Query",
    )

    def draw() -> None:
        _chart(figure, "causal_means_causal", "How far each output moves", panels)
        st.caption("The largest change of any number in the output of any head, before W_O.")

    return draw


def _choose_other(others: list[int], texts: Sequence[str], last: int) -> int:
    label = f"The last token, {last} {texts[last]}, turns into"
    return controls.choose_place(
        "becomes", label, others, lambda at: f"{at}  {texts[at]}", others[0], width=260
    )


@st.cache_resource(max_entries=256, show_spinner=False)
def _rows(panels: Sequence[Panel], labels: Sequence[str], **given: Any) -> go.Figure:
    return compared_rows(panels, labels, **given)


def _chart(figure: go.Figure, key: str, alt: str, panels: Sequence[Panel]) -> None:
    said = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    chart(figure, key, f"{alt}. {said}.", width="stretch")


def _keys(count: int) -> str:
    return "1 key" if count == 1 else f"{count} keys"


def _share(value: float) -> str:
    return "exactly 0" if value == 0 else share(value).replace(" ", "\N{NO-BREAK SPACE}")


def _sum(row: Row) -> str:
    total = float(row.sum())
    return "NaN" if np.isnan(total) else "0" if total == 0 else f"{total:.3f}"
