"""A heatmap figure drawn as a still SVG: the same picture, for a quarter of a Plotly chart's work.

For pictures of cells that need no zoom. It knows what `head_map`, `mask_maps` and `matrix` make
of a few tokens: cells, numbers in them, token labels, a colour bar, a legend, hatching, frames.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures.still_around import Place, axes, color_bar, legend
from explorer.figures.still_svg import Json, attributes, drawing, plain, png, write


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
    place = Place(left, top, across / columns, down / rows)

    root = drawing(width, height, layout["font"]["family"])
    area = attributes(x=left, y=top, width=across, height=down)
    for layer in layers:
        picture = ET.SubElement(root, "image", area | attributes(href=png(layer)))
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
    axes(root, layout, place, (left, top, across, down))
    for shape in layout.get("shapes") or ():
        _frame(root, shape, place)
    bars = [layer for layer in layers if layer.get("showscale", True) and layer.get("colorbar")]
    for layer in bars:
        color_bar(root, layer, left, top + down, across)
    legend(root, traces, layout, name, left, top + down, down)
    title = (layout.get("title") or {}).get("text")
    if title:
        font = layout["title"]["font"] | {"weight": 600}
        write(root, title, 4, 17, font, "start")
    return Still(
        ET.tostring(root, encoding="unicode"),
        int(width),
        int(height),
        (left, top, across, down),
        (rows, columns),
        [plain(text) for text in layout["xaxis2"]["ticktext"]],
        [plain(text) for text in layout["yaxis2"]["ticktext"]],
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


def _numbers(root: ET.Element, trace: Json, place: Place) -> None:
    for x, y, text in zip(trace["x"], trace["y"], trace["text"], strict=True):
        write(root, text, place.x(x), place.y(y) + 4, trace["textfont"], "middle")


def _hatch(root: ET.Element, trace: Json, place: Place, name: str) -> None:
    """The cells without a value, hatched."""
    pattern = trace["fillpattern"]
    tile = ET.SubElement(
        root,
        "pattern",
        attributes(id=f"hatch-{name}", width=7, height=7, patternUnits="userSpaceOnUse"),
    )
    ET.SubElement(tile, "rect", attributes(width=7, height=7, fill=pattern["bgcolor"]))
    ET.SubElement(
        tile, "path", attributes(d="M-1 8L8 -1M-1 1L1 -1M6 8L8 6", stroke=pattern["fgcolor"])
    )
    corners, path, begins = zip(trace["x"], trace["y"], strict=True), [], True
    for x, y in corners:
        if x is not None:
            path.append(f"{'M' if begins else 'L'}{place.x(x):.2f} {place.y(y):.2f}")
        begins = x is None
    ET.SubElement(root, "path", attributes(d="".join(path), fill=f"url(#hatch-{name})"))


def _frame(root: ET.Element, shape: Json, place: Place) -> None:
    x, y = place.x(shape["x0"]), place.y(shape["y0"])
    line = attributes(
        fill="none", stroke=shape["line"]["color"], stroke_width=shape["line"]["width"]
    )
    sides = f"H{place.x(shape['x1']):.2f}V{place.y(shape['y1']):.2f}"
    closed = f"H{x:.2f}Z" if shape["type"] == "rect" else ""
    ET.SubElement(root, "path", line | {"d": f"M{x:.2f} {y:.2f}{sides}{closed}"})


def _answer(layer: Json) -> Answer:
    """The tooltip's lines, and each cell's number or words."""
    template = layer["hovertemplate"].replace("<extra></extra>", "")
    filled = re.sub(r"%\{(z:\.4f|text)\}", "%{cell}", template)
    lines = tuple(plain(line) for line in filled.split("<br>"))
    if "text" in layer:
        return Answer(lines, [str(word) for row in layer["text"] for word in row])
    values = np.asarray(layer["z"], np.float64).ravel()
    cells: list[Any] = np.round(values, 6).tolist()
    for at in np.flatnonzero(~np.isfinite(values)).tolist():
        cells[at] = None
    return Answer(lines, cells)
