"""The page Two sequences."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

from explorer.ui.two_sequences import ANSWERING, ASKING, QUESTIONS

PAGE = Path(__file__).parents[2] / "pages" / "two_sequences.py"


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(PAGE, default_timeout=120)
    for name, value in address.items():
        app.query_params[name] = value
    return app.run()


def said(app: AppTest) -> str:
    return " ".join(element.value for element in (*app.markdown, *app.caption))


def test_six_queries_on_ten_keys_make_a_map_of_six_by_ten() -> None:
    app = opened()
    assert not app.exception
    assert "The map is 6 × 10" in said(app)
    shapes = dict(app.dataframe[0].value[["step", "shape"]].to_numpy())
    assert shapes == {
        "Q": "(2, 6, 16)",
        "K": "(2, 10, 16)",
        "V": "(2, 10, 16)",
        "QKᵀ, scaled": "(2, 6, 10)",
        "softmax": "(2, 6, 10)",
        "weights · V": "(2, 6, 16)",
        "joined": "(6, 32)",
    }


def test_with_one_projection_equal_words_find_each_other() -> None:
    app = opened(query="1")
    assert "largest weights go from **cat** to **cat**" in said(app)


def test_a_projection_of_its_own_for_keys_changes_the_weights() -> None:
    assert "from **cat** to **cat**" not in said(opened(query="1", apart="yes"))


def test_swapping_turns_the_map() -> None:
    app = opened()
    app.button[0].click().run()
    assert app.text_input(key="text").value == ANSWERING
    assert app.text_input(key="other").value == ASKING
    assert "The map is 10 × 6" in said(app)


def test_embeddings_of_a_model_keep_its_special_tokens() -> None:
    app = opened(source="embeddings")
    assert not app.exception
    assert "The map is 8 × 12" in said(app)  # [CLS] and [SEP] on each side


def test_without_an_encoder_decoder_the_page_says_what_to_do() -> None:
    app = opened(source="model")
    assert not app.exception
    assert "Type the id of one" in app.error[0].value


def test_a_model_that_reads_one_text_only_is_refused_with_the_reason() -> None:
    app = opened(source="model", translator="minilm")
    assert not app.exception
    assert "reads one text only" in app.error[0].value


def test_empty_text_is_answered_with_a_sentence() -> None:
    app = opened()
    app.text_input(key="other").set_value(" ").run()
    assert not app.exception
    assert "type some text" in app.error[0].value


def test_every_question_has_one_right_answer() -> None:
    assert [sum(choice.right for choice in each.choices) for each in QUESTIONS] == [1, 1, 1]
