"""What stands around the cells of a still picture: axes, colour bar, legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from explorer.figures.labels import label_pixels
from explorer.figures.still_svg import Json, attributes, plain, png, write

TICK = 4  # pixels of a tick, and 3 more to its label
LABEL = 7
TITLE_ROOM = 12  # pixels from the longest label to the title of its axis
BAR_TOP, BAR = 26, 12  # pixels from the cells to the colour bar, below its title; its thickness
LEGEND_ROW, SWATCH = 19, 12


class Place(NamedTuple):
    """From cells to pixels; the middle of the first cell is at 0."""

    left: float
    top: float
    cell_x: float
    cell_y: float

    def x(self, at: int | float) -> float:
        return self.left + (at + 0.5) * self.cell_x

    def y(self, at: int | float) -> float:
        return self.top + (at + 0.5) * self.cell_y


def axes(
    root: ET.Element, layout: Json, place: Place, area: tuple[float, float, float, float]
) -> None:
    """The edge, ticks and labels: columns above, rows on the left."""
    left, top, across, down = area
    x, y = layout["xaxis"], layout["yaxis"]
    turn = x.get("tickangle", 0)
    font, reach, ticks = x["tickfont"], 0.0, []
    for at, label in zip(x["tickvals"], x["ticktext"], strict=True):
        middle = place.x(at)
        ticks.append(f"M{middle:.2f} {top}v-{TICK}")
        pixels = label_pixels(plain(label))
        reach = max(reach, pixels * abs(np.sin(np.deg2rad(turn))))
        # A turned label begins at its tick; its middle lies on the tick's line.
        beside = 4 * np.cos(np.deg2rad(turn + 90)) if turn else 0
        write(root, label, middle - beside, top - LABEL, font, "start" if turn else "middle", turn)
    wide = 0.0
    for at, label in zip(y["tickvals"], y["ticktext"], strict=True):
        ticks.append(f"M{left} {place.y(at):.2f}h-{TICK}")
        wide = max(wide, label_pixels(plain(label)))
        write(root, label, left - LABEL, place.y(at) + 4, y["tickfont"], "end")
    lines = ET.SubElement(root, "path", attributes(d="".join(ticks), stroke=x["tickcolor"]))
    lines.set("class", "still-ticks")
    edge = attributes(x=left, y=top, width=across, height=down, fill="none", stroke=x["linecolor"])
    ET.SubElement(root, "rect", edge)
    above = top - LABEL - (reach if turn else 12) - TITLE_ROOM + 4
    title = x["title"]
    write(root, title["text"], left + across / 2, above, title["font"], "middle")
    title = y["title"]
    aside = max(left - LABEL - wide - TITLE_ROOM, 12)
    write(root, title["text"], aside, top + down / 2, title["font"], "middle", -90)


def color_bar(
    root: ET.Element, layer: Json, left: int | float, bottom: int | float, across: int | float
) -> None:
    """The bar below the cells, as wide as they are, under its title."""
    bar, low, high = layer["colorbar"], layer["zmin"], layer["zmax"]
    middle = left + across / 2
    write(root, bar["title"]["text"], middle, bottom + 20, bar["title"]["font"], "middle")
    ramp = {"z": np.linspace(low, high, 256)[None], "zmin": low, "zmax": high}
    box = attributes(x=left, y=bottom + BAR_TOP, width=across, height=BAR)
    picture = ET.SubElement(
        root, "image", box | attributes(href=png(ramp | {"colorscale": layer["colorscale"]}))
    )
    picture.set("preserveAspectRatio", "none")
    ET.SubElement(root, "rect", box | attributes(fill="none", stroke=bar["outlinecolor"]))
    for value, text in zip(bar["tickvals"], bar["ticktext"], strict=True):
        x = left + across * (value - low) / (high - low)
        write(root, text, x, bottom + BAR_TOP + BAR + 14, bar["tickfont"], "middle")


def legend(
    root: ET.Element,
    traces: Sequence[Json],
    layout: Json,
    name: str,
    left: int | float,
    bottom: int | float,
    down: int | float,
) -> None:
    """What colours that are not on the bar stand for, one under another."""
    y = bottom - layout["legend"]["y"] * down + LEGEND_ROW / 2
    for number, trace in enumerate(traces) if layout.get("showlegend") else ():
        if trace["type"] != "scatter" or not trace.get("showlegend", True):
            continue
        if "fillpattern" in trace:
            fill, line = f"url(#hatch-{name}-{number})", trace["fillpattern"]["fgcolor"]
        else:
            fill, line = trace["marker"]["color"], trace["marker"]["line"]["color"]
        box = attributes(x=left + 1, y=round(y - SWATCH / 2, 2), width=SWATCH, height=SWATCH)
        ET.SubElement(root, "rect", box | attributes(fill=fill, stroke=line))
        write(root, trace["name"], left + SWATCH + 8, y + 4, layout["legend"]["font"], "start")
        y += LEGEND_ROW
