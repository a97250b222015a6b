"""A mask painted cell by cell on the page What if, over the one that the model has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from explorer.capture import Stack
from explorer.figures.masks import mask_maps
from explorer.figures.still import still
from explorer.painting import LARGEST, decode_painted, encode_painted, flipped
from explorer.ui import controls, frame, width
from explorer.ui.still_picture import still_picture
from explorer.ui.words import short

PAINTED = "draft_paint"
LARGEST_MAP = 420  # pixels


def paint(stack: Stack, layers: Sequence[int] | None) -> str:
    """The painted mask as a code; "" where this text can have none."""
    n = len(stack.query_tokens)
    if n != len(stack.key_tokens) or n > LARGEST:
        st.info(
            f"A mask can be painted for one text of at most {LARGEST} tokens; here there are {n}.",
            icon=":material/info:",
        )
        return ""
    layer = stack.layer_numbers[0] if layers is None else layers[0]
    own = stack.layer(layer).allowed()[0].cpu()
    table = _painted(own)
    with st.container():
        _picture(stack, table, own)
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            texts = [short(text) for text in stack.query_tokens.texts]
            places = [
                controls.choose_token(label, f"draft_paint_{label.lower()}", texts)
                for label in ("Query", "Key")
            ]
            st.button(
                "Forbid this cell" if bool(table[places[0], places[1]]) else "Allow this cell",
                key="draft_flip",
                on_click=_flip,
                args=(own, *places),
            )
            st.button("Start from the model's mask", key="draft_own", on_click=_store, args=(own,))
            every = torch.ones(n, n, dtype=torch.bool)
            st.button("Allow all", key="draft_all", on_click=_store, args=(every,))
    return encode_painted(table)


def _painted(own: Tensor) -> Tensor:
    """The mask painted so far; before, and for another text, the model's own."""
    kept = st.session_state.get(PAINTED)
    table = decode_painted(kept) if kept else own
    return table if len(table) == len(own) else own


def _picture(stack: Stack, table: Tensor, own: Tensor) -> None:
    allowed = table.numpy()
    ones = allowed.astype(np.float32)
    tokens = stack.query_tokens
    figure = mask_maps(
        allowed,
        ones,
        ones,
        labels=tokens.texts,
        raw=tokens.raws,
        theme=frame.theme(),
        width_px=min(width.column(), LARGEST_MAP),
    ).mask
    figure.update_layout(title_text="")
    n = len(table)
    alt = f"The painted mask: {int(table.sum())} of {n * n} cells may be used."
    still_picture(
        still(figure, "paint_map"),
        key="paint_map",
        alt=alt,
        on_click=lambda click: _flip(own, click.y, click.x),
    )


def _flip(own: Tensor, query: int, key: int) -> None:
    if 0 <= min(query, key) and max(query, key) < len(own):
        _store(flipped(_painted(own), query, key))


def _store(table: Tensor) -> None:
    st.session_state[PAINTED] = encode_painted(table)
