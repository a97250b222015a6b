"""Values as a picture with a palette: the lightest way to send many cells to a browser."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from explorer.figures.colors import Ink, from_hex
from explorer.figures.oklab import Colors

Codes = npt.NDArray[np.uint8]

LEVELS = 64  # finer than the eye tells apart in these scales; later codes are cells without value
FORBIDDEN, PADDED, HATCH, ABSENT, GAP = range(LEVELS, LEVELS + 5)


def encode(
    values: npt.NDArray[np.floating], low: int | float, high: int | float, root: bool = False
) -> Codes:
    """Values as codes from 0 (at or below `low`) to 63 (at or above `high`); NaN as HATCH.

    With `root` the code follows the square root, so small weights stay visible.
    """
    span = high - low if high > low else 1.0
    share = np.clip((values - low) / np.float32(span), 0.0, 1.0)
    if root:
        share = np.sqrt(share)
    missing = np.isnan(share)
    if missing.any():
        share = np.where(missing, 0.0, share)
    codes: Codes = np.rint(share * (LEVELS - 1)).astype(np.uint8)
    if missing.any():
        codes[missing] = HATCH
    return codes


def hatched(codes: Codes, where: npt.NDArray[np.bool_]) -> None:
    """Draw diagonal hatching into the last two axes of `codes`, in place, wherever `where` is."""
    rows, columns = codes.shape[-2:]
    stripe = (np.arange(rows)[:, None] + np.arange(columns)) % 6 < 2
    np.copyto(codes, np.where(stripe, HATCH, PADDED).astype(np.uint8), where=where)


def palette_png(codes: Codes, colors: Colors, ink: Ink) -> str:
    """A data URI of the picture, one pixel a code; GAP is transparent."""
    if len(colors) != LEVELS:
        raise ValueError(f"colors: {len(colors)} given; {LEVELS} would work")
    special = [from_hex(each) for each in (ink.forbidden, ink.padded, ink.hatch, ink.absent)]
    image = Image.fromarray(codes, mode=None)
    image.putpalette([int(part) for color in (*colors, *special, (0, 0, 0)) for part in color])
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=1, transparency=GAP)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def spread(
    source: str,
    pixels: tuple[int, int],
    *,
    width: int | float,
    height: int | float,
    left: int | float = -0.5,
    top: int | float = -0.5,
) -> dict[str, Any]:
    """A trace without a tooltip: a picture of so many (rows, columns), over a part of the axes."""
    dx, dy = width / pixels[1], height / pixels[0]
    return {
        "type": "image",
        "source": source,
        "x0": left + dx / 2,  # the middle of the first pixel
        "dx": dx,
        "y0": top + dy / 2,
        "dy": dy,
        "hoverinfo": "skip",
    }
