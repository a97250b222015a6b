"""The map of a long text in bins, its ticks, and the small maps of all heads."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from explorer.figures.long_axis import Side, color_top, place_of, round_positions
from explorer.figures.long_heads import EDGE, NAME, columns_of, long_heads
from explorer.figures.long_map import long_map, long_map_alt

WORDS = [f"w{n}" for n in range(1000)]


def side(edges: tuple[int, ...], **more: Any) -> Side:
    return Side(edges, WORDS, [f"words {start}" for start in edges[:-1]], **more)


def traces(figure: Any, kind: str) -> list[Any]:
    return [trace for trace in figure.data if trace.type == kind]


ROWS, KEYS = side((0, 3, 5, 7)), side((100, 110, 120))
VALUES = np.array([[0.1, 0.2], [0.3, 0.0], [0.05, 0.4]], np.float32)


def test_the_map_shows_each_bins_value_up_to_the_largest_here() -> None:
    (trace,) = traces(long_map(VALUES, ROWS, KEYS, theme="light", what="weight"), "heatmap")
    assert np.array_equal(trace.z, VALUES)
    assert (trace.zmin, trace.zmax) == (0, pytest.approx(0.4))


def test_a_few_bins_far_above_the_rest_do_not_make_it_pale() -> None:
    values = np.full((50, 50), 0.01, np.float32)
    values[0, 0] = 1.0
    edges = tuple(range(51))
    figure = long_map(values, side(edges), side(edges), theme="light", what="weight")
    assert figure.data[0].zmax == pytest.approx(0.01)
    assert figure.data[0].colorbar.ticktext[-1] == "≥ 0.01"
    assert figure.data[0].z[0, 0] == 1.0  # the tooltip has it as it is


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[0.2, 0.4]], (0.4, False)),
        ([[0.0, 0.0]], (1.0, False)),
        ([[np.nan, np.nan]], (1.0, False)),
        ([[0.0] * 999 + [0.7]], (0.7, False)),  # a needle in nothing
    ],
)
def test_the_strongest_colour_is_the_largest_value_where_none_lies_far_above(
    values: list[list[float]], expected: tuple[float, bool]
) -> None:
    assert color_top(np.array(values, np.float64)) == pytest.approx(expected)


def test_a_tooltip_names_both_sides_by_one_text_a_bin() -> None:
    figure = long_map(VALUES, ROWS, KEYS, theme="light", what="weight")
    assert figure.layout.yaxis2.ticktext == ("0–2 “words 0”", "3–4 “words 3”", "5–6 “words 5”")
    assert figure.layout.xaxis2.ticktext == ("100–109 “words 100”", "110–119 “words 110”")
    assert figure.data[0].text is None and figure.data[0].customdata is None


def test_a_single_token_is_named_with_the_words_around_it() -> None:
    figure = long_map(VALUES[:1, :1], side((7, 8)), side((9, 10)), theme="dark", what="weight")
    assert figure.layout.yaxis2.ticktext == ("7 <b>w7</b> in “words 7”",)


def test_forbidden_bins_hold_no_value_and_are_named() -> None:
    barred = np.array([[False, True]] * 3)
    figure = long_map(
        VALUES, ROWS, KEYS, theme="light", what="weight", forbidden=barred, barred_name="not read"
    )
    ground, shown = traces(figure, "heatmap")
    assert np.isnan(shown.z[barred]).all() and np.isfinite(shown.z[~barred]).all()
    assert "no value: not read" in ground.hovertemplate
    assert "not read" in {trace.name for trace in figure.data}


def test_values_that_are_not_numbers_are_hatched_and_counted() -> None:
    values = VALUES.copy()
    values[1, 1] = np.nan
    figure = long_map(values, ROWS, KEYS, theme="light", what="weight")
    assert "not a finite number: 1 cell" in {trace.name for trace in figure.data}


def test_the_chosen_bin_is_framed_and_the_places_found_are_marked() -> None:
    figure = long_map(
        VALUES,
        side((0, 3, 5, 7), found=[0, 2], current=2),
        KEYS,
        theme="light",
        what="weight",
        selected=(1, 0),
    )
    line, box = figure.layout.shapes
    assert (line.y0, line.y1, line.x0, line.x1) == (2, 2, -0.5, 1.5)
    assert (box.y0, box.y1, box.x0, box.x1) == (0.5, 1.5, -0.5, 0.5)
    marked = [trace.y for trace in traces(figure, "scatter") if trace.marker.symbol]
    assert (0, 2) in marked


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3, 2\) given; \(2, 3\)"):
        long_map(VALUES, side((0, 1, 2)), side((0, 1, 2, 3)), theme="light", what="weight")


def test_the_map_in_words_names_the_strongest_bin() -> None:
    said = long_map_alt("head 3", (0, 7), (100, 120), VALUES)
    assert "head 3" in said and "queries 0 to 6" in said and "row 3, column 2, with 0.4" in said


@pytest.mark.parametrize(
    ("first", "stop", "most", "expected"),
    [
        (0, 16_384, 10, [0, 2000, 4000, 6000, 8000, 10_000, 12_000, 14_000, 16_000]),
        (3, 8, 10, [3, 4, 5, 6, 7]),
        (95, 131, 4, [100, 110, 120, 130]),
        (95, 131, 2, [100, 120]),
        (5, 6, 1, [5]),
    ],
)
def test_ticks_stand_at_round_positions(
    first: int, stop: int, most: int, expected: list[int]
) -> None:
    assert round_positions(first, stop, most) == expected


@given(st.integers(0, 10**6), st.integers(1, 10**5), st.integers(1, 40))
def test_there_are_never_more_ticks_than_fit_by_much(first: int, length: int, most: int) -> None:
    found = round_positions(first, first + length, most)
    assert len(found) <= most + 1
    assert all(first <= position < first + length for position in found)


def test_a_token_lies_in_the_middle_of_its_share_of_a_bin() -> None:
    edges = (10, 14, 16)
    assert place_of(10, edges) == pytest.approx(-0.5 + 0.125)
    assert place_of(15, edges) == pytest.approx(0.5 + 0.75)
    assert [place_of(n, (0, 1, 2, 3)) for n in range(3)] == [0, 1, 2]


def picture(figure: Any) -> Any:
    """The palette codes of the figure's picture."""
    data = figure.data[0].source.partition(",")[2]
    return np.array(Image.open(io.BytesIO(base64.b64decode(data))))


