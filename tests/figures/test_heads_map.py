"""Heads as points in a plane: places, colours, groups, and axes of one length; and thumbnails."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from explorer.figures import png
from explorer.figures.heads_map import group_names, heads_map, heads_map_alt
from explorer.figures.thumbnail import SIDE, thumbnail

POINTS = np.array([[0.0, 0.0], [0.4, 0.1], [-0.2, 0.3]])
LAYERS, HEADS = np.array([0, 0, 3]), np.array([0, 1, 0])


def drawn(**options: Any) -> go.Figure:
    return heads_map(POINTS, layers=LAYERS, heads=HEADS, theme="light", **options)


def with_heads(figure: go.Figure) -> list[Any]:
    return [trace for trace in figure.data if trace.customdata is not None]


def test_every_head_is_a_point_that_says_which_it_is() -> None:
    (trace,) = with_heads(drawn())
    assert np.allclose(trace.x, POINTS[:, 0]) and np.allclose(trace.y, POINTS[:, 1])
    assert list(map(list, trace.customdata)) == [[0, 0], [0, 1], [3, 0]]
    assert type(trace.customdata[0][0]) is int
    assert trace.marker.colorbar.title.text == "layer"


@pytest.mark.parametrize("points", [POINTS, POINTS * [1, 9], POINTS * 0, POINTS[:, ::-1]])
def test_a_distance_is_as_long_across_as_up(points: Any) -> None:
    layout = heads_map(points, layers=LAYERS, heads=HEADS, theme="dark").layout
    wide = layout.width - layout.margin.l - layout.margin.r
    tall = layout.height - layout.margin.t - layout.margin.b
    x, y = layout.xaxis.range, layout.yaxis.range
    assert (x[1] - x[0]) / wide == pytest.approx((y[1] - y[0]) / tall)
    assert x[0] < points[:, 0].min() and points[:, 0].max() < x[1]
    assert y[0] < points[:, 1].min() and points[:, 1].max() < y[1]


def test_a_number_colours_the_points_and_the_unknown_are_hollow() -> None:
    figure = drawn(values=np.array([1.0, np.nan, 3.0]), values_title="Entropy <i>")
    known, hollow = with_heads(figure)
    assert known.marker.color.tolist() == [1.0, 3.0]
    assert known.marker.colorbar.title.text == "Entropy &#60;i&#62;"
    assert list(map(list, hollow.customdata)) == [[0, 1]]
    assert hollow.marker.symbol == "circle-open" and hollow.name == "not known"


def test_groups_differ_in_colour_and_in_sign_and_name_their_size() -> None:
    first, second = with_heads(drawn(groups=np.array([0, 1, 0])))
    assert (first.name, second.name) == ("group 1: 2 heads", "group 2: 1 head")
    assert first.marker.color != second.marker.color
    assert first.marker.symbol != second.marker.symbol
    assert list(map(list, first.customdata)) == [[0, 0], [3, 0]]
    assert group_names(np.array([4])) == {4: "group 5: 1 head"}


def test_the_selected_head_is_ringed_and_named() -> None:
    (ring,) = [t for t in drawn(selected=(3, 0)).data if t.marker.symbol == "circle-open"]
    assert (ring.x[0], ring.y[0]) == (-0.2, 0.3) and "L3H0" in ring.text[0]
    assert len(drawn(selected=(9, 9)).data) == 1


def test_arrays_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="groups"):
        drawn(groups=np.array([0, 1]))


def test_the_words_say_how_much_is_shown() -> None:
    assert "shows 37 % of the squared distances" in heads_map_alt(72, 0.372, "layer")


def pixels(uri: str) -> Any:
    image = Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))
    return np.array(image)


def test_a_thumbnail_is_the_map_enlarged_with_its_largest_weight_strongest() -> None:
    found = pixels(thumbnail(np.array([[1.0, 0.0], [0.25, 0.75]]), theme="light"))
    assert found.shape == (SIDE, SIDE)
    half = SIDE // 2
    corners = [found[0, 0], found[0, half], found[half, 0]]
    assert corners == [png.LEVELS - 1, 0, round((png.LEVELS - 1) / 2)]  # the root of 1/4 is 1/2


def test_thumbnails_that_are_compared_share_their_colours() -> None:
    found = pixels(thumbnail(np.array([[0.25]]), theme="dark", max_value=1.0))
    assert (found == round((png.LEVELS - 1) / 2)).all()


def test_a_thumbnail_tells_what_holds_no_weight() -> None:
    barred = np.array([[False, True]])
    found = pixels(thumbnail(np.array([[np.nan, 0.0]]), theme="light", forbidden=barred))
    left, right = found[:, : SIDE // 2], found[:, SIDE // 2 :]
    assert set(np.unique(left)) == {png.HATCH, png.PADDED}
    assert (right == png.FORBIDDEN).all()
    with pytest.raises(ValueError, match="weights"):
        thumbnail(np.zeros((0, 3)), theme="light")
