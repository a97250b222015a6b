"""One head in full: its cells, labels, range, and the cells that hold no value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import pytest

from explorer.figures.colors import diverging_colors, ink, to_hex
from explorer.figures.domain import Kind, head_map_alt, round_values, value_domain
from explorer.figures.heatmap import head_map
from explorer.figures.numbers import cell_number


def drawn(values: npt.NDArray[Any], kind: Kind = "weights", **options: Any) -> go.Figure:
    n_q, n_k = values.shape
    options = {
        "query_labels": [f"q{row}" for row in range(n_q)],
        "key_labels": [f"k{column}" for column in range(n_k)],
        "theme": "light",
    } | options
    return head_map(values, kind=kind, **options)


def cells(figure: go.Figure) -> Any:
    """The heatmap trace of the values."""
    return next(
        trace for trace in figure.data if trace.type == "heatmap" and trace.showscale is None
    )


def legend(figure: go.Figure) -> list[str]:
    return [trace.name for trace in figure.data if getattr(trace, "showlegend", False)]


def test_rows_are_queries_from_the_top_and_columns_keys() -> None:
    values = np.arange(6, dtype=float).reshape(2, 3) / 10
    figure = drawn(values)
    assert np.allclose(cells(figure).z, values)
    layout = figure.layout
    assert layout.yaxis.range == layout.yaxis2.range == (1.5, -0.5)
    assert layout.xaxis.range == layout.xaxis2.range == (-0.5, 2.5)
    assert (layout.yaxis.title.text, layout.xaxis.title.text) == ("Query (row)", "Key (column)")
    assert layout.xaxis.ticktext == ("k0", "k1", "k2")
    assert layout.yaxis.ticktext == ("q0", "q1")


def test_equal_and_odd_labels_keep_their_own_place() -> None:
    tokens = ["the", "<s>", "2024-01", "the"]
    figure = drawn(np.eye(4), query_labels=tokens, key_labels=tokens)
    assert figure.layout.xaxis.type == "linear"
    assert figure.layout.xaxis.ticktext == ("the", "&#60;s&#62;", "2024-01", "the")
    assert figure.layout.xaxis.tickvals == (0, 1, 2, 3)


def test_every_token_is_named_in_the_tooltip_even_where_its_tick_is_left_out() -> None:
    figure = drawn(np.eye(200), raw_key=[f"Ġk{column}" for column in range(200)])
    assert len(figure.layout.xaxis.tickvals) < 200
    assert figure.layout.xaxis2.ticktext[199] == "199: <b>k199</b> (raw Ġk199)"
    assert figure.layout.yaxis2.ticktext[7] == "7: <b>q7</b>"
    trace = cells(figure)
    assert (trace.xaxis, trace.yaxis) == ("x2", "y2")
    assert trace.hovertemplate.startswith("Query %{y}<br>Key %{x}<br>weight")


def test_weights_run_from_zero_to_the_largest_shown() -> None:
    trace = cells(drawn(np.array([[0.1, 0.4]])))
    assert (trace.zmin, trace.zmax) == (0, pytest.approx(0.4))
    assert trace.colorbar.title.text.startswith("weight, share of 1")
    assert "√" in trace.colorbar.title.text


def test_another_measure_stands_at_the_colour_bar_and_in_the_tooltip() -> None:
    trace = cells(drawn(np.full((4, 4), 0.25), unit="rollout, share of 1"))
    assert trace.colorbar.title.text == "rollout, share of 1 (√ colour scale)"
    assert "<br>rollout <b>" in trace.hovertemplate


def test_a_long_name_of_what_is_shown_takes_two_lines_below_a_small_map() -> None:
    unit = "weight × value × W_O − weight × value, share of 1"
    for size, lines in ((200, 2), (400, 1)):
        figure = drawn(np.full((16, 16), 0.1), "difference", unit=unit, max_px=size)
        title = cells(figure).colorbar.title.text
        assert title.replace("<br>", " ") == unit and title.count("<br>") == lines - 1
        assert figure.layout.margin.b == 62 + 15 * (lines - 1)
        assert figure.layout.height == figure.layout.margin.t + size + figure.layout.margin.b


def test_the_padded_row_does_not_stretch_the_range() -> None:
    values = np.array([[0.1, 0.4], [0.9, 0.1]])
    trace = cells(drawn(values, padded_queries=np.array([False, True])))
    assert trace.zmax == pytest.approx(0.4)


@pytest.mark.parametrize("kind", ["scores", "dots", "difference"])
def test_signed_values_have_a_range_that_fits_and_zero_neutral(kind: Kind) -> None:
    trace = cells(drawn(np.array([[-3.0, 1.0]]), kind))
    assert (trace.zmin, trace.zmax) == (-3, 1)
    place = min(trace.colorscale, key=lambda stop: abs(-3 + 4 * stop[0]))
    assert place[1] == to_hex(diverging_colors("light")[128])


def test_only_positive_scores_begin_at_zero() -> None:
    assert value_domain(np.array([[2.0, 5.0]]), "scores") == (0, 5)


def test_values_all_equal_are_drawn_without_a_division_by_zero() -> None:
    assert value_domain(np.zeros((2, 2)), "scores") == (-1, 1)
    assert value_domain(np.zeros((2, 2)), "weights") == (0, 1)
    assert value_domain(np.full((2, 2), np.nan), "weights") == (0, 1)
    assert cells(drawn(np.full((3, 3), 1 / 3))).zmax == pytest.approx(1 / 3)


def test_one_token_is_drawn() -> None:
    figure = drawn(np.ones((1, 1)))
    assert cells(figure).z.tolist() == [[1]]
    assert figure.layout.width > 150


def test_a_shared_range_is_used_as_given() -> None:
    trace = cells(drawn(np.array([[0.1, 0.4]]), value_range=(0.0, 1.0)))
    assert (trace.zmin, trace.zmax) == (0, 1)
    with pytest.raises(ValueError, match="value_range"):
        drawn(np.ones((1, 1)), value_range=(1.0, 1.0))


def test_forbidden_cells_hold_no_value_and_are_named() -> None:
    forbidden = np.triu(np.ones((3, 3), bool), 1)
    figure = drawn(np.full((3, 3), 0.5), forbidden=forbidden)
    assert np.isnan(cells(figure).z).tolist() == forbidden.tolist()
    assert legend(figure) == ["forbidden by the mask"]
    ground = figure.data[0]
    assert ground.colorscale[0][1] == ink("light").forbidden
    assert "no value: forbidden" in ground.hovertemplate


def test_padded_rows_are_hatched_over_their_whole_length() -> None:
    figure = drawn(np.full((3, 4), 0.25), padded_queries=np.array([False, False, True]))
    hatch = next(trace for trace in figure.data if trace.name == "padding, not a query")
    assert hatch.fillpattern.shape == "/"
    assert (min(hatch.x), max(hatch.x), min(hatch.y), max(hatch.y)) == (-0.5, 3.5, 1.5, 2.5)
    assert np.isnan(cells(figure).z[2]).all()


def test_hatching_lies_on_the_axes_of_the_cells_or_the_ground_would_hide_it() -> None:
    figure = drawn(np.full((2, 2), 0.5), padded_queries=np.array([False, True]))
    hatch = next(trace for trace in figure.data if trace.name == "padding, not a query")
    assert (hatch.xaxis, hatch.yaxis) == (cells(figure).xaxis, cells(figure).yaxis)


def test_cells_that_are_not_finite_are_hatched_and_counted() -> None:
    values = np.array([[0.5, np.nan], [np.inf, 0.5]])
    figure = drawn(values, "scores")
    assert legend(figure) == ["not a finite number: 2 cells"]
    assert (cells(figure).zmin, cells(figure).zmax) == (0, 0.5)


def test_named_arrays_are_added_to_the_tooltip() -> None:
    scores = np.array([[1.0, 2.0]])
    trace = cells(drawn(np.array([[0.3, 0.7]]), extra={"scaled score": scores, "dot": scores * 8}))
    assert trace.customdata.shape == (1, 2, 2)
    assert trace.customdata[0, 1].tolist() == [2, 16]
    assert "scaled score %{customdata[0]:.4f}<br>dot %{customdata[1]:.4f}" in trace.hovertemplate


def test_numbers_stand_in_the_cells_of_small_maps_only() -> None:
    def numbers(figure: go.Figure) -> list[str]:
        texts = [trace for trace in figure.data if getattr(trace, "mode", None) == "text"]
        return [text for trace in texts for text in trace.text]

    assert sorted(numbers(drawn(np.array([[0.25, 0.75]])))) == [".25", ".75"]
    assert not numbers(drawn(np.eye(13)))
    assert not numbers(drawn(np.eye(12), max_px=200))
    assert len(numbers(drawn(np.eye(13), show_numbers=True))) == 169
    assert not numbers(drawn(np.eye(2), show_numbers=False))


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.256, "weights", ".26"),
        (0.999, "weights", "1.0"),
        (0.0, "weights", ".00"),
        (-15.2, "scores", "−15"),
        (-5.73, "scores", "−5.7"),
        (-0.42, "scores", "−.42"),
        (-0.0001, "scores", ".00"),
        (0.996, "scores", "1.0"),
        (9.96, "scores", "10"),
    ],
)
def test_numbers_are_short(value: float, kind: Kind, text: str) -> None:
    assert cell_number(value, kind) == text


def test_the_selected_cell_its_row_and_its_column_are_framed() -> None:
    shapes = drawn(np.eye(4), selected=(1, 2)).layout.shapes
    boxes = [(s.x0, s.x1, s.y0, s.y1) for s in shapes]
    assert boxes == [(-0.5, 3.5, 0.5, 1.5), (1.5, 2.5, -0.5, 3.5), (1.5, 2.5, 0.5, 1.5)]
    with pytest.raises(ValueError, match="selected"):
        drawn(np.eye(4), selected=(0, 4))


def test_a_large_map_is_a_picture_with_a_bar_and_the_same_key() -> None:
    n = 600
    forbidden = np.triu(np.ones((n, n), bool), 1)
    figure = drawn(np.full((n, n), 0.01, np.float32), forbidden=forbidden)
    assert figure.data[0].type == "image"
    assert figure.data[1].marker.showscale
    assert legend(figure) == ["forbidden by the mask"]


def test_up_to_512_tokens_a_tooltip_names_both_tokens() -> None:
    n = 512  # the image of a larger map can name positions only
    figure = drawn(np.full((n, n), 0.01, np.float32), query_labels=[f"q{at}" for at in range(n)])
    assert figure.data[0].type == "heatmap"
    assert "%{y}" in figure.data[0].hovertemplate
    assert figure.layout.yaxis2.ticktext[300] == "300: <b>q300</b>"


@pytest.mark.parametrize(
    ("n", "megabytes"), [(32, 0.05), (128, 0.45), (256, 0.6), (512, 1.9), (1024, 1.6)]
)
def test_the_map_is_light(n: int, megabytes: float) -> None:
    values = np.random.default_rng(0).random((n, n))
    extra = {"scaled score": values, "dot product": values}
    assert len(drawn(values, extra=extra).to_json()) / 1e6 < megabytes


def test_cells_are_square_and_the_margins_hold_the_longest_label() -> None:
    figure = drawn(np.eye(10), query_labels=["anticonstitutionnellement"] * 10)
    layout = figure.layout
    across = layout.width - layout.margin.l - layout.margin.r
    down = layout.height - layout.margin.t - layout.margin.b
    assert across == down
    assert layout.margin.l > 16 * 7


def test_round_values_hold_both_ends_and_zero() -> None:
    assert round_values(-3, 1) == [-3, -2, -1, 0, 1]
    assert round_values(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(ValueError, match="key_labels"):
        drawn(np.eye(2), key_labels=["one"])
    with pytest.raises(ValueError, match="forbidden"):
        drawn(np.eye(2), forbidden=np.zeros((3, 3), bool))
    with pytest.raises(ValueError, match="padded_queries"):
        drawn(np.eye(2), padded_queries=np.zeros(3, bool))
    with pytest.raises(ValueError, match=r"extra\['dots'\]"):
        drawn(np.eye(2), extra={"dots": np.eye(3)})
    with pytest.raises(ValueError, match="values"):
        drawn(np.zeros((0, 2)))


def test_the_given_arrays_are_not_changed() -> None:
    values, forbidden = np.full((2, 2), 0.5), np.array([[False, True], [False, False]])
    drawn(values, forbidden=forbidden, padded_queries=np.array([False, True]))
    assert (values == 0.5).all() and forbidden.sum() == 1


def test_the_words_name_the_largest_value() -> None:
    words = head_map_alt(
        "L0H1", "weights", ["the", "cat"], ["the", "cat"], np.array([[0.1, 0.9], [0.5, 0.5]])
    )
    assert "Weights of L0H1: 2 queries down, 2 keys across" in words
    assert "0.9, is query 0 (the) on key 1 (cat)" in words
    assert "No cell" in head_map_alt("L0H0", "weights", ["a"], ["a"], np.array([[np.nan]]))
