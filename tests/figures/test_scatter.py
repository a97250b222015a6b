"""A point a head: its place, its colour, its ring, and the lines beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from explorer.figures.colors import contrast, from_hex, ink
from explorer.figures.scatter import heads_scatter, log_ticks, scatter_alt
from explorer.figures.score_histogram import score_histogram

X = np.array([0.5, 2.0, 8.0, 0.0])
Y = np.array([1.0, 30.0, 4.0, 3.0])
LAYERS, HEADS = np.array([2, 2, 5, 5]), np.array([0, 1, 0, 1])


def drawn(**options: Any) -> go.Figure:
    arguments: dict[str, Any] = {"x_title": "Across <b>", "y_title": "Up", "theme": "light"}
    return heads_scatter(X, Y, layers=LAYERS, heads=HEADS, **{**arguments, **options})


def points(figure: go.Figure) -> Any:
    (trace,) = [trace for trace in figure.data if trace.customdata is not None]
    return trace


def test_a_point_stands_at_its_numbers_and_says_which_head_it_is() -> None:
    trace = points(drawn())
    assert trace.x.tolist() == X.tolist() and trace.y.tolist() == Y.tolist()
    assert list(map(list, trace.customdata)) == [[2, 0], [2, 1], [5, 0], [5, 1]]
    assert type(trace.customdata[0][0]) is int  # numpy would reach a click as a dict
    assert "L%{customdata[0]}H%{customdata[1]}" in trace.hovertemplate


def test_what_has_no_place_on_the_axes_is_not_drawn() -> None:
    trace = points(drawn(x_log=True))
    assert list(map(list, trace.customdata)) == [[2, 0], [2, 1], [5, 0]]
    figure = heads_scatter(
        X,
        np.array([np.nan, 1.0, np.inf, 2.0]),
        layers=LAYERS,
        heads=HEADS,
        x_title="x",
        y_title="y",
        theme="dark",
    )
    assert list(map(list, points(figure).customdata)) == [[2, 1], [5, 1]]


@pytest.mark.parametrize("log", [False, True])
def test_the_axes_hold_all_points_with_air_around_them(log: bool) -> None:
    layout = drawn(x_log=log, y_log=log).layout
    for axis, values in ((layout.xaxis, X), (layout.yaxis, Y)):
        kept = np.log10(values[values > 0]) if log else values
        assert axis.range[0] < kept.min() and kept.max() < axis.range[1]
        assert axis.type == ("log" if log else "linear")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_layer_has_a_band_of_colour_that_stands_out(theme: Any) -> None:
    marker = points(drawn(theme=theme)).marker
    assert marker.color.tolist() == [2, 2, 5, 5]
    assert (marker.cmin, marker.cmax) == (1.5, 5.5)  # a band for each layer from 2 to 5
    colors = [color for _, color in marker.colorscale]
    assert len(set(colors)) == 4
    page = from_hex(ink(theme).page)
    assert all(contrast(from_hex(color), page) > 1.8 for color in colors)
    assert list(marker.colorbar.ticktext) == ["2", "3", "4", "5"]


def test_many_layers_are_named_at_a_stride() -> None:
    n = 48
    numbers = np.arange(n)
    figure = heads_scatter(
        numbers * 1.0,
        numbers * 1.0,
        layers=numbers,
        heads=np.zeros(n, int),
        x_title="x",
        y_title="y",
        theme="light",
    )
    assert list(points(figure).marker.colorbar.tickvals) == list(range(0, 48, 4))


def test_the_selected_head_is_ringed_and_named() -> None:
    ring = drawn(selected=(5, 0)).data[-1]
    assert (ring.x.tolist(), ring.y.tolist()) == ([8.0], [4.0])
    assert "L5H0" in ring.text[0] and ring.textposition == "middle left"  # it is at the right end
    assert drawn(selected=(2, 0)).data[-1].textposition == "middle right"
    assert points(drawn(selected=(5, 1), x_log=True)) is not None  # not drawn, so not ringed
    assert len(drawn(selected=(5, 1), x_log=True).data) == len(drawn(x_log=True).data)


@pytest.mark.parametrize("log", [False, True])
def test_the_identity_line_is_where_both_are_equal(log: bool) -> None:
    figure = drawn(identity="equal", x_log=log, y_log=log)
    (line,) = [trace for trace in figure.data if trace.name == "equal"]
    np.testing.assert_allclose(line.x, line.y)
    assert figure.layout.xaxis.range == figure.layout.yaxis.range
    ends = np.log10(line.x) if log else line.x
    np.testing.assert_allclose(ends, figure.layout.xaxis.range)


def test_a_level_is_drawn_across_and_stays_in_sight() -> None:
    figure = drawn(level=(100.0, "assumed"), y_log=True)
    (line,) = [trace for trace in figure.data if trace.name == "assumed"]
    np.testing.assert_allclose(line.y, 100)
    np.testing.assert_allclose(line.x, figure.layout.xaxis.range)
    assert figure.layout.yaxis.range[1] > 2


def test_titles_are_escaped() -> None:
    figure = drawn()
    assert figure.layout.xaxis.title.text == "Across &#60;b&#62;"
    assert "<b>&#" not in points(figure).hovertemplate.split("<extra>")[0].split("Across ")[0]


def test_one_head_and_none_can_be_drawn() -> None:
    for n in (1, 0):
        figure = heads_scatter(
            X[:n], Y[:n], layers=LAYERS[:n], heads=HEADS[:n], x_title="x", y_title="y",
            theme="light", x_log=True, identity="equal",
        )  # fmt: skip
        assert all(np.isfinite(figure.layout.xaxis.range))
        assert len(points(figure).x) == n


def test_arrays_of_unlike_length_are_refused() -> None:
    with pytest.raises(ValueError, match="layers: 3 given for 4 heads"):
        heads_scatter(X, Y, layers=LAYERS[:3], heads=HEADS, x_title="x", y_title="y", theme="light")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-0.5, 1.2, [0.5, 1, 2, 5, 10]), (-1, 4, [0.1, 1, 10, 100, 1000, 10000])],
)
def test_logarithmic_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    np.testing.assert_allclose(log_ticks(low, high), expected)


def test_the_picture_in_words_names_the_extremes() -> None:
    words = scatter_alt(X, Y, LAYERS, HEADS, "size", "variance")
    assert words == (
        "4 heads as points: size across, variance up. Up, the smallest is 1 (L2H0), the largest"
        " 30 (L2H1)."
    )
    assert "None has a number" in scatter_alt(X, Y * np.nan, LAYERS, HEADS, "size", "variance")


# The histogram beside it


def histogram(variance: float = 1.0, **options: Any) -> go.Figure:
    edges, density = np.linspace(-2, 2, 6), np.array([0.05, 0.3, 0.55, 0.3, 0.05])
    return score_histogram(
        edges,
        density,
        expected_variance=variance,
        x_title="score",
        bars_name="measured",
        curve_name="assumed",
        theme="light",
        **options,
    )


def test_bars_and_curve_are_densities_on_one_axis() -> None:
    bars, curve = histogram(4.0).data
    np.testing.assert_allclose(bars.x, [-1.6, -0.8, 0, 0.8, 1.6], atol=1e-12)
    assert bars.width == pytest.approx(0.8)
    assert max(curve.y) == pytest.approx(1 / np.sqrt(2 * np.pi * 4))
    assert np.trapezoid(curve.y, curve.x) == pytest.approx(1, abs=2e-3)
    assert histogram(4.0).layout.xaxis.range[1] > 3.5 * 2


def test_edges_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="edges"):
        score_histogram(
            np.zeros(3),
            np.zeros(3),
            expected_variance=1,
            x_title="",
            bars_name="",
            curve_name="",
            theme="light",
        )
