"""A heatmap figure drawn as a still SVG: the same picture, for a quarter of a Plotly chart's work.

For pictures of cells that need no zoom. It knows what `head_map`, `mask_maps` and `matrix` make
of a few tokens: cells, numbers in them, token labels, a colour bar, a legend, hatching, frames.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from html import unescape
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
from PIL import Image

from explorer.figures.colors import from_hex
from explorer.figures.labels import label_pixels

Json = dict[str, Any]
TICK = 4  # pixels of a tick, and 3 more to its label
LABEL = 7
TITLE_ROOM = 12  # pixels from the longest label to the title of its axis
BAR_TOP, BAR = 26, 12  # pixels from the cells to the colour bar, below its title; its thickness
LEGEND_ROW, SWATCH = 19, 12


class Answer(NamedTuple):
    """What the tooltip says of the cells of one layer."""

    lines: tuple[str, ...]
    """With %{x}, %{y} and %{cell} to be filled in."""
    cells: list[float | str | None]
    """Row by row; None where the layer below answers."""


class Still(NamedTuple):
    """A picture, and what its tooltip needs."""

    svg: str
    width: int
    height: int
    area: tuple[float, float, float, float]
    """Left, top, width and height of the cells in pixels."""
    shape: tuple[int, int]
    x: list[str]
    """The tooltip's name of each column."""
    y: list[str]
    answers: tuple[Answer, ...]
    """The topmost layer first."""

    @property
    def numbers(self) -> npt.NDArray[np.float64]:
        """The numbers of the topmost layer, (rows, columns); NaN where it has none."""
        cells = self.answers[0].cells
        return np.array([np.nan if cell is None else cell for cell in cells], float).reshape(
            self.shape
        )


def still(figure: go.Figure | Json, name: str) -> Still:
    """The figure, or its data and layout, in SVG. `name` tells it from others on the page."""
    layout, traces = _parts(figure)
    margin, width, height = layout["margin"], layout["width"], layout["height"]
    left, top = float(margin["l"]), float(margin["t"])
    across, down = width - left - margin["r"], height - top - margin["b"]
    layers = [trace for trace in traces if trace["type"] == "heatmap"]
    rows, columns = np.shape(layers[0]["z"])
    place = _Place(left, top, across / columns, down / rows)

    root = ET.Element("svg", _all(xmlns="http://www.w3.org/2000/svg", width=width, height=height))
    root.set("viewBox", f"0 0 {width} {height}")
    root.set("font-family", layout["font"]["family"])
    area = _all(x=left, y=top, width=across, height=down)
    for layer in layers:
        picture = ET.SubElement(root, "image", area | _all(href=_png(layer)))
        picture.set("preserveAspectRatio", "none")
        picture.set("style", "image-rendering:pixelated")
    if layers[-1].get("xgap"):
        lines = [f"M{place.x(at - 0.5):.2f} {top}v{down}" for at in range(1, columns)]
        lines += [f"M{left} {place.y(at - 0.5):.2f}h{across}" for at in range(1, rows)]
        gaps = ET.SubElement(root, "path", {"class": "still-gaps", "d": "".join(lines)})
        gaps.set("stroke", layout["hoverlabel"]["bgcolor"])
    for number, trace in enumerate(traces):
        if trace.get("fill") == "toself":
            _hatch(root, trace, place, f"{name}-{number}")
        elif trace.get("mode") == "text":
            _numbers(root, trace, place)
    _axes(root, layout, place, (left, top, across, down))
    for shape in layout.get("shapes") or ():
        _frame(root, shape, place)
    bars = [layer for layer in layers if layer.get("showscale", True) and layer.get("colorbar")]
    for layer in bars:
        _color_bar(root, layer, left, top + down, across)
    _legend(root, traces, layout, name, left, top + down, down)
    title = (layout.get("title") or {}).get("text")
    if title:
        font = layout["title"]["font"] | {"weight": 600}
        _text(root, title, 4, 17, font, "start")
    return Still(
        ET.tostring(root, encoding="unicode"),
        int(width),
        int(height),
        (left, top, across, down),
        (rows, columns),
        [_plain(text) for text in layout["xaxis2"]["ticktext"]],
        [_plain(text) for text in layout["yaxis2"]["ticktext"]],
        tuple(_answer(layer) for layer in reversed(layers)),
    )


