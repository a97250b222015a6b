"""The four pictures of the Masks page, what is checked, and a query's numbers as a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st
from torch import Tensor

from explorer.figures.domain import head_map_alt
from explorer.figures.masks import mask_maps
from explorer.figures.still import Still, still
from explorer.mask_lessons import (
    difference_from_alone,
    pictures,
    without_padding,
)
from explorer.ui import frame, width
from explorer.ui.lesson import proof
from explorer.ui.mask_rule import Built, clicked
from explorer.ui.still_picture import still_picture
from explorer.ui.words import plain, tiny

NAMES = ("mask_map", "scores_map", "masked_map", "weights_map")
SMALLEST_MAP, LARGEST_MAP = 200, 480  # pixels
MOST_SIDE_BY_SIDE = 16  # tokens: with more, cells of four maps in a row are too small to hit
GAP = 8  # pixels between two pictures
SPARE = 8  # pixels a map may be wider than planned: the page's width is rounded down
UNDER_MASK = "Which keys each query may use."
UNDER_SCORES = "q·k times the scale: every pair has one."
UNDER_MASKED = "Where the mask forbids, the score becomes −∞."
UNDER_WEIGHTS = "softmax of each row: e to the −∞ is 0."

Row = npt.NDArray[np.float32]


def say_rule(built: Built) -> None:
    """The whole rule in words, and how much it lets through."""
    count, of = _let_through(built)
    left_out = "" if bool(built.live.all()) else ", rows of padding left out"
    st.markdown(f"Rule: **{plain(built.name)}**  \n{count} of {of} cells may be used{left_out}")


def _let_through(built: Built) -> tuple[int, int]:
    live = built.live
    return int(built.allowed[live].sum()), int(live.sum()) * len(live)


def four_pictures(built: Built, head: int) -> None:
    """Mask, scores, masked scores and weights of one head; the first one is painted by clicks."""
    tokens, live = built.lesson.tokens, built.live
    count, of = _let_through(built)
    shown = pictures(built.lesson.attention, head)
    drawn = partial(
        _maps,
        shown.allowed.numpy(),
        as_array(shown.scores),
        as_array(shown.weights),
        labels=tokens.texts,
        raw=tokens.raws,
        padded=(~live).numpy(),
        selected=built.brush,
        theme=frame.theme(),
    )
    maps = _fitting(drawn, len(tokens))
    weights = np.where(live.numpy()[:, None], as_array(shown.weights), np.nan)
    scores = np.where(live.numpy()[:, None], as_array(shown.scores), np.nan)
    masked = np.where(shown.allowed.numpy(), scores, np.nan)
    labels = tokens.texts, tokens.texts
    alts = (
        f"Mask: {built.name}. {count} of {of} cells may be used; the rest is forbidden.",
        head_map_alt(f"head {head}", "scores", *labels, scores),
        "After the mask. " + head_map_alt(f"head {head}", "scores", *labels, masked),
        head_map_alt(f"head {head}", "weights", *labels, weights),
    )
    under_mask = f"{UNDER_MASK} Click a cell to paint it." if built.paints else UNDER_MASK
    unders = (under_mask, UNDER_SCORES, UNDER_MASKED, UNDER_WEIGHTS)
    clicks = (lambda click: clicked(built, click), None, None, None)
    parts = list(zip(NAMES, maps, alts, unders, clicks, strict=True))
    # Two pairs: four in a row where there is room, else two and two, else one above the other.
    with st.container(horizontal=True, gap="xsmall", key="four_pictures"):
        for pair in (parts[:2], parts[2:]):
            with st.container(horizontal=True, gap="xsmall", width="content"):
                for name, picture, alt, under, on_click in pair:
                    with st.container(width=picture.width, gap=None):
                        still_picture(picture, key=name, alt=alt, on_click=on_click)
                        st.caption(under)


@st.cache_resource(max_entries=64, show_spinner=False)
def _maps(
    allowed: npt.NDArray[np.bool_], scores: Row, weights: Row, **given: Any
) -> tuple[Still, ...]:
    maps = mask_maps(allowed, scores, weights, **given)
    return tuple(still(figure, name) for name, figure in zip(NAMES, maps, strict=True))


def _fitting(drawn: Callable[..., tuple[Still, ...]], tokens: int) -> tuple[Still, ...]:
    """Four maps side by side where they fit, else two, or one on a phone."""
    column = width.column()
    four = (2 * column + 64 - 3 * GAP) // 4
    if four >= SMALLEST_MAP and tokens <= MOST_SIDE_BY_SIDE:
        maps = drawn(width_px=min(four, LARGEST_MAP))
        if maps[0].width <= four + SPARE:
            return maps
    return drawn(width_px=min(column, LARGEST_MAP))


def checked(built: Built) -> None:
    """The invariants, and what of the rule needs saying."""
    masked = built.live & ~built.allowed.any(-1)
    if bool(masked.any()):
        rows = ", ".join(name_of(built, at) for at in masked.nonzero().flatten().tolist()[:6])
        st.warning(
            f"No key is left for query {rows}{' …' if int(masked.sum()) > 6 else ''}. "
            "Rows of zeros stand there, a convention: see “A row without a key” below.",
            icon=":material/flag:",
        )
    proof(built.lesson)
    if built.in_batch and not bool(built.live.all()):
        table = without_padding(built.lesson.attention, built.live).mask
        alone = built.alone.attention.replace(mask=table, on_masked_row="zero")
        off = difference_from_alone(alone, built.lesson.attention, built.live)
        padding_used = bool(built.allowed[built.live][:, ~built.live].any())
        why = (
            "This rule lets padding in, so what the text gives depends on what it is batched with."
            if padding_used
            else "Padding is kept out, so the batch changes nothing."
        )
        st.caption(
            f"**In the batch and alone:** the outputs of this text differ by at most {tiny(off)}. "
            f"{why}"
        )


def as_table(built: Built, head: int, query: int) -> None:
    """The chosen query's row of the four pictures as a table."""
    with st.expander(
        "This query as a table", icon=":material/table:", key="mask_table", on_change="rerun"
    ) as box:
        if not box.open:
            return
        shown = pictures(built.lesson.attention, head)
        rows = {
            "Key": [f"{at} {text}" for at, text in enumerate(built.lesson.tokens.texts)],
            "May be used": ["yes" if cell else "no" for cell in shown.allowed[query].tolist()],
            "Score": [f"{value:.4f}" for value in shown.scores[query].tolist()],
            "Masked score": [
                f"{value:.4f}" if cell else "−∞"
                for value, cell in zip(
                    shown.masked_scores[query].tolist(),
                    shown.allowed[query].tolist(),
                    strict=True,
                )
            ],
            "Weight": [f"{value:.4f}" for value in shown.weights[query].tolist()],
        }
        st.dataframe(pd.DataFrame(rows), hide_index=True)


def name_of(built: Built, position: int) -> str:
    return f"{position} ({plain(built.lesson.tokens.texts[position])})"


def as_array(values: Tensor) -> Row:
    found: Row = values.detach().float().cpu().numpy()
    return found
