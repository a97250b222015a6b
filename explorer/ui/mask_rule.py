"""The builder on the Masks page: two rules and how they join, a batch of texts, a painted mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
import torch
from torch import Tensor

from explorer.mask_lessons import Join, Kind, Part, Side, combined, padded, padded_tokens, rule
from explorer.masks import Mask, causal
from explorer.models import ModelError, TextError
from explorer.painting import decode_painted, encode_painted, fitted, flipped
from explorer.ui import address, controls
from explorer.ui.lesson import Lesson, pick
from explorer.ui.plotly_click import Click
from explorer.ui.words import plain

KINDS: dict[Kind, str] = {
    "none": "None",
    "causal": "Causal",
    "padding": "Padding",
    "window": "Sliding window",
    "prefix": "Prefix",
    "custom": "Custom, painted",
}
ABOUT: dict[Kind, str] = {
    "none": "Every query may use every key.",
    "causal": "A query may use itself and what stands before it, never what comes after.",
    "padding": "Texts of a batch are filled up to one length; no query may use the filling. "
    "Its vectors are random here.",
    "window": "A query may use itself and the keys just before it, up to the window's size.",
    "prefix": "All queries may use the first keys; after them the mask is causal.",
    "custom": "You choose each cell: click it in the first picture, or use the row below.",
}
JOINS: dict[Join, str] = {"alone": "Alone", "and": "And", "or": "Or"}
SIDES: dict[Side, str] = {"right": "Right", "left": "Left"}
BATCH = "a dog barked\nbirds sing"
MOST_TEXTS = 6


@dataclass(frozen=True, eq=False)
class Built:
    """A mask and the text it acts on."""

    lesson: Lesson
    """The text, padded where it is one of a batch, under the mask."""
    alone: Lesson
    """The same text without padding and mask."""
    in_batch: bool
    paints: bool
    """Whether the painted mask is part of the rule."""
    painted: Tensor
    """(length, length)"""
    rule_with: Callable[[Tensor], Mask]
    """The whole rule with another painted mask in it."""

    @property
    def mask(self) -> Mask:
        """The whole rule."""
        assert self.lesson.attention.mask is not None  # `choose_mask` always sets one
        return self.lesson.attention.mask

    @property
    def name(self) -> str:
        """The rule in words."""
        name = self.mask.name
        return name[1:-1] if name.startswith("(") and name.endswith(")") else name

    @property
    def brush(self) -> tuple[int, int] | None:
        """The cell that the keyboard would paint."""
        state = st.session_state
        return (state["paint_query"], state["paint_key"]) if self.paints else None

    @property
    def live(self) -> Tensor:
        """True for the tokens that are not padding."""
        return ~torch.tensor(self.lesson.tokens.padding, dtype=torch.bool)

    @property
    def allowed(self) -> Tensor:
        """(length, length)"""
        return self.lesson.attention.allowed()[0]


def choose_mask(lesson: Lesson) -> Built:
    """The controls of the rule. Ends the page with a sentence where a batch can't be read."""
    with st.container(horizontal=True, gap="small"):
        first = _choose_part("", "Mask", "causal")
        join = controls.choose_one("join", JOINS, label="Combine", buttons=True)
        second = _choose_part("2", "With", "window") if join != "alone" else Part("none")
    kinds = dict.fromkeys([first.kind, second.kind] if join != "alone" else [first.kind])
    st.caption(" ".join(f"**{KINDS[kind]}:** {ABOUT[kind]}" for kind in kinds))
    side: Side = "right"
    alone, length = lesson, len(lesson.tokens)
    if "padding" in kinds:
        alone, side, length = _choose_batch(lesson)
    tokens = padded_tokens(alone.tokens, length, side)
    painted = _painted(length) if "custom" in kinds else torch.ones(length, length).bool()

    def rule_with(matrix: Tensor) -> Mask:
        masks = [rule(part, len(alone.tokens), side, matrix) for part in (first, second)]
        return combined(masks[0], join, masks[1])

    attention = padded(alone.attention, length, side)
    shown = Lesson(tokens, None, alone.layer, attention, alone.about).masked(rule_with(painted))
    paints = "custom" in kinds
    built = Built(shown, alone, "padding" in kinds, paints, painted, rule_with)
    if paints:
        _brush(built)
    return built


def _choose_part(suffix: str, label: str, default: Kind) -> Part:
    name = f"mask{suffix}"
    parse = address.one_of(name, lambda given: given in KINDS, f"Showing “{KINDS[default]}”.")
    address.start(name, str(default), parse)
    kind = st.selectbox(
        label, list(KINDS), key=name, format_func=lambda option: KINDS[option], width=170
    )
    address.finish(name, default)
    size = 1
    if kind == "window":
        size = pick(f"size{suffix}", "Keys in the window", range(1, 33), 2)
    elif kind == "prefix":
        size = pick(f"size{suffix}", "Keys in the prefix", range(33), 2)
    switch = f"not{suffix}"
    address.start(switch, False, address.yes(switch))
    with st.container(width="content", height="stretch", vertical_alignment="bottom"):
        negated = st.checkbox("Not", key=switch, help="Turns the rule round: allowed ↔ forbidden.")
    address.finish(switch, False)
    return Part(kind, size, negated)


