"""Two maps of the same queries and keys side by side, in one range of colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import streamlit as st

from explorer.figures.domain import head_map_alt, value_domain
from explorer.figures.heatmap import head_map
from explorer.tokens import Tokens
from explorer.ui import frame, width
from explorer.ui.chart import chart

LABELS = 110  # pixels that token labels take beside a map
SMALLEST, LARGEST = 200, 480  # pixels of a map's longer side


class OneOfTwo(NamedTuple):
    """One of the maps."""

    key: str
    heading: str
    """In Markdown."""
    name: str
    """For those who can't see it."""
    weights: npt.NDArray[np.float32]
    forbidden: npt.NDArray[np.bool_]


def two_maps(
    both: Sequence[OneOfTwo], queries: Tokens, keys: Tokens, *, tools: bool = False
) -> None:
    """Both maps, each under its heading."""
    top = max(
        value_domain(np.where(each.forbidden, np.nan, each.weights), "weights")[1] for each in both
    )
    for each, place in zip(both, st.columns(2, gap="large"), strict=True):
        figure = head_map(
            each.weights,
            query_labels=queries.texts,
            key_labels=keys.texts,
            raw_query=queries.raws,
            raw_key=keys.raws,
            kind="weights",
            theme=frame.theme(),
            forbidden=each.forbidden,
            padded_queries=np.array(queries.padding),
            value_range=(0.0, top),
            max_px=min(max(width.column() - LABELS, SMALLEST), LARGEST),
        )
        alt = head_map_alt(each.name, "weights", queries.texts, keys.texts, each.weights)
        with place:
            st.markdown(each.heading)
            chart(figure, each.key, alt, tools=tools)
