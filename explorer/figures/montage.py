"""Many small maps side by side as one picture of palette codes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.figures import png

Weights = npt.NDArray[np.floating]  # (n_layers, n_heads, query_length, key_length)
Flags = npt.NDArray[np.bool_]

SMALL_MAP = 40  # pixels a short map is enlarged to, by whole factors
PICTURE = 1200  # pixels the whole picture may take in either direction


def block_size(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many queries and keys share one pixel so that the picture stays within its bound."""
    n_layers, n_heads, n_q, n_k = shape
    rows, columns = (max(PICTURE // count - 4, 8) for count in (n_layers, n_heads))
    side = max(min(rows, columns, 128), 8)
    return math.ceil(n_q / side), math.ceil(n_k / side)


def pooled(values: Weights, block: tuple[int, int]) -> Weights:
    """The largest value in each block; edges may have smaller blocks."""
    for axis, size in zip((2, 3), block, strict=True):
        if size > 1:
            starts = np.arange(0, values.shape[axis], size)
            values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def blocks(forbidden: Flags | None, shape: tuple[int, ...], block: tuple[int, int]) -> Flags | None:
    """Blocks in which every cell is forbidden, with axes of length 1 kept for broadcasting."""
    if forbidden is None:
        return None
    flags = forbidden.reshape((1,) * (4 - forbidden.ndim) + forbidden.shape)
    flags = np.broadcast_to(flags, (*flags.shape[:2], *shape[2:]))
    for axis, size in zip((2, 3), block, strict=True):
        flags = np.logical_and.reduceat(flags, np.arange(0, flags.shape[axis], size), axis=axis)
    return flags


def row_blocks(padded: Flags | None, block: tuple[int, int]) -> Flags | None:
    """Blocks of rows that are padding throughout."""
    if padded is None:
        return None
    return np.logical_and.reduceat(padded, np.arange(0, len(padded), block[0]))


def montage(
    codes: png.Codes, forbidden: Flags | None, padded: Flags | None, there: Flags
) -> png.Codes:
    """The maps side by side with gaps between, short ones enlarged by a whole factor."""
    n_layers, n_heads, n_q, n_k = codes.shape
    hatched = codes == png.HATCH
    if forbidden is not None:
        np.copyto(codes, np.uint8(png.FORBIDDEN), where=forbidden & ~hatched)
    if padded is not None:
        hatched = hatched | padded[:, None]
    down, across = (max(1, SMALL_MAP // n) for n in (n_q, n_k))
    gap_down, gap_across = (2 * max(1, round(n / 32)) for n in (n_q * down, n_k * across))
    cell = (n_q * down + gap_down, n_k * across + gap_across)
    picture = np.full((n_layers, cell[0], n_heads, cell[1]), png.GAP, dtype=np.uint8)
    inner = picture[
        :,
        gap_down // 2 : gap_down // 2 + n_q * down,
        :,
        gap_across // 2 : gap_across // 2 + n_k * across,
    ]
    maps = np.ascontiguousarray(_enlarged(codes, down, across))
    if hatched.any():
        png.hatched(maps, _enlarged(np.broadcast_to(hatched, codes.shape), down, across))
    maps[~there] = png.ABSENT
    inner[:] = maps.transpose(0, 2, 1, 3)
    return picture.reshape(n_layers * cell[0], n_heads * cell[1])


def _enlarged(values: npt.NDArray[Any], down: int, across: int) -> npt.NDArray[Any]:
    if down > 1:
        values = np.repeat(values, down, axis=2)
    return np.repeat(values, across, axis=3) if across > 1 else values
