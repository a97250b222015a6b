"""The sides of a long text's map: where its bins lie, the ticks beside them, and their tooltips.

Ticks stand at round positions in the text, with the word that is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from explorer.figures import frame
from explorer.figures.domain import Values
from explorer.figures.labels import hover_label, label_pixels, tick_label

TICK_ROOM = 24  # pixels of an axis that a label needs
LABEL_COLUMNS, FEWER_COLUMNS = 13, 8
NARROW = 400  # pixels of a figure in which labels get fewer columns
HOVER_COLUMNS = 44
SMALLEST_PLOT = 160  # pixels
USUAL = 0.997  # share of the bins that the colours tell apart where the rest lie far above
OUTLYING = 3  # times that: what counts as far
COLUMN = 6.7  # pixels of a label's column


class Side(NamedTuple):
    """One side of the map: the edges of its bins in tokens, and what is read there."""

    edges: Sequence[int]
    """Bin b holds the tokens edges[b] to edges[b + 1] - 1."""
    words: Sequence[str]
    """The word of each tick, asked for by position: as long as the text."""
    hover: Sequence[str]
    """For each bin the words in it, for a single token those around it."""
    found: Sequence[int] = ()
    """Bins to mark, where a word that was looked for stands."""
    current: int | None = None
    """The one of them that is looked at: a line runs across the map there."""

    @property
    def n(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    @property
    def single(self) -> bool:
        """Whether each bin is one token."""
        return self.edges[-1] - self.edges[0] == self.n


def color_top(values: Values) -> tuple[float, bool]:
    """The value that the strongest colour stands for, and whether some bins have more.

    A few bins may have many times what others have, as the first queries under a causal mask,
    which have few keys to choose from: with a colour of its own for each, the rest would be pale.
    """
    finite = values[np.isfinite(values)]
    largest = float(finite.max()) if finite.size else 0.0
    if largest <= 0:
        return 1.0, False
    usual = float(np.quantile(finite, USUAL))
    return (usual, True) if 0 < usual * OUTLYING < largest else (largest, False)


def place_of(position: int | float, edges: Sequence[int]) -> float:
    """Where a token's middle lies on an axis of bins; outside them past its ends."""
    at = np.interp(position + 0.5, edges, np.arange(len(edges)) - 0.5)
    return float(at)


def round_positions(first: int, stop: int, most: int) -> list[int]:
    """Round positions in [first, stop), at most about `most`; every one where they are few."""
    step, power = 1, 1
    while (stop - first) / step > max(most, 1):
        step = next((f * power for f in (2, 5, 10) if f * power > step), 10 * power)
        power = step if step >= 10 * power else power
    return list(range(-(-first // step) * step, stop, step))


def ticks(side: Side, pixels: int) -> tuple[list[float], list[str]]:
    """Places on the axis of so many pixels, and a label for each: the position and its word."""
    positions = round_positions(side.edges[0], side.edges[-1], pixels // TICK_ROOM)
    texts = [f"{position:,} {side.words[position]}" for position in positions]
    return [place_of(position, side.edges) for position in positions], texts


def sizes(queries: Side, keys: Side, width_px: int) -> tuple[int, dict[str, float]]:
    """The plot's side, and margins that hold the labels."""
    _, down = ticks(queries, width_px)
    places, across = ticks(keys, width_px)
    columns = label_columns(width_px)
    wide = [_pixels(text, columns) for text in across]
    left = max((_pixels(text, columns) for text in down), default=0) + 40
    # Labels lie at 45 degrees: those near the right edge reach past it.
    room = width_px - left
    cells = [place + 0.5 for place in places]
    right = max(
        28.0,  # half of the colour bar's last number
        *(frame.SLANT * w - (1 - at / keys.n) * room for w, at in zip(wide, cells, strict=True)),
    )
    top = frame.SLANT * max(wide, default=0) + 44
    plot = max(round(width_px - left - right), SMALLEST_PLOT)
    return plot, {"l": left, "r": right, "t": top}


def label_columns(width_px: int) -> int:
    """How many columns of text a tick's label may have in a figure so wide."""
    return LABEL_COLUMNS if width_px >= NARROW else FEWER_COLUMNS


def _pixels(text: str, columns: int) -> float:
    return min(label_pixels(text, COLUMN), COLUMN * columns)


def hovers(side: Side) -> list[str]:
    """For each bin its positions and its words; for one token also the words around it."""
    texts = []
    for place, (start, stop) in enumerate(pairwise(side.edges)):
        around = hover_label(side.hover[place], HOVER_COLUMNS)
        if stop - start == 1:
            texts.append(f"{start:,} <b>{tick_label(side.words[start])}</b> in “{around}”")
        else:
            texts.append(f"{start:,}–{stop - 1:,} “{around}”")
    return texts
