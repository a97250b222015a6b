"""One head's map as a small picture, without axes: to recognise it, not to read it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.figures import png
from explorer.figures.colors import Theme, ink, sequential_colors

Flags = npt.NDArray[np.bool_]
SIDE = 96
"""Pixels that the picture has at least, so that a browser need not blur it up."""


def thumbnail(
    weights: npt.NDArray[np.floating],
    *,
    theme: Theme,
    forbidden: Flags | None = None,
    max_value: int | float | None = None,
) -> str:
    """A data URI of the map, query 0 on top; colour follows the square root of the weight.

    `max_value` is the weight of the strongest colour, the largest by itself; one for all of those
    that are compared. NaN is hatched.
    """
    if weights.ndim != 2 or 0 in weights.shape:
        raise ValueError(f"weights: shape {weights.shape} given; (rows, keys) would work")
    largest = float(np.nan_to_num(weights).max()) if max_value is None else float(max_value)
    codes = png.encode(weights, 0.0, largest, root=True)
    if forbidden is not None:
        codes[np.broadcast_to(forbidden, codes.shape) & (codes != png.HATCH)] = png.FORBIDDEN
    down, across = (max(1, -(-SIDE // n)) for n in codes.shape)
    large = np.repeat(np.repeat(codes, down, 0), across, 1)
    png.hatched(large, large == png.HATCH)
    return png.palette_png(
        np.ascontiguousarray(large), sequential_colors(theme, png.LEVELS), ink(theme)
    )
