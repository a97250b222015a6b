"""Panels under one another on one axis: how values are distributed, and the weights of one row.

Drawn as still pictures: they follow a slider, and a Plotly chart takes too long for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from explorer.figures import frame
from explorer.figures.colors import Ink, Theme, head_colors, ink
from explorer.figures.labels import escape, label_pixels
from explorer.figures.still import Answer, Still
from explorer.figures.still_svg import attributes, drawing, write

BINS = 36
GAP = 0.14  # of the height, between panels
MOST_BARS = 128
"""More weights than this are drawn as one outline."""
LEFT, RIGHT, ABOVE, BELOW = 62, 12, 24, 46  # pixels around the panels
TICK = 4  # pixels of a tick
BETWEEN = 0.2  # of a bar's room, to the next one
ANSWERS = 300  # places across a histogram that the tooltip tells apart

Numbers = npt.NDArray[np.floating]


class Panel(NamedTuple):
    """A named set of values, and a note for its corner."""

    name: str
    values: Numbers
    note: str = ""


class _Axis(NamedTuple):
    """What it spans, the values that have a tick, and how they read."""

    title: str
    low: float
    high: float
    ticks: list[float]
    read: Callable[[float], str] = frame.number


class _Drawn(NamedTuple):
    """A panel's values as steps or bars: edges (n + 1) and heights (n)."""

    edges: Numbers
    heights: Numbers
    bars: bool = False


def distributions(
    panels: Sequence[Panel],
    *,
    x_title: str,
    theme: Theme,
    width: int | float = 470,
    height: int | float = 300,
) -> Still:
    """A histogram a panel, all on one axis, so that their widths compare; its area is 1."""
    drawn = []
    for panel in panels:
        finite = panel.values[np.isfinite(panel.values)].ravel()
        density, edges = np.histogram(finite, bins=_edges(finite), density=True)
        drawn.append(_Drawn(edges, density))
    ends = np.concatenate([[0.0], *(one.edges[[0, -1]] for one in drawn)])
    room = 0.02 * float(np.ptp(ends))
    low, high = float(ends.min()) - room, float(ends.max()) + room
    across = _Axis(x_title, low, high, _round(low, high, 9))
    tops = [1.06 * float(one.heights.max()) for one in drawn]
    up = [_Axis("density", 0.0, top, _round(0.0, top, 3)) for top in tops]
    places = low + (np.arange(ANSWERS) + 0.5) * (high - low) / ANSWERS
    cells: list[float | str | None] = []
    for one in drawn:
        bins = np.searchsorted(one.edges, places, "right") - 1
        there = (bins >= 0) & (bins < len(one.heights))
        cells += [
            f"{one.heights[at]:.3g}" if ok else None for at, ok in zip(bins, there, strict=True)
        ]
    answer = Answer(("%{y}", f"{x_title} %{{x}}", "density %{cell}"), cells)
    names = [f"{place:.3g}".replace("-", "\N{MINUS SIGN}") for place in places]
    return _stacked(panels, drawn, across, up, names, answer, theme, width, height)


def _edges(values: Numbers) -> Numbers:
    """Bins over all but the outermost values, 1 in 1000 on each side; room for equal ones."""
    low, high = np.quantile(values, [0.001, 0.999]) if values.size else (0.0, 1.0)
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, BINS + 1)


def sorted_weights(
    panels: Sequence[Panel],
    *,
    theme: Theme,
    width: int | float = 470,
    height: int | float = 300,
) -> Still:
    """The weights of one row a panel, the largest first, all from 0 to 1."""
    n = max(len(panel.values) for panel in panels)
    edges = np.arange(n + 1) + 0.5
    ordered = [np.sort(panel.values.astype(np.float64))[::-1] for panel in panels]
    drawn = [_Drawn(edges[: len(one) + 1], one, n <= MOST_BARS) for one in ordered]
    ticks = [tick for tick in _round(0.5, n + 0.5, 8) if tick == round(tick) >= 1]
    across = _Axis("keys, the heaviest first", 0.5, n + 0.5, ticks, lambda key: f"{key:,.0f}")
    up = _Axis(
        "weight", 0.0, 1.0, [0.0, 0.5, 1.0], lambda share: {0.5: "½"}.get(share, f"{share:g}")
    )
    cells: list[float | str | None] = []
    for one in ordered:
        cells += [*(f"{weight:.4g}" for weight in one), *[None] * (n - len(one))]
    answer = Answer(("%{y}, key %{x} by weight", "%{cell}"), cells)
    names = [f"{key:,}" for key in range(1, n + 1)]
    return _stacked(panels, drawn, across, [up] * len(panels), names, answer, theme, width, height)