def heads(n: int = 3, bins: int = 128, width: int = 300) -> tuple[Any, Any]:
    maps = np.zeros((n, bins, bins), np.float32)
    maps[:, 0, 0] = 0.5  # a needle in each
    barred = np.triu(np.ones((1, bins, bins), bool), 1)
    notes = [f"note {head}" for head in range(n)]
    return maps, long_heads(maps, theme="light", forbidden=barred, notes=notes, width_px=width)


def test_every_head_has_its_small_map_and_its_needle_is_seen() -> None:
    _, figure = heads()
    codes = picture(figure)
    side = codes.shape[1] // 3 - 2 * EDGE
    for head in range(3):
        left = head * (side + 2 * EDGE) + EDGE
        assert codes[NAME, left] == 63  # the strongest colour
        assert codes[NAME, left + side - 1] == 64  # forbidden
        assert codes[NAME + side - 1, left] == 0
    assert [tuple(each) for each in figure.data[1].customdata] == [(0,), (1,), (2,)]
    assert "note 2" in figure.data[1].text[2]


def test_heads_stand_in_rows_as_even_as_they_can_be() -> None:
    assert [columns_of(n, 480) for n in (1, 4, 6, 8, 12, 16)] == [1, 4, 6, 4, 6, 6]
    assert columns_of(12, 320) == 4


def test_the_picture_of_twelve_heads_is_small() -> None:
    rng = np.random.default_rng(0)
    maps = rng.random((12, 256, 256), np.float32)
    barred = np.zeros((1, 256, 256), bool)
    figure = long_heads(maps, theme="light", forbidden=barred, notes=[""] * 12, width_px=480)
    assert len(figure.to_json()) < 200_000  # bytes, where all bins as float32 are 3.1 million


def test_a_note_for_each_head_is_asked_for() -> None:
    with pytest.raises(ValueError, match="notes: 1 given; 2"):
        long_heads(
            np.zeros((2, 4, 4)), theme="light", forbidden=np.zeros((1, 4, 4), bool), notes=["x"]
        )
