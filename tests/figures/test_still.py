"""A figure drawn as a still SVG: the same cells, labels, numbers and words as the Plotly figure."""

from __future__ import annotations

import base64
import io
from xml.etree import ElementTree as ET

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from explorer.figures.colors import ink, to_hex
from explorer.figures.masks import mask_maps
from explorer.figures.matrix import matrix, matrix_parts
from explorer.figures.still import Still, still

SVG = "{http://www.w3.org/2000/svg}"
VALUES = np.array([[1.0, -2.0], [0.25, 0.0], [3.0, 0.5]])
LABELS = ["the", "<b>", "$x & y"]
PADDED = np.array([False, False, True])
ALLOWED = np.tril(np.ones((3, 3), bool))
WEIGHTS = np.array([[1, 0, 0], [0.4, 0.6, 0], [0.5, 0.3, 0.2]], np.float32)


def texts(picture: Still) -> list[str]:
    return [node.text or "" for node in ET.fromstring(picture.svg).iter(f"{SVG}text")]


def pixels(picture: Still, number: int = 0) -> np.ndarray:
    """One of the embedded pictures: the layers of cells, then the colour bar."""
    images = list(ET.fromstring(picture.svg).iter(f"{SVG}image"))
    data = images[number].attrib["href"].partition(",")[2]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def weights_map(**more: object) -> Still:
    given = {"labels": LABELS, "theme": "light", **more}
    maps = mask_maps(ALLOWED, WEIGHTS, WEIGHTS, **given)  # type: ignore[arg-type]
    return still(maps.weights, "weights")


def test_it_holds_the_numbers_the_labels_and_both_titles() -> None:
    picture = still(matrix(VALUES, row_labels=LABELS, theme="light"), "m")
    np.testing.assert_allclose(picture.numbers, VALUES)
    found = texts(picture)
    assert {"−2.0", ".25", "3.0", "the", "<b>", "$x & y", "Dimension", "Token"} <= set(found)
    assert found.count("value") == 1  # the colour bar's title


def test_the_cells_have_the_colours_of_plotlys_scale() -> None:
    figure = matrix(VALUES, row_labels=LABELS, theme="dark")
    scale = figure.data[0].colorscale
    cells = pixels(still(figure, "m"))
    assert to_hex(cells[2, 0, :3]) == scale[-1][1]  # the largest
    assert to_hex(cells[0, 1, :3]) == scale[0][1]  # the smallest
    middle = np.array([int(scale[16][1][at : at + 2], 16) for at in (1, 3, 5)])
    assert scale[16][0] == pytest.approx(0.4)  # 0 of −2 … 3
    np.testing.assert_allclose(cells[1, 1, :3].astype(int), middle, atol=1)


def test_a_figure_and_its_parts_give_the_same_picture() -> None:
    figure = matrix(VALUES, row_labels=LABELS, theme="light", blocks=[1], selected=(2, 1))
    parts = matrix_parts(VALUES, row_labels=LABELS, theme="light", blocks=[1], selected=(2, 1))
    assert still(figure, "m") == still(parts, "m")


def test_text_is_data() -> None:
    picture = still(matrix(VALUES, row_labels=LABELS, theme="light"), "m")
    assert "<b>" not in picture.svg
    assert picture.y == ["0: the", "1: <b>", "2: $x & y"]


def test_forbidden_cells_answer_with_the_reason_and_are_drawn_below() -> None:
    picture = weights_map()
    first, below = picture.answers
    assert first.cells[:3] == [1.0, None, None]
    assert below.lines[-1] == "no value: forbidden"
    assert first.lines == ("Query %{y}", "Key %{x}", "weight %{cell}")
    ground, cells = pixels(picture, 0), pixels(picture, 1)
    assert to_hex(ground[0, 1, :3]) == ink("light").forbidden
    assert cells[0].tolist()[1][3] == 0 and cells[0].tolist()[0][3] == 255
    assert "forbidden by the mask" in texts(picture)


def test_padding_is_hatched_under_a_name_of_its_own() -> None:
    root = ET.fromstring(weights_map(padded=PADDED).svg)
    (pattern,) = root.iter(f"{SVG}pattern")
    fill = f"url(#{pattern.attrib['id']})"
    assert pattern.attrib["id"].startswith("hatch-weights-")
    assert [node.tag for node in root.iter() if node.get("fill") == fill] == [
        f"{SVG}path",
        f"{SVG}rect",  # in the legend
    ]
    assert "padding, not a query" in [node.text for node in root.iter(f"{SVG}text")]


def test_every_cell_of_a_mask_says_whether_it_may_be_used() -> None:
    maps = mask_maps(ALLOWED, WEIGHTS, WEIGHTS, labels=LABELS, theme="light", selected=(2, 0))
    picture = still(maps.mask, "mask")
    (answer,) = picture.answers
    assert answer.cells[:2] == ["may be used", "forbidden by the mask"]
    colors = ink("light")
    assert {to_hex(cell[:3]) for row in pixels(picture) for cell in row} == {
        colors.bar,
        colors.forbidden,
    }
    frames = [node for node in ET.fromstring(picture.svg) if node.get("stroke") == colors.accent]
    left, top, across, down = picture.area
    y = top + down * 2 / 3
    assert [node.attrib["d"] for node in frames] == [
        f"M{left:.2f} {y:.2f}H{left + across / 3:.2f}V{top + down:.2f}H{left:.2f}Z"
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_as_large_as_the_figure(theme: str) -> None:
    figure: go.Figure = matrix(np.ones((2, 40)), row_labels=["a", "b"], theme=theme)  # type: ignore[arg-type]
    picture = still(figure, "m")
    assert (picture.width, picture.height) == (figure.layout.width, figure.layout.height)