def _choose_batch(lesson: Lesson) -> tuple[Lesson, Side, int]:
    """The text shown, the side of the padding, and the length of the batch."""
    with st.container(horizontal=True, gap="medium"):
        address.start("batch", BATCH, str)
        given = st.text_area(
            "Other texts of the batch, one a line",
            key="batch",
            height=96,
            width=320,
        )
        address.finish("batch", BATCH)
        side = controls.choose_one("side", SIDES, label="Padding stands", buttons=True)
        lines = [line for line in given.splitlines() if line.strip()]
        assert lesson.on is not None  # the page's own text came from choose_lesson
        try:
            others = [lesson.on(line) for line in lines[: MOST_TEXTS - 1]]
        except (TextError, ModelError) as error:
            st.error(plain(f"A text of the batch: {error}"), icon=":material/info:")
            address.stop()
        texts = [lesson, *others]
        length = max(len(text.tokens) for text in texts)
        shown = _choose_sequence(texts, length)
    if not others:
        st.info("A batch needs two texts. Write another one.", icon=":material/info:")
    if len(lines) >= MOST_TEXTS:
        st.info(f"A batch holds {MOST_TEXTS} texts here; the first {MOST_TEXTS - 1} lines count.")
    return texts[shown], side, length


def _choose_sequence(texts: Sequence[Lesson], length: int) -> int:
    """Which text of the batch is shown; at first the second, which has padding."""

    def named(number: int) -> str:
        tokens = texts[number].tokens
        words = " ".join(tokens.texts)
        short = words if len(words) <= 28 else words[:27] + "…"
        return f"{number}: {short} ({len(tokens)} + {length - len(tokens)} padding)"

    numbers = range(len(texts))
    default = min(1, numbers[-1])
    return controls.choose_place("sequence", "Text shown", numbers, named, default, width=320)


def _painted(length: int) -> Tensor:
    """The painted mask as it fits this text."""

    def parse(given: str) -> str:
        try:
            decode_painted(given)
        except ValueError as error:
            raise ValueError(
                f"The link's painted mask can't be read. {error} It starts with all cells allowed."
            ) from error
        return given

    address.start("paint", "", parse)
    address.finish("paint", "")
    written = st.session_state["paint"]
    before = len(decode_painted(written)) if written else length
    if before > length:
        st.caption(
            f"The mask was painted for {before} tokens, and there are {length} now: "
            "the rest is set aside and comes back with a longer text."
        )
    elif before < length:
        st.caption(
            f"The mask was painted for {before} tokens, and there are {length} now: "
            "its cells are kept, and the new ones are allowed."
        )
    return _kept(length)


def _brush(built: Built) -> None:
    """The painting by keyboard: a cell by its query and key, and whole masks to start from."""
    tokens, n = built.lesson.tokens, len(built.lesson.tokens)
    for name in ("paint_query", "paint_key"):
        st.session_state[name] = min(int(st.session_state.get(name, 0)), n - 1)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        query = controls.choose_token("Query (row)", "paint_query", tokens.texts)
        key = controls.choose_token("Key (column)", "paint_key", tokens.texts)
        cell = bool(built.painted[query, key])
        st.button(
            "Forbid this cell" if cell else "Allow this cell",
            key="paint_flip",
            icon=":material/block:" if cell else ":material/check:",
            on_click=flip,
            args=(built, query, key),
        )
        for label, table in (
            ("Allow all", torch.ones(n, n, dtype=torch.bool)),
            ("Forbid all", torch.zeros(n, n, dtype=torch.bool)),
            ("Start from causal", causal().block(n, n)),
        ):
            st.button(label, key=f"paint {label}", on_click=_store, args=(table,))
    note = st.session_state.pop("paint note", None)
    if note is not None:
        st.info(note, icon=":material/info:")


def clicked(built: Built, click: Click) -> None:
    """Paints the cell that was clicked in the picture of the mask."""
    n = len(built.lesson.tokens)
    if not (0 <= click.x < n and 0 <= click.y < n):
        return
    if not built.paints:
        st.toast("Choose the mask “Custom, painted” to paint cells.", icon=":material/brush:")
        return
    st.session_state["paint_query"], st.session_state["paint_key"] = click.y, click.x
    flip(built, click.y, click.x)


def flip(built: Built, query: int, key: int) -> None:
    """Turns one painted cell round, unless that would change nothing in the whole rule."""
    n = len(built.painted)
    # From the state: several clicks may come in before the page is built again.
    painted = _kept(n)
    changed = flipped(painted, query, key)
    before, after = (
        bool(built.rule_with(table).block(n, n, rows=[query], keys=[key])[0, 0])
        for table in (painted, changed)
    )
    if before == after:
        st.session_state["paint note"] = (
            "That cell is decided by the other rule, so painting it would change nothing."
        )
        return
    _store(changed)


def _kept(length: int) -> Tensor:
    """The painted mask of the state, fitted to this length; at first all is allowed."""
    written = st.session_state["paint"]
    return fitted(decode_painted(written), length) if written else torch.ones(length, length).bool()


def _store(table: Tensor) -> None:
    st.session_state["paint"] = "" if bool(table.all()) else encode_painted(table)
