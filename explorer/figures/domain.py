"""What a head's map can show, in what unit, and the range its colour bar needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating]  # (query_length, key_length)
Kind = Literal["weights", "scores", "dots", "difference"]

UNITS: dict[Kind, str] = {
    "weights": "weight, share of 1",
    "scores": "scaled score",
    "dots": "dot product q·k",
    "difference": "difference",
}
NAMES: dict[Kind, str] = {
    "weights": "weight",
    "scores": "scaled score",
    "dots": "dot product",
    "difference": "difference",
}


def value_domain(values: Values, kind: Kind) -> tuple[float, float]:
    """The range a colour bar needs: weights from 0, anything else a range that holds 0."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if kind == "weights":
        return 0.0, high if high > 0 else 1.0
    low, high = min(low, 0.0), max(high, 0.0)
    return (low, high) if low < high else (-1.0, 1.0)


def round_values(low: int | float, high: int | float) -> list[float]:
    """A few round values in [low, high], 0 among them, and the two ends."""
    step = 10 ** np.floor(np.log10((high - low) / 3))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 5)
    inner = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    clear = 0.13 * (high - low)
    kept = [v for v in inner.tolist() if v - low > clear and high - v > clear]
    return [float(low), *kept, float(high)]


def head_map_alt(
    name: str,
    kind: Kind,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    values: Values,
    unit: str | None = None,
) -> str:
    """The map in words: what it shows, its size, and where its largest value lies."""
    what = f"{NAMES[kind].capitalize()}s of {name}" if unit is None else f"{name} ({unit})"
    finite = np.where(np.isfinite(values), values, -np.inf)
    row, column = divmod(int(np.argmax(finite)), values.shape[1])
    words = f"{what}: {values.shape[0]} queries down, {values.shape[1]} keys across."
    if not np.isfinite(finite[row, column]):
        return f"{words} No cell holds a value."
    return (
        f"{words} The largest, {values[row, column]:.3g}, is query {row}"
        f" ({query_labels[row]}) on key {column} ({key_labels[column]})."
    )
