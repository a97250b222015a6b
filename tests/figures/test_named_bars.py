"""Named bars: one series or two, labels in order, text that is data."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.named_bars import named_bars, named_bars_alt

TWO = {"before": [75.0, 25.0], "after": [50.0, 50.0]}


def test_both_series_stand_at_the_same_places_in_colours_of_their_own() -> None:
    figure = named_bars(["cat", "dog"], TWO, theme="light", title="probability, %")
    first, second = figure.data[:2]
    assert list(first.x) == [75, 25] and list(second.x) == [50, 50]
    assert list(first.y) == list(second.y) == [0, 1]
    assert first.marker.color != second.marker.color
    assert (first.name, second.name) == ("before", "after")
    assert figure.layout.showlegend and figure.layout.yaxis.range == (1.5, -0.5)
    assert list(figure.layout.yaxis.ticktext) == ["cat", "dog"]


def test_one_series_needs_no_legend_and_room_is_left_for_its_numbers() -> None:
    figure = named_bars(["a"], {"KL": [2.0]}, theme="dark", title="nats")
    assert not figure.layout.showlegend
    assert figure.layout.xaxis.range[1] > 2


def test_bars_that_are_all_zero_have_an_axis() -> None:
    figure = named_bars(["a"], {"KL": [0.0]}, theme="light", title="nats")
    assert figure.layout.xaxis.range[1] > 0


def test_labels_are_escaped() -> None:
    figure = named_bars(["<b>x</b>"], {"p": [1.0]}, theme="light", title="p")
    assert "<b>x" not in figure.layout.yaxis.ticktext[0]
    assert "<b>x" not in figure.layout.yaxis2.ticktext[0].replace("0: <b>", "")


def test_many_bars_get_thin_and_lose_their_numbers() -> None:
    figure = named_bars([str(n) for n in range(200)], {"p": [1.0] * 200}, theme="light", title="p")
    assert figure.data[0].texttemplate is None
    assert figure.layout.height < 1000
    assert np.all(np.diff(figure.layout.yaxis.tickvals) > 1)


def test_series_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 labels"):
        named_bars(["a", "b"], {"p": [1.0]}, theme="light", title="p")


def test_the_picture_in_words_names_the_longest() -> None:
    words = named_bars_alt("probability, %", ["cat", "dog"], TWO)
    assert "before: the most is 75, cat" in words and "after: the most is 50, cat" in words
