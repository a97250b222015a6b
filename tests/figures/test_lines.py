"""Lines: their data, what is uncertain, axes in the data's units, the upright, the legend."""

from __future__ import annotations

import numpy as np

from explorer.figures.lines import Line, lines

TITLES = {"x_title": "d_k", "y_title": "variance", "theme": "light"}


def test_a_line_keeps_its_points_and_axes_their_names() -> None:
    figure = lines([Line("measured", [1, 2, 4], [1.0, 2.1, 3.9])], **TITLES)
    assert figure.data[0].x.tolist() == [1, 2, 4]
    assert figure.data[0].y.tolist() == [1.0, 2.1, 3.9]
    assert figure.layout.xaxis.title.text == "d_k"
    assert figure.layout.yaxis.title.text == "variance"
    assert figure.layout.xaxis.type == "linear"


def test_a_band_runs_along_low_and_back_along_high() -> None:
    figure = lines([Line("a", [1, 2], [5, 6], low=[4, 5], high=np.array([6, 8]))], **TITLES)
    band, line = figure.data
    assert band.x.tolist() == [1, 2, 2, 1]
    assert band.y.tolist() == [4, 5, 8, 6]
    assert band.fill == "toself" and not band.showlegend
    assert line.name == "a"


def test_bars_reach_from_low_to_high() -> None:
    figure = lines([Line("a", [1], [5], low=[4.5], high=[7], bars=True, line=False)], **TITLES)
    (points,) = figure.data
    assert points.mode == "markers"
    assert points.error_y.array.tolist() == [2]
    assert points.error_y.arrayminus.tolist() == [0.5]


def test_a_logarithmic_axis_has_gaps_where_there_is_no_logarithm() -> None:
    figure = lines(
        [Line("a", [1, 10, 100], [0.0, 1.0, -1.0], low=[-1, 0.5, 1], high=[1, 2, 3])],
        **TITLES,
        y_log=True,
    )
    band, line = figure.data
    assert np.isnan(line.y).tolist() == [True, False, True]
    assert band.x.tolist() == [10, 100, 100, 10]
    assert figure.layout.yaxis.type == "log"


def test_ranges_are_in_the_datas_units() -> None:
    figure = lines(
        [Line("a", [1, 10], [1, 10])], **TITLES, x_log=True, x_range=(1, 1000), y_range=(0, 10)
    )
    assert figure.layout.xaxis.range == (0, 3)
    assert figure.layout.yaxis.range == (0, 10)


def test_the_legend_has_room_below_only_where_it_tells_lines_apart() -> None:
    one, two = Line("one", [1], [1]), Line("two", [1], [1])
    alone, both = lines([one], **TITLES), lines([one, two], **TITLES)
    assert not alone.layout.showlegend
    assert both.layout.showlegend
    assert both.layout.height > alone.layout.height
    assert both.data[0].line.color != both.data[1].line.color


def test_the_whole_figure_is_as_wide_as_asked() -> None:
    assert lines([], **TITLES, width=480).layout.width == 480


def test_names_are_not_read_as_markup() -> None:
    assert lines([Line("<b>a", [1], [1])], **TITLES).data[0].name == "&#60;b&#62;a"
