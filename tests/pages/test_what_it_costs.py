"""The page What it costs, with a measurement of two short lengths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

import explorer.ui.cost as views
from explorer.cost import Measured
from explorer.ui.questions import COST
from tests.pages import driven
from tests.pages.driven import answer_all

page = partial(driven.opened, "what_it_costs")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], int, int]]:
    """Stands in for the measuring process, and notes what it was asked for."""
    asked: list[tuple[list[int], int, int]] = []

    def instead(lengths: list[int], n_heads: int, d_k: int) -> Iterator[Measured]:
        asked.append((lengths, n_heads, d_k))
        for length in lengths:
            for method in views.METHODS:
                yield Measured(method, length, 1e-8 * length**2, 4 * length**2)

    monkeypatch.setattr(views, "measurements", instead)
    return asked


def test_a_first_look_measures_short_texts_and_shows_the_exponent(
    quick: list[tuple[list[int], int, int]],
) -> None:
    app = page()
    assert quick == [([128, 256, 512, 1024], 4, 64)]
    assert "n^2.00" in " ".join(element.value for element in app.markdown)


def test_a_disturbed_measurement_is_not_read_as_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    def disturbed(lengths: list[int], n_heads: int, d_k: int) -> Iterator[Measured]:
        for length in lengths:
            for method in views.METHODS:
                yield Measured(method, length, 1 / length, 4 * length**2)

    monkeypatch.setattr(views, "measurements", disturbed)
    app = page()
    assert "kept the machine busy" in app.warning[0].value
    assert "n^" not in " ".join(element.value for element in app.markdown)
    contexts = app.dataframe[1].value
    assert set(contexts["time here, by blocks"]) == {"–"}
    assert any("No times: they would follow from lines" in each.value for each in app.caption)


def test_the_table_of_contexts_is_right_for_four_heads(
    quick: list[tuple[list[int], int, int]],
) -> None:
    app = page()
    contexts = app.dataframe[1].value
    assert list(contexts["full table"][:2]) == ["16.0 MB", "256 MB"]  # 4 · n² · 4 bytes
    assert contexts["time here, by blocks"][0] == "10 ms"  # 1e-8 · 1000²
    assert not any("No times" in each.value for each in app.caption)


def test_other_sizes_are_measured_when_asked_for(
    quick: list[tuple[list[int], int, int]],
) -> None:
    app = page()
    app.selectbox(key="cost_heads").select(8).run()
    assert len(quick) == 1
    assert any("Press Measure" in caption.value for caption in app.caption)
    app.button[0].click().run()
    assert quick[1] == ([128, 256, 512, 1024], 8, 64)


def test_a_failed_measurement_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> Iterator[Measured]:
        raise RuntimeError("The measuring process ended by itself.")
        yield

    monkeypatch.setattr(views, "measurements", failing)
    app = page()
    assert "measuring process ended" in app.error[0].value


def test_a_link_with_an_impossible_size_falls_back_with_a_word(
    quick: list[tuple[list[int], int, int]],
) -> None:
    app = page(cost_heads="99")
    assert quick[0][1] == 4
    assert any("99" in warning.value for warning in app.warning)


def test_every_answer_of_the_questions_gives_its_reason(
    quick: list[tuple[list[int], int, int]],
) -> None:
    app = page()
    answer_all(app, "cost", COST)
