"""Colours for both themes: scales uniform in lightness and safe for colour-blind readers.

Weights use cmocean's "ice" (Thyng et al. 2016, doi:10.5670/oceanog.2016.66), a single ramp of
lightness: reversed on light pages, as it is on dark ones, so that 0 is always near the page and
large is always far from it. Signed values run from blue through a neutral near the page to orange,
drawn in OKLab (Ottosson 2020, bottosson.github.io/posts/oklab) with the same lightness on both
sides, the pair of hues that the common colour deficiencies keep apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from plotly.colors import sequential, unlabel_rgb

from explorer.figures.oklab import Colors, linear, oklab_to_rgb

Theme = Literal["light", "dark"]
ColorScale = list[list[float | str]]


@dataclass(frozen=True)
class Ink:
    """What is not data, for one theme: text at 7:1 on the page, lines, and the special cells."""

    text: str
    muted: str
    line: str
    page: str
    accent: str  # outline of what is selected
    bar: str  # bars of one row
    forbidden: str  # a cell the mask rules out
    padded: str  # ground of a padded row, hatched with `hatch`
    hatch: str
    absent: str  # a layer without attention


INK: dict[Theme, Ink] = {
    "light": Ink(
        text="#1b2430",
        muted="#4a5564",
        line="#b4bec8",
        page="#ffffff",
        accent="#d9480f",
        bar="#3e6db2",
        forbidden="#ddd5c9",
        padded="#f3f0eb",
        hatch="#9b917f",
        absent="#eceae7",
    ),
    "dark": Ink(
        text="#e4eaf0",
        muted="#b4bfca",
        line="#46525e",
        page="#11161c",
        accent="#ffa94d",
        bar="#72b8cd",
        forbidden="#4a4238",
        padded="#26231f",
        hatch="#8d8272",
        absent="#23252b",
    ),
}


def ink(theme: Theme) -> Ink:
    """The colours of text, lines and special cells for a theme."""
    if theme not in INK:
        raise ValueError(f"theme: {theme!r} given; 'light' or 'dark' would work")
    return INK[theme]


def sequential_colors(theme: Theme, n: int = 256) -> Colors:
    """`n` colours from 0 (near the page) to the largest value (far from it)."""
    ink(theme)
    anchors = np.array([unlabel_rgb(color) for color in sequential.ice])
    anchors = anchors[:0:-1] if theme == "light" else anchors  # the last near-black adds nothing
    return _interpolated(anchors, n)


def diverging_colors(theme: Theme, n: int = 257) -> Colors:
    """`n` colours from blue (most negative) through a neutral (0) to orange (most positive)."""
    ink(theme)
    middle, end = (0.97, 0.38) if theme == "light" else (0.20, 0.84)
    signed = np.linspace(-1.0, 1.0, n)
    size = np.abs(signed)
    hue = np.deg2rad(np.where(signed < 0, 258.0, 50.0))
    chroma = 0.125 * np.sin(np.pi * np.clip(size, 0, 1) ** 0.8 * 0.62)
    lightness = middle + (end - middle) * size
    return oklab_to_rgb(np.stack([lightness, chroma * np.cos(hue), chroma * np.sin(hue)], axis=-1))


def sequential_scale(theme: Theme, root: bool = True) -> ColorScale:
    """Plotly colour scale for weights; with `root` the colour follows the square root."""
    places = np.linspace(0.0, 1.0, 33)
    return _scale(places**2 if root else places, sequential_colors(theme, len(places)))


def diverging_scale(theme: Theme, low: int | float, high: int | float) -> ColorScale:
    """Plotly colour scale over [low, high] with 0 neutral and equal steps on either side of it."""
    if not low <= 0 <= high or low == high:
        raise ValueError(f"low, high: {low}, {high} given; a range that holds 0 would work")
    colors = diverging_colors(theme, 257)
    reach = max(-low, high)
    places = np.linspace(0.0, 1.0, 41)
    index = np.rint(((low + (high - low) * places) / reach + 1) * 128).astype(int)
    return _scale(places, colors[index])


def head_colors(n_heads: int, theme: Theme) -> list[str]:
    """One colour a head, as far apart in hue as `n_heads` allows, neighbours apart in lightness."""
    ink(theme)
    levels = (0.50, 0.64) if theme == "light" else (0.86, 0.70)
    hue = np.deg2rad(25.0 + 360.0 * np.arange(n_heads) / max(n_heads, 1))
    lightness = np.array([levels[head % 2] for head in range(n_heads)])
    lab = np.stack([lightness, 0.13 * np.cos(hue), 0.13 * np.sin(hue)], axis=-1)
    return [to_hex(color) for color in oklab_to_rgb(lab.reshape(-1, 3))]


def to_hex(color: Sequence[int] | Colors) -> str:
    """A colour as ``#rrggbb``."""
    red, green, blue = (int(part) for part in color)
    return f"#{red:02x}{green:02x}{blue:02x}"


def from_hex(color: str) -> tuple[int, int, int]:
    """The three bytes of ``#rrggbb``."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def contrast(first: Sequence[int] | Colors, second: Sequence[int] | Colors) -> float:
    """WCAG contrast ratio of two colours: 1 for equal ones, 21 for black on white."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Sequence[int] | Colors) -> float:
    red, green, blue = linear(np.asarray(color, dtype=np.float64) / 255)
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)


def _interpolated(anchors: npt.NDArray[np.float64], n: int) -> Colors:
    places = np.linspace(0, len(anchors) - 1, n)
    channels = [np.interp(places, np.arange(len(anchors)), anchors[:, c]) for c in range(3)]
    return np.rint(np.stack(channels, axis=-1)).astype(np.uint8)


def _scale(places: npt.NDArray[np.float64], colors: Colors) -> ColorScale:
    return [[float(p), to_hex(color)] for p, color in zip(places, colors, strict=True)]
