"""Rows side by side: one scale, exact zeros, NaN written out, marked tokens in another colour."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.colors import ink
from explorer.figures.compared import Panel, bar_number, compared_rows

LABELS = ("a", "<i>", "c")
PANELS = (
    Panel("Right", "sum 1", np.array([0.25, 0.75, 0.0])),
    Panel("Wrong", "sum NaN", np.array([np.nan, 0.5, 0.0001])),
)


def test_the_panels_share_a_scale_and_do_not_overlap() -> None:
    figure = compared_rows(PANELS, LABELS, unit="weight", theme="light")
    first, second = figure.layout.xaxis, figure.layout.xaxis2
    assert first.range == second.range
    assert first.range[0] == 0 and first.range[1] > 0.75
    assert first.domain[1] < second.domain[0]
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert [list(each.x)[1] for each in bars] == [0.75, 0.5]


def test_an_exact_zero_reads_differently_from_a_small_number() -> None:
    assert bar_number(0.0) == "0"
    assert bar_number(9e-11) == bar_number(0.0001) == "0.000"
    assert bar_number(0.1234) == "0.123"
    assert bar_number(float("nan")) == ""


def test_nan_is_written_where_a_bar_would_begin() -> None:
    figure = compared_rows(PANELS, LABELS, unit="weight", theme="light")
    (note,) = [trace for trace in figure.data if getattr(trace, "mode", "") == "text"]
    assert [text.strip() for text in note.text] == ["NaN"]
    assert (tuple(note.x), tuple(note.y), note.xaxis) == ((0,), (0,), "x2")


def test_marked_tokens_have_another_colour_and_a_name() -> None:
    marked = np.array([False, True, False])
    figure = compared_rows(
        PANELS, LABELS, unit="weight", theme="dark", marked=marked, marked_name="forbidden key"
    )
    colors = ink("dark")
    assert list(figure.data[0].marker.color) == [colors.bar, colors.accent, colors.bar]
    assert figure.data[-1].name == "forbidden key"


def test_the_tooltip_has_the_digits_that_a_small_number_lacks() -> None:
    figure = compared_rows(PANELS, LABELS, unit="weight", theme="light")
    assert "%{x:.4~g}" in figure.data[0].hovertemplate


def test_user_text_is_escaped() -> None:
    figure = compared_rows(PANELS, LABELS, unit="weight", theme="light")
    assert figure.layout.yaxis.ticktext[1] == "&#60;i&#62;"
    assert "<i>" not in figure.data[0].hovertext[1]


def test_many_tokens_stand_without_numbers_but_with_bars() -> None:
    labels = [str(n) for n in range(32)]
    panel = Panel("Right", "", np.full(32, 1 / 32))
    figure = compared_rows([panel], labels, unit="weight", theme="light")
    assert figure.data[0].text is None
    assert len(figure.data[0].x) == 32


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) would work"):
        compared_rows(PANELS, ("a", "b"), unit="weight", theme="light")
