"""The page What it costs, with a measurement of two short lengths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import explorer.ui.cost as views
from explorer.cost import Measured
from explorer.ui.questions import COST

PAGE = Path(__file__).parents[2] / "pages" / "what_it_costs.py"


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
    app = AppTest.from_file(PAGE, default_timeout=60).run()
    assert not app.exception
    assert quick == [([128, 256, 512, 1024], 4, 64)]
    assert "n^2.00" in " ".join(element.value for element in app.markdown)


def test_a_disturbed_measurement_is_not_read_as_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    def disturbed(lengths: list[int], n_heads: int, d_k: int) -> Iterator[Measured]:
        for length in lengths:
            for method in views.METHODS:
                yield Measured(method, length, 1 / length, 4 * length**2)

    monkeypatch.setattr(views, "measurements", disturbed)
    app = AppTest.from_file(PAGE, default_timeout=60).run()
    assert not app.exception
    assert "kept the machine busy" in app.warning[0].value
    assert "n^" not in " ".join(element.value for element in app.markdown)


def test_the_table_of_contexts_is_right_for_four_heads(
    quick: list[tuple[list[int], int, int]],
) -> None:
    app = AppTest.from_file(PAGE, default_timeout=60).run()
    contexts = app.dataframe[1].value
    assert list(contexts["full table"][:2]) == ["16.0 MB", "256 MB"]  # 4 · n² · 4 bytes
    assert contexts["time here, by blocks"][0] == "10 ms"  # 1e-8 · 1000²


def test_other_sizes_are_measured_when_asked_for(
    quick: list[tuple[list[int], int, int]],
) -> None:
    app = AppTest.from_file(PAGE, default_timeout=60).run()
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
    app = AppTest.from_file(PAGE, default_timeout=60).run()
    assert not app.exception
    assert "measuring process ended" in app.error[0].value


def test_a_link_with_an_impossible_size_falls_back_with_a_word(
    quick: list[tuple[list[int], int, int]],
) -> None:
    app = AppTest.from_file(PAGE, default_timeout=60)
    app.query_params["cost_heads"] = "99"
    app.run()
    assert quick[0][1] == 4
    assert any("99" in warning.value for warning in app.warning)


def test_every_answer_of_the_questions_gives_its_reason(
    quick: list[tuple[list[int], int, int]],
) -> None:
    app = AppTest.from_file(PAGE, default_timeout=60).run()
    for number, question in enumerate(COST):
        for choice in question.choices:
            app.radio(key=f"cost_question_{number}").set_value(choice.text).run()
            shown = app.success if choice.right else app.warning
            assert choice.reason in [element.value for element in shown]
        assert sum(choice.right for choice in question.choices) == 1