def _parts(figure: go.Figure | Json) -> tuple[Json, list[Json]]:
    """Layout and traces as dictionaries; a heatmap's cells stay an array."""
    if isinstance(figure, dict):
        return figure["layout"], figure["data"]
    traces = [trace.to_plotly_json() for trace in figure.data]
    for trace, given in zip(traces, figure.data, strict=True):
        if trace["type"] == "heatmap":
            trace["z"] = given.z  # the JSON has it as base64
    return figure.layout.to_plotly_json(), traces


class _Place(NamedTuple):
    """From cells to pixels; the middle of the first cell is at 0."""

    left: float
    top: float
    cell_x: float
    cell_y: float

    def x(self, at: int | float) -> float:
        return self.left + (at + 0.5) * self.cell_x

    def y(self, at: int | float) -> float:
        return self.top + (at + 0.5) * self.cell_y


def _all(**attributes: object) -> dict[str, str]:
    return {name.rstrip("_").replace("_", "-"): str(value) for name, value in attributes.items()}


def _plain(pseudo: str) -> str:
    """The characters that Plotly's pseudo-HTML shows: labels are escaped, only <b> is ours."""
    return unescape(re.sub(r"</?b>", "", pseudo))


def _png(layer: Json) -> str:
    """A layer's cells as a picture, one pixel a cell, transparent where it has no value."""
    z = np.asarray(layer["z"], np.float64)
    stops = layer["colorscale"]
    low, high = layer.get("zmin", 0.0), layer.get("zmax", 1.0)
    share = np.clip((z - low) / (high - low), 0.0, 1.0)
    there = np.isfinite(share)
    places = [stop for stop, _ in stops]
    colors = np.array([from_hex(color) for _, color in stops])
    pixels = np.zeros((*z.shape, 4), np.uint8)
    for channel in range(3):
        values = np.interp(np.where(there, share, 0.0), places, colors[:, channel])
        pixels[..., channel] = np.rint(values)
    pixels[..., 3] = 255 * there
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _text(
    root: ET.Element,
    text: str,
    x: int | float,
    y: int | float,
    font: Json,
    anchor: str,
    turn: int | float = 0,
) -> None:
    node = ET.SubElement(root, "text", _all(x=round(x, 2), y=round(y, 2), text_anchor=anchor))
    node.set("fill", font["color"])
    node.set("font-size", str(font["size"]))
    if "weight" in font:
        node.set("font-weight", str(font["weight"]))
    if turn:
        node.set("transform", f"rotate({turn} {x:.2f} {y:.2f})")
    node.text = _plain(text)


def _axes(
    root: ET.Element, layout: Json, place: _Place, area: tuple[float, float, float, float]
) -> None:
    """The edge, ticks and labels: columns above, rows on the left."""
    left, top, across, down = area
    x, y = layout["xaxis"], layout["yaxis"]
    turn = x.get("tickangle", 0)
    font, reach, ticks = x["tickfont"], 0.0, []
    for at, label in zip(x["tickvals"], x["ticktext"], strict=True):
        middle = place.x(at)
        ticks.append(f"M{middle:.2f} {top}v-{TICK}")
        pixels = label_pixels(_plain(label))
        reach = max(reach, pixels * abs(np.sin(np.deg2rad(turn))))
        # A turned label begins at its tick; its middle lies on the tick's line.
        beside = 4 * np.cos(np.deg2rad(turn + 90)) if turn else 0
        _text(root, label, middle - beside, top - LABEL, font, "start" if turn else "middle", turn)
    wide = 0.0
    for at, label in zip(y["tickvals"], y["ticktext"], strict=True):
        ticks.append(f"M{left} {place.y(at):.2f}h-{TICK}")
        wide = max(wide, label_pixels(_plain(label)))
        _text(root, label, left - LABEL, place.y(at) + 4, y["tickfont"], "end")
    lines = ET.SubElement(root, "path", _all(d="".join(ticks), stroke=x["tickcolor"]))
    lines.set("class", "still-ticks")
    edge = _all(x=left, y=top, width=across, height=down, fill="none", stroke=x["linecolor"])
    ET.SubElement(root, "rect", edge)
    above = top - LABEL - (reach if turn else 12) - TITLE_ROOM + 4
    title = x["title"]
    _text(root, title["text"], left + across / 2, above, title["font"], "middle")
    title = y["title"]
    aside = max(left - LABEL - wide - TITLE_ROOM, 12)
    _text(root, title["text"], aside, top + down / 2, title["font"], "middle", -90)


