"""SVG by parts: an element's attributes, a line of text, cells as an embedded picture."""

from __future__ import annotations

import base64
import io
import re
from html import unescape
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from PIL import Image

from explorer.figures.colors import from_hex

Json = dict[str, Any]


def drawing(width: int | float, height: int | float, family: str) -> ET.Element:
    """An empty picture of this size in pixels, its text in this font."""
    root = ET.Element("svg", attributes(xmlns="http://www.w3.org/2000/svg"))
    root.set("width", str(width))
    root.set("height", str(height))
    root.set("viewBox", f"0 0 {width} {height}")
    root.set("font-family", family)
    return root


def attributes(**attributes: object) -> dict[str, str]:
    return {name.rstrip("_").replace("_", "-"): str(value) for name, value in attributes.items()}


def plain(pseudo: str) -> str:
    """The characters that Plotly's pseudo-HTML shows: labels are escaped, only <b> is ours."""
    return unescape(re.sub(r"</?b>", "", pseudo))


def png(layer: Json) -> str:
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


def write(
    root: ET.Element,
    pseudo: str,
    x: int | float,
    y: int | float,
    font: Json,
    anchor: str,
    turn: int | float = 0,
) -> None:
    node = ET.SubElement(root, "text", attributes(x=round(x, 2), y=round(y, 2), text_anchor=anchor))
    node.set("fill", font["color"])
    node.set("font-size", str(font["size"]))
    if "weight" in font:
        node.set("font-weight", str(font["weight"]))
    if turn:
        node.set("transform", f"rotate({turn} {x:.2f} {y:.2f})")
    node.text = plain(pseudo)
