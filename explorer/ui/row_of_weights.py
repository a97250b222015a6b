"""One query's weights: which keys get a bar, which are named in a sentence, and the bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import streamlit as st

from explorer.figures.bars import row_bars
from explorer.tokens import Tokens
from explorer.ui import frame
from explorer.ui.chart import chart
from explorer.ui.words import share

Weights = npt.NDArray[np.float32]  # (keys,)

WORTH_NAMING = 0.005  # a weight that would not read as "0 %"


def telling(rows: Sequence[Weights], most: int, fewer: int) -> list[int]:
    """The keys that get a bar, in their order: all up to `most`, else `fewer` of most weight.

    The same for all rows: what has most weight in one of them.
    """
    largest = np.max([np.nan_to_num(row) for row in rows], axis=0)
    if len(largest) <= most:
        return list(range(len(largest)))
    found: list[int] = np.argsort(-largest, kind="stable")[:fewer].tolist()
    return sorted(found)


def worth_naming(weights: Weights, most: int) -> list[int]:
    """The keys of the largest weights, the largest first, without those that are hardly any."""
    order: list[int] = np.argsort(-np.nan_to_num(weights), kind="stable")[:most].tolist()
    return [at for at in order if weights[at] >= WORTH_NAMING]


def weight_bars(
    key: str,
    alt: str,
    weights: Weights,
    forbidden: npt.NDArray[np.bool_],
    tokens: Tokens,
    shown: list[int],
    *,
    what: str,
    width_px: int,
    max_px: int,
    top: float | None = None,
) -> None:
    """A bar for each key of `shown`, and what the others have together. `what` are the keys."""
    part = tokens.select(shown)
    figure = row_bars(
        weights[shown],
        part.texts,
        theme=frame.theme(),
        forbidden=forbidden[shown],
        raw_key=part.raws,
        max_value=top,
        width_px=width_px,
        max_px=max_px,
    )
    chart(figure, key, alt)
    if len(shown) < len(weights):
        rest = float(np.nansum(weights) - np.nansum(weights[shown]))
        st.caption(
            f"The {len(shown)} {what} with the largest weights, in the order of the text. The "
            f"other {len(weights) - len(shown)} have {share(rest)} together."
        )
