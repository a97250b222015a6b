"""The strip of a few heads: one range of colours, a click that names the head, names above."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.strip import heads_strip, strip_alt


def maps(n: int, size: int = 4) -> list[np.ndarray]:
    return [np.full((size, size), 0.1 * (at + 1)) for at in range(n)]


def test_a_click_in_a_map_is_one_on_its_head() -> None:
    heads = [(0, 2), (3, 5), (4, 1)]
    figure = heads_strip(maps(3), heads, ["a", "b", "c"], theme="light")
    (markers,) = [t for t in figure.data if t.type == "scatter" and t.customdata is not None]
    assert [tuple(data) for data in markers.customdata] == heads
    pictures = [trace for trace in figure.data if trace.type == "image"]
    for picture, x, y in zip(pictures, markers.x, markers.y, strict=True):
        # The picture has two pixels for each of the 4 cells, and the marker is in its middle.
        assert x == pytest.approx(picture.x0 + 3.5 * picture.dx)
        assert y == pytest.approx(picture.y0 + 3.5 * picture.dy)


def test_all_maps_share_the_largest_weight_as_the_end_of_the_colours() -> None:
    figure = heads_strip(maps(3), [(0, 0), (0, 1), (0, 2)], ["", "", ""], theme="dark")
    (bar,) = [t.marker for t in figure.data if t.type == "scatter" and t.marker.showscale]
    assert (bar.cmin, bar.cmax) == (0.0, pytest.approx(0.3))


def test_names_and_notes_stand_above_and_are_escaped() -> None:
    figure = heads_strip(maps(1), [(7, 11)], ["<b>0.1</b>"], theme="light")
    assert figure.layout.annotations[0].text == "<b>L7H11</b><br>&#60;b&#62;0.1&#60;/b&#62;"
    assert "L7H11 (near)" in strip_alt([(7, 11)], ["near"])


@pytest.mark.parametrize(("width", "columns"), [(1000, 6), (500, 3), (300, 2), (120, 1)])
def test_a_narrow_page_has_more_rows(width: int, columns: int) -> None:
    heads = [(0, at) for at in range(6)]
    figure = heads_strip(maps(6), heads, [""] * 6, theme="light", width_px=width)
    assert len({note.x for note in figure.layout.annotations}) == columns
    assert figure.layout.width <= width + 24


def test_forbidden_cells_have_their_own_entry_and_nan_does_not_break_it() -> None:
    barred = np.triu(np.ones((4, 4), bool), 1)
    hollow = maps(1)[0] * np.nan
    figure = heads_strip([hollow], [(0, 0)], ["x"], theme="light", forbidden=[barred])
    assert figure.layout.showlegend
    with pytest.raises(ValueError, match="given for 1 maps"):
        heads_strip(maps(1), [], [], theme="light")
