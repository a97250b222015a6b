"""The page Many heads."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.ui.many_heads import QUESTIONS

PAGE = Path(__file__).parents[2] / "pages" / "many_heads.py"


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(PAGE, default_timeout=120)
    for name, value in address.items():
        app.query_params[name] = value
    return app.run()


def said(app: AppTest) -> str:
    return " ".join(element.value for element in (*app.markdown, *app.caption))


def test_four_heads_of_48_are_the_first_thing_shown() -> None:
    app = opened()
    assert not app.exception
    assert "d_k = 48 / 4 = 12" in said(app)
    assert len(app.dataframe[0].value) == 4


@pytest.mark.parametrize(("heads", "d_k"), [(1, 48), (3, 16), (16, 3)])
def test_more_heads_leave_less_for_each(heads: int, d_k: int) -> None:
    app = opened(split=str(heads))
    assert f"d_k = 48 / {heads} = {d_k}" in said(app)
    assert len(app.dataframe[0].value) == heads


def test_grouped_queries_say_what_is_shared() -> None:
    app = opened(split="8", split_kv="2")
    assert "heads 0–3 use key/value head 0; heads 4–7 use key/value head 1" in said(app)
    assert "24 numbers of each token instead of 96" in said(app)  # 2 · 2 · 6 against 2 · 8 · 6


def test_fewer_heads_keep_a_head_and_group_that_exist() -> None:
    app = opened(split="16", split_kv="16", split_head="15")
    app.selectbox(key="split").select(2).run()
    assert not app.exception
    assert app.selectbox(key="split_head").value == 1
    assert app.selectbox(key="split_kv").value == 2


def test_a_models_embeddings_can_be_divided_too() -> None:
    app = opened(many_vectors="embeddings", split="12")
    assert not app.exception
    assert "d_k = 384 / 12 = 32" in said(app)


@pytest.mark.parametrize("text", ["", "   ", "word " * 60])
def test_text_that_cannot_be_shown_is_answered_with_a_sentence(text: str) -> None:
    app = opened()
    app.text_input(key="text").set_value(text).run()
    assert not app.exception
    assert len(app.error) == 1


def test_a_wrong_link_falls_back_with_a_word() -> None:
    app = opened(split="5", split_seed="x")
    assert not app.exception
    assert len(app.warning) == 2


def test_every_question_has_one_right_answer() -> None:
    assert [sum(choice.right for choice in each.choices) for each in QUESTIONS] == [1, 1, 1]
