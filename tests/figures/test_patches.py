"""The picture under its weights: what lies where, and how it is said."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from explorer.figures.patches import over_picture, picture_alt

PICTURE = np.zeros((8, 12, 3), np.uint8)
PICTURE[:4, :4] = (250, 0, 0)
WEIGHTS = np.array([[0.1, 0.2, 0.0], [0.4, 0.1, 0.2]])


def test_weights_lie_over_a_grey_picture_of_the_same_place() -> None:
    figure = over_picture(PICTURE, WEIGHTS, 2, 3, theme="light", chosen=(1, 2))
    (heat,) = figure.data
    np.testing.assert_allclose(heat.z, WEIGHTS, atol=1e-7)
    assert (heat.zmin, heat.zmax) == (0, 0.4)
    (image,) = figure.layout.images
    assert (image.x, image.y, image.sizex, image.sizey) == (-0.5, -0.5, 3, 2)
    assert figure.layout.xaxis.range == (-0.5, 2.5) and figure.layout.yaxis.range == (1.5, -0.5)
    (ring,) = figure.layout.shapes
    assert (ring.x0, ring.x1, ring.y0, ring.y1) == (1.5, 2.5, 0.5, 1.5)
    assert heat.text[1][2] == "row 2, column 3"
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(image.source.split(",")[1]))))
    assert shown.shape[:2] == (8 * 37, 12 * 37)  # 448 // 12 times as large, in squares
    assert (shown[..., 0] == shown[..., 1]).all() and (shown[..., 1] == shown[..., 2]).all()
    assert shown[0, 0, 0] > shown[-1, -1, 0]


def test_without_weights_the_picture_keeps_its_colours_and_shows_its_cuts() -> None:
    figure = over_picture(PICTURE, None, 2, 3, theme="dark")
    (image,) = figure.layout.images
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(image.source.split(",")[1]))))
    assert tuple(shown[0, 0]) == (250, 0, 0)
    assert len(figure.layout.shapes) == 1 + 2
    assert not figure.data[0].showscale


def test_in_words_the_picture_names_where_most_weight_goes() -> None:
    names = [f"row {r}, column {c}" for r in (1, 2) for c in (1, 2, 3)]
    assert picture_alt(names, WEIGHTS, "row 1, column 1") == (
        "The picture with the weights of the query row 1, column 1 over it: most on row 2, "
        "column 1, 0.4000."
    )