def _round(low: float, high: float, most: int) -> list[float]:
    """At most so many round values between low and high, 0 among them where it lies there."""
    step = 10 ** np.floor(np.log10((high - low) / most))
    step *= next(by for by in (1, 2, 5, 10) if (high - low) / (by * step) <= most)
    return [float(n * step) for n in np.arange(np.ceil(low / step), np.floor(high / step) + 1)]


def _stacked(
    panels: Sequence[Panel],
    drawn: Sequence[_Drawn],
    across: _Axis,
    up: Sequence[_Axis],
    names: list[str],
    answer: Answer,
    theme: Theme,
    width: int | float,
    height: int | float,
) -> Still:
    """The panels under one another, the first on top, each with its name and note."""
    colors, n = ink(theme), len(panels)
    plot = float(max(width - LEFT - RIGHT, 120))
    each = height * (1 - GAP * (n - 1)) / n
    size = round(LEFT + plot + RIGHT), round(ABOVE + height + BELOW)
    root = drawing(*size, frame.FONT)
    x = _scale(across, LEFT, LEFT + plot)
    parts = zip(panels, drawn, up, head_colors(n, theme), strict=True)
    for place, (panel, one, axis, color) in enumerate(parts):
        top = ABOVE + place * (each + GAP * height)
        y = _scale(axis, top + each, top)
        lines = [f"M{x(at):.1f} {top:.1f}v{each:.1f}" for at in across.ticks]
        lines += [f"M{LEFT - TICK} {y(at):.1f}h{plot + TICK}" for at in axis.ticks]
        _path(root, lines, stroke=colors.line, fill="none", shape_rendering="crispEdges")
        _values(root, one, x, y, color)
        _up(root, axis, y, top + each / 2, colors)
        name, note = escape(panel.name), escape(panel.note)
        strong = frame.font(colors, strong=True) | {"weight": 600}
        write(root, name, LEFT + 2, top - 6, strong, "start")
        write(root, note, LEFT + plot - 2, top - 6, frame.font(colors), "end")
    foot, title = ABOVE + height, frame.font(colors, frame.TITLE_SIZE, strong=True)
    for at in across.ticks:
        write(root, across.read(at), x(at), foot + 18, frame.font(colors), "middle")
    write(root, across.title, LEFT + plot / 2, foot + 40, title, "middle")
    area = float(LEFT), float(ABOVE), plot, float(height)
    svg = ET.tostring(root, encoding="unicode")
    said = [panel.name for panel in panels]
    return Still(svg, *size, area, (n, len(names)), names, said, (answer,))


def _scale(axis: _Axis, start: int | float, end: int | float) -> Callable[[float], float]:
    """From values to pixels."""
    return lambda value: start + (end - start) * (value - axis.low) / (axis.high - axis.low)


def _values(
    root: ET.Element,
    one: _Drawn,
    x: Callable[[float], float],
    y: Callable[[float], float],
    color: str,
) -> None:
    """Bars, or an outline with the ground below it filled."""
    lefts, rights = map(x, one.edges[:-1]), map(x, one.edges[1:])
    spans = list(zip(lefts, rights, map(y, one.heights), strict=True))
    foot = f"{y(0):.2f}"
    if one.bars:
        side = BETWEEN * (spans[0][1] - spans[0][0]) / 2
        bars = [f"M{a + side:.2f} {foot}V{at:.2f}H{b - side:.2f}V{foot}Z" for a, b, at in spans]
        _path(root, bars, fill=color)
        return
    begin, steps = f"M{spans[0][0]:.2f} ", [f"V{at:.2f}H{right:.2f}" for _, right, at in spans]
    _path(root, [begin, foot, *steps, f"V{foot}Z"], fill=color, fill_opacity=0.55)
    _path(root, [begin, foot, *steps], stroke=color, stroke_width=1.5, fill="none")


def _up(
    root: ET.Element, axis: _Axis, y: Callable[[float], float], middle: float, colors: Ink
) -> None:
    """The labels of a panel's own axis, and its title beside them."""
    for at in axis.ticks:
        write(root, axis.read(at), LEFT - TICK - 3, y(at) + 4, frame.font(colors), "end")
    wide = max(label_pixels(axis.read(at)) for at in axis.ticks)
    title = frame.font(colors, frame.TITLE_SIZE, strong=True)
    write(root, axis.title, LEFT - TICK - wide - 14, middle, title, "middle", -90)


def _path(root: ET.Element, steps: Sequence[str], **given: object) -> None:
    ET.SubElement(root, "path", attributes(d="".join(steps), **given))