def _numbers(root: ET.Element, trace: Json, place: _Place) -> None:
    for x, y, text in zip(trace["x"], trace["y"], trace["text"], strict=True):
        _text(root, text, place.x(x), place.y(y) + 4, trace["textfont"], "middle")


def _hatch(root: ET.Element, trace: Json, place: _Place, name: str) -> None:
    """The cells without a value, hatched."""
    pattern = trace["fillpattern"]
    tile = ET.SubElement(
        root,
        "pattern",
        _all(id=f"hatch-{name}", width=7, height=7, patternUnits="userSpaceOnUse"),
    )
    ET.SubElement(tile, "rect", _all(width=7, height=7, fill=pattern["bgcolor"]))
    ET.SubElement(tile, "path", _all(d="M-1 8L8 -1M-1 1L1 -1M6 8L8 6", stroke=pattern["fgcolor"]))
    corners, path, begins = zip(trace["x"], trace["y"], strict=True), [], True
    for x, y in corners:
        if x is not None:
            path.append(f"{'M' if begins else 'L'}{place.x(x):.2f} {place.y(y):.2f}")
        begins = x is None
    ET.SubElement(root, "path", _all(d="".join(path), fill=f"url(#hatch-{name})"))


def _frame(root: ET.Element, shape: Json, place: _Place) -> None:
    x, y = place.x(shape["x0"]), place.y(shape["y0"])
    line = _all(fill="none", stroke=shape["line"]["color"], stroke_width=shape["line"]["width"])
    sides = f"H{place.x(shape['x1']):.2f}V{place.y(shape['y1']):.2f}"
    closed = f"H{x:.2f}Z" if shape["type"] == "rect" else ""
    ET.SubElement(root, "path", line | {"d": f"M{x:.2f} {y:.2f}{sides}{closed}"})


def _color_bar(
    root: ET.Element, layer: Json, left: int | float, bottom: int | float, across: int | float
) -> None:
    """The bar below the cells, as wide as they are, under its title."""
    bar, low, high = layer["colorbar"], layer["zmin"], layer["zmax"]
    middle = left + across / 2
    _text(root, bar["title"]["text"], middle, bottom + 20, bar["title"]["font"], "middle")
    ramp = {"z": np.linspace(low, high, 256)[None], "zmin": low, "zmax": high}
    box = _all(x=left, y=bottom + BAR_TOP, width=across, height=BAR)
    picture = ET.SubElement(
        root, "image", box | _all(href=_png(ramp | {"colorscale": layer["colorscale"]}))
    )
    picture.set("preserveAspectRatio", "none")
    ET.SubElement(root, "rect", box | _all(fill="none", stroke=bar["outlinecolor"]))
    for value, text in zip(bar["tickvals"], bar["ticktext"], strict=True):
        x = left + across * (value - low) / (high - low)
        _text(root, text, x, bottom + BAR_TOP + BAR + 14, bar["tickfont"], "middle")


def _legend(
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
        box = _all(x=left + 1, y=round(y - SWATCH / 2, 2), width=SWATCH, height=SWATCH)
        ET.SubElement(root, "rect", box | _all(fill=fill, stroke=line))
        _text(root, trace["name"], left + SWATCH + 8, y + 4, layout["legend"]["font"], "start")
        y += LEGEND_ROW


def _answer(layer: Json) -> Answer:
    """The tooltip's lines, and each cell's number or words."""
    template = layer["hovertemplate"].replace("<extra></extra>", "")
    filled = re.sub(r"%\{(z:\.4f|text)\}", "%{cell}", template)
    lines = tuple(_plain(line) for line in filled.split("<br>"))
    if "text" in layer:
        return Answer(lines, [str(word) for row in layer["text"] for word in row])
    values = np.asarray(layer["z"], np.float64).ravel()
    cells: list[Any] = np.round(values, 6).tolist()
    for at in np.flatnonzero(~np.isfinite(values)).tolist():
        cells[at] = None
    return Answer(lines, cells)
