"""The picture of a part of one head's map, worked out exactly when it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import streamlit as st

from explorer.figures.odd import FORBIDDEN
from explorer.maps import Picture, zoomed
from explorer.models import memory_errors
from explorer.tokens import Tokens
from explorer.ui import long_kept
from explorer.ui.long_place import Span, Window
from explorer.ui.long_run import SIZE, Seen, progressed

NOT_COMPUTED = "not computed: never read together"
CAUSAL_TOO = "forbidden by the mask, or never read together"
SLOW = 2e8
"""Weights of a window from which a bar is shown while it is computed."""
WORDS_IN_HOVER = 24
"""Tokens of a bin of which the tooltip can show the first few."""
AROUND = 3
"""Tokens before and after a single one in its tooltip."""


class Shown(NamedTuple):
    """The part of the map that is on the screen."""

    window: Window
    picture: Picture
    """Of one head: the first axis of its tensors has one entry."""
    values: npt.NDArray[np.float32]
    single: bool
    """Whether each bin is one query and one key."""


def picture_of(seen: Seen, head: int, window: Window) -> Picture:
    """The head's picture of a window, exactly; the whole is known, a part is computed anew."""
    place = st.empty()  # always there: what follows keeps its place, and a button the focus
    attention, whole = seen.overview.attention, seen.overview.picture
    n_q, n_k = attention.query_length, attention.key_length
    if window == Window((0, n_q), (0, n_k)):
        own = slice(head, head + 1)
        barred = whole.forbidden if len(whole.forbidden) == 1 else whole.forbidden[own]
        return Picture(whole.rows, whole.keys, whole.mean[own], whole.largest[own], barred)

    def work() -> Picture:
        (r0, r1), (k0, k1) = window
        slow = (r1 - r0) * (k1 - k0) > SLOW
        progress = progressed("This part") if slow else None
        with memory_errors():
            size = even_size(r1 - r0, k1 - k0)
            return zoomed(attention, *window, size, heads=[head], progress=progress)

    with place.container():
        slot = long_kept.window_slot(*seen.key, head, window)
        found: Picture = slot.filled(work)
    place.empty()
    return found


def even_size(rows: int, keys: int) -> int:
    """How many bins a side has, at most, so that bins of a few tokens are almost equally long."""

    def unevenness(size: int) -> float:
        total = 0.0
        for length in (rows, keys):
            each, longer = divmod(length, min(size, length))
            total += min(longer, size - longer) / size / each
        return total + (SIZE - size) / SIZE / 8  # fewer bins show less

    return min(range(SIZE // 2, SIZE + 1), key=unevenness)


def barred_name(seen: Seen) -> str:
    """Why bins hold no value."""
    if seen.whose.kind != "model" or seen.whose.whole:
        return FORBIDDEN
    ahead = seen.overview.attention.allowed([0], slice(0, 1), slice(1, 2))
    return NOT_COMPUTED if bool(ahead.all()) else CAUSAL_TOO


def words(text: str, tokens: Tokens, span: Span) -> str:
    """The text of some tokens as it was typed, cut; of one token with those around it."""
    start, stop = span
    if stop - start == 1:
        start, stop = max(start - AROUND, 0), min(stop + AROUND, len(tokens))
    stop = min(stop, start + WORDS_IN_HOVER)
    known = [each for each in tokens.spans[start:stop] if each is not None]
    if not known:
        return " ".join(tokens.texts[start:stop])
    return " ".join(text[known[0][0] : known[-1][1]].split())


def bin_of(position: int, edges: Sequence[int]) -> int:
    """The bin that a position lies in."""
    return int(np.searchsorted(edges, position, side="right")) - 1
