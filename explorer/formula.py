"""The seven stations of attention, and its formula with one of them marked."""

from __future__ import annotations

from typing import NamedTuple


class Station(NamedTuple):
    """One step of the way from vectors to the layer's output."""

    name: str
    """As in an address."""
    title: str


STATIONS: tuple[Station, ...] = (
    Station("qkv", "Q, K, V"),
    Station("dots", "Dots QKᵀ"),
    Station("scale", "Scale ÷ √dₖ"),
    Station("mask", "Mask"),
    Station("softmax", "Softmax"),
    Station("values", "Weights · V"),
    Station("join", "Join by W_O"),
)


def formula(station: str, color: str, times: float = 1.0) -> str:
    """The formula of attention in LaTeX; the station's part is boxed and has `color`.

    `times` is a factor on the scale, written where it is not 1. Raises ValueError for a name that
    is no station's.
    """
    names = [each.name for each in STATIONS]
    if station not in names:
        raise ValueError(f"station: got {station!r}; one of {', '.join(names)} would work.")

    def part(name: str, text: str) -> str:
        return rf"\textcolor{{{color}}}{{\boxed{{{text}}}}}" if name == station else text

    q, k = part("qkv", "Q"), part("qkv", "K")
    v = part("values", r"\cdot V") if station == "values" else rf"\cdot {part('qkv', 'V')}"
    dots = part("dots", rf"{q}\,{k}^{{\top}}")
    divisor = r"\sqrt{d_k}" if times == 1 else rf"\sqrt{{d_k}}{{\scriptstyle\,/{times:g}}}"
    scores = rf"\dfrac{{{dots}}}{{{part('scale', divisor)}}}"
    mask = part("mask", r"\text{mask}")
    softmax = part("softmax", r"\operatorname{softmax}")
    head = rf"{softmax}\!\left({scores} + {mask}\right) {v}"
    # Small enough for a phone, and a space at the end where KaTeX's last subscript juts out: a
    # formula that scrolls can't be read by keyboard.
    return rf"\small\Big[{head}\Big]_{{h}}\,{part('join', 'W_O')}\;"
