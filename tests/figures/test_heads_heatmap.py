"""One number of every head as a heatmap: its cells, its texts, its gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from explorer.figures.colors import contrast, from_hex, ink
from explorer.figures.heads_heatmap import (
    ABSENT,
    UNKNOWN,
    cell_texts,
    heads_heatmap,
    heads_heatmap_alt,
    number_domain,
)

VALUES = np.array([[0.0, 0.5, 1.0], [0.25, np.nan, 0.75]])
ABSENCE = np.array([[False, False, False], [False, False, True]])


def drawn(values: Any = VALUES, **options: Any) -> go.Figure:
    arguments: dict[str, Any] = {"title": "On <b>", "unit": "share of 1", "theme": "light"}
    return heads_heatmap(values, **{**arguments, **options})


def cells(figure: go.Figure) -> Any:
    (trace,) = [
        trace for trace in figure.data if trace.type == "heatmap" and trace.showscale is None
    ]
    return trace


def written(figure: go.Figure) -> list[Any]:
    return [trace for trace in figure.data if trace.type == "scatter" and trace.mode == "text"]


def texts(figure: go.Figure) -> dict[tuple[int, int], str]:
    return {
        (y, x): text
        for trace in written(figure)
        for x, y, text in zip(trace.x, trace.y, trace.text, strict=True)
    }


def test_each_cell_holds_its_heads_number_with_layer_0_on_top() -> None:
    figure = drawn()
    assert np.array_equal(cells(figure).z, VALUES.astype(np.float32), equal_nan=True)
    assert list(figure.layout.yaxis.range) == [1.5, -0.5]
    assert list(figure.layout.xaxis.range) == [-0.5, 2.5]
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("Head", "Layer")
    assert list(figure.layout.xaxis.ticktext) == ["0", "1", "2"]


def test_the_title_is_text_and_the_unit_stands_at_the_bar() -> None:
    trace = cells(drawn())
    assert trace.colorbar.title.text == "On &#60;b&#62;, share of 1"
    assert "On &#60;b&#62; <b>%{z" in trace.hovertemplate


def test_numbers_stand_in_the_cells_where_they_fit_and_nowhere_else() -> None:
    assert texts(drawn()) == {
        (0, 0): ".00",
        (0, 1): ".50",
        (0, 2): "1.0",
        (1, 0): ".25",
        (1, 2): ".75",
    }
    assert texts(drawn(np.full((24, 16), 0.5), width_px=300)) == {}
    assert len(texts(drawn(np.full((6, 12), 0.5), width_px=258))) == 72  # a phone's width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_numbers_can_be_read_on_their_cells(theme: str) -> None:
    values = np.linspace(0, 1, 30).reshape(3, 10)
    figure = drawn(values, theme=theme)
    scale = cells(figure).colorscale
    for trace in written(figure):
        for x, y in zip(trace.x, trace.y, strict=True):
            ground = min(scale, key=lambda stop: abs(stop[0] - values[y, x]))[1]
            assert contrast(from_hex(trace.textfont.color), from_hex(ground)) >= 4.5


def test_heads_that_are_not_there_are_told_from_numbers_not_known() -> None:
    figure = drawn(absent=ABSENCE)
    ground = next(t for t in figure.data if t.type == "heatmap" and t.showscale is False)
    assert np.array_equal(np.isfinite(ground.z), ABSENCE)
    assert ABSENT in ground.hovertemplate
    assert ground.colorscale[0][1] == ink("light").absent
    legend = [trace.name for trace in figure.data if trace.showlegend]
    assert sorted(legend) == sorted([ABSENT, UNKNOWN])
    assert (1, 2) not in texts(figure)


def test_a_full_table_needs_no_legend() -> None:
    figure = drawn(np.ones((2, 2)))
    assert not figure.layout.showlegend
    assert [trace.name for trace in figure.data if trace.showlegend] == []


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([0.1, 0.9], (0.0, 0.9)),
        ([2.0, 2.5], (2.0, 2.5)),  # all above half of the highest
        ([0.0, 0.0], (0.0, 1.0)),
        ([3.0, 3.0], (0.0, 3.0)),
        ([-1.0, 1.0], (-1.0, 1.0)),
        ([np.nan, np.nan], (0.0, 1.0)),
    ],
)
def test_the_colours_fit_what_is_shown(values: list[float], ends: tuple[float, float]) -> None:
    assert number_domain(np.array([values])) == ends


def test_texts_keep_to_three_digits() -> None:
    assert cell_texts(np.array([[0.256, 0.999]])).tolist() == [[".26", "1.0"]]
    assert cell_texts(np.array([[0.256, 2.0]])).tolist() == [["0.26", "2.00"]]
    assert cell_texts(np.array([[1.26, 12.0]])).tolist() == [["1.3", "12.0"]]
    assert cell_texts(np.array([[1.26, 312.0]])).tolist() == [["1", "312"]]


def test_texts_have_a_minus_and_none_where_they_round_to_0() -> None:
    assert cell_texts(np.array([[-0.001, -0.26, -1.0]])).tolist() == [[".00", "−.26", "−1.0"]]
    assert cell_texts(np.array([[-0.04, -12.0]])).tolist() == [["0.0", "−12.0"]]
    assert "Lowest −0.5 at" in heads_heatmap_alt(np.array([[-0.5, 1.0]]), "Change", "nats")


def test_what_has_no_unit_is_named_once() -> None:
    assert cells(drawn(title="Change of cosine", unit="")).colorbar.title.text == "Change of cosine"
    assert heads_heatmap_alt(VALUES, "Change of cosine", "").startswith("Change of cosine of each")


def test_a_phone_gets_numbers_with_fewer_digits() -> None:
    values = np.full((6, 12), 5.678)
    assert set(texts(drawn(values, width_px=408)).values()) == {"5.68"}
    assert set(texts(drawn(values, width_px=258)).values()) == {"5.7"}
    assert texts(drawn(values, width_px=200)) == {}


def test_the_words_name_both_extremes() -> None:
    words = heads_heatmap_alt(VALUES, "On itself", "share of 1")
    assert "2 layers down, 3 heads across" in words
    assert "Lowest 0 at L0H0" in words and "highest 1 at L0H2" in words
    assert "None has a number" in heads_heatmap_alt(np.full((1, 1), np.nan), "a", "b")


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="values"):
        drawn(np.zeros(3))
    with pytest.raises(ValueError, match="absent"):
        drawn(absent=np.zeros((1, 1), bool))


def test_one_head_alone_is_drawn() -> None:
    figure = drawn(np.array([[0.5]]))
    assert texts(figure) == {(0, 0): ".50"}
