"""The Masks page: builds rules, paints by keyboard, and says the numbers it computes."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.mask_lessons import last_token_changed, zero_instead_of_minus_inf
from explorer.masks import causal
from explorer.multihead import MultiHeadAttention
from explorer.painting import decode_painted, encode_painted
from explorer.ui.mask_demos import DEMOS
from explorer.ui.mask_questions import QUESTIONS
from explorer.vectors import random_embeddings, words
from tests.pages import driven
from tests.pages.driven import answer_all, looked_at, still
from tests.pages.driven import said_plainly as said

page = partial(driven.visited, "masks")
TEXT = "the cat sat on the mat"


def in_address(app: AppTest, name: str) -> str:
    """The value of a choice in the page's address."""
    value = app.query_params[name]
    return value if isinstance(value, str) else value[0]


def press(app: AppTest, label: str) -> AppTest:
    (button,) = [button for button in app.button if button.label == label]
    button.click()
    return looked_at(app.run())


def test_it_opens_with_a_causal_mask_and_its_numbers() -> None:
    app = page()
    words_ = said(app)
    assert "Rule: causal" in words_ and "21 of 36 cells may be used" in words_
    x = random_embeddings(words(TEXT), 8, 0)
    record = MultiHeadAttention(8, 2, d_k=4, d_v=4, seed=0).attention(x).replace(mask=causal())
    found = zero_instead_of_minus_inf(record, torch.ones(6, dtype=torch.bool))
    assert f"{100 * float(found.leaked[0, 1]):.1f} % of its weight still goes there" in words_
    assert f"The worst row of all heads loses {100 * found.most:.1f} %" in words_
    assert "demo" not in app.query_params


def test_a_last_token_that_changes_moves_no_output_before_it_under_a_causal_mask() -> None:
    words_ = said(page(demo="causal"))
    x = random_embeddings(words(TEXT), 8, 0)
    record = MultiHeadAttention(8, 2, d_k=4, d_v=4, seed=0).attention(x).replace(mask=causal())
    free = last_token_changed(record.replace(mask=None), 0)
    assert "the outputs of the 5 before it move by exactly 0" in words_
    assert f"all 6 move, the one that moves least by {float(free.min()):.2g}" in words_


def test_renormalising_is_said_to_differ_by_rounding_only() -> None:
    found = re.search(r"difference anywhere is ([\d.e-]+)\.", said(page(demo="after")))
    assert found is not None and float(found[1]) < 1e-6


def test_each_demonstration_is_chosen_by_its_button_and_stands_in_the_address() -> None:
    app = page()
    shown = {
        "after": "sums to",
        "row": "Now forbid every key",
        "causal": "Under the causal mask",
        "zero": "With a score of 0 in place of −∞",
    }
    assert set(shown) == set(DEMOS)
    for demo, words_ in shown.items():
        app.session_state["demo"] = demo
        looked_at(app.run())
        assert words_ in said(app)
        assert not any(other in said(app) for other in shown.values() if other != words_)
        if demo != "zero":
            assert in_address(app, "demo") == demo
    assert "demo" not in app.query_params


def test_the_four_pictures_hold_the_numbers_of_the_layer() -> None:
    app = page()
    x = random_embeddings(words(TEXT), 8, 0)
    record = MultiHeadAttention(8, 2, d_k=4, d_v=4, seed=0).attention(x).replace(mask=causal())
    steps = record.steps()
    scores, weights = steps.scores[0].numpy(), steps.weights[0].numpy()
    barred = np.triu(np.ones((6, 6), bool), 1)
    for key, expected in (
        ("scores_map", scores),
        ("masked_map", np.where(barred, np.nan, scores)),
        ("weights_map", np.where(barred, np.nan, weights)),
    ):
        assert still(app, key) == pytest.approx(expected, abs=1e-5, nan_ok=True)


def test_a_row_without_a_key_is_told_in_words_not_in_code() -> None:
    app = page(demo="row", query="3")
    assert not app.error
    assert "Softmax over nothing is undefined, so our attention refuses, in every" in said(app)
    assert "on_masked_row" not in said(app)
    assert "16.7 % on each forbidden key" in said(app)


@pytest.mark.parametrize(
    ("link", "name", "cells"),
    [
        ({"mask": "none"}, "everything", "36 of 36"),
        ({"mask": "window", "size": "2"}, "sliding window of 2", "11 of 36"),
        ({"mask": "prefix", "size": "3"}, "prefix of 3", "24 of 36"),
        ({"not": "yes"}, "not causal", "15 of 36"),
        (
            {"join": "and", "mask2": "window", "not2": "yes"},
            "causal and not sliding window of 2",
            "10 of 36",
        ),
        (
            {"mask": "window", "size": "1", "join": "or", "mask2": "prefix", "size2": "1"},
            "sliding window of 1 or prefix of 1",
            "21 of 36",
        ),
    ],
)
def test_a_link_gives_its_rule(link: dict[str, str], name: str, cells: str) -> None:
    words_ = said(page(**link))
    assert f"Rule: {name}" in words_
    assert f"{cells} cells may be used" in words_


def test_widgets_build_a_rule_and_write_the_address() -> None:
    app = page()
    app.selectbox(key="mask").select("window")
    looked_at(app.run())
    app.selectbox(key="size").select(3)
    app.checkbox(key="not").check()
    looked_at(app.run())
    assert "Rule: not sliding window of 3" in said(app)
    assert [in_address(app, name) for name in ("mask", "size", "not")] == ["window", "3", "yes"]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_batch_pads_a_text_and_leaves_its_padding_out(side: str) -> None:
    app = page(mask="padding", side=side, sequence="1", batch="a dog barked")
    words_ = said(app)
    assert f"Rule: padding on the {side}" in words_
    assert "9 of 18 cells may be used, rows of padding left out" in words_
    assert "In the batch and alone" in words_
    assert "Padding is kept out, so the batch changes nothing" in words_
    assert app.selectbox(key="query").options == (
        ["3  a", "4  dog", "5  barked"] if side == "left" else ["0  a", "1  dog", "2  barked"]
    )


def test_a_rule_that_lets_padding_in_is_told() -> None:
    app = page(mask="padding", join="or", mask2="none", batch="a dog barked")
    assert "This rule lets padding in" in said(app)


def test_a_batch_of_one_asks_for_a_second_text() -> None:
    assert "A batch needs two texts" in said(page(mask="padding", batch=" "))


def test_a_batch_holds_six_texts() -> None:
    app = page(mask="padding", batch="\n".join(["a dog"] * 9))
    assert len(app.selectbox(key="sequence").options) == 6
    assert "the first 5 lines count" in said(app)


def test_painting_by_keyboard_flips_the_cell_and_stands_in_the_address() -> None:
    app = page(mask="custom")
    assert "36 of 36" in said(app)
    app.selectbox(key="paint_query").select(4)
    app.selectbox(key="paint_key").select(1)
    looked_at(app.run())
    press(app, "Forbid this cell")
    assert "35 of 36" in said(app)
    table = decode_painted(in_address(app, "paint"))
    assert (~table).nonzero().tolist() == [[4, 1]]
    press(app, "Allow this cell")
    assert "36 of 36" in said(app)
    assert "paint" not in app.query_params


def test_painting_starts_from_whole_masks() -> None:
    app = page(mask="custom")
    assert "21 of 36" in said(press(app, "Start from causal"))
    assert "0 of 36" in said(press(app, "Forbid all"))
    assert "No key is left for query 0 (the)" in said(app)
    assert "36 of 36" in said(press(app, "Allow all"))


def test_a_cell_that_the_other_rule_decides_is_not_painted_and_told() -> None:
    app = page(mask="custom", join="and", mask2="causal")
    app.selectbox(key="paint_query").select(0)
    app.selectbox(key="paint_key").select(5)
    looked_at(app.run())
    press(app, "Forbid this cell")
    assert "decided by the other rule" in said(app)
    assert "paint" not in app.query_params


def test_a_painted_mask_survives_an_edit_of_the_text() -> None:
    written = encode_painted(torch.eye(6, dtype=torch.bool))
    app = page(mask="custom", paint=written)
    assert "6 of 36" in said(app)
    app.text_input(key="text").input("the cat sat on the mat today")
    looked_at(app.run())
    assert "its cells are kept, and the new ones are allowed" in said(app)
    assert "19 of 49" in said(app)  # 6 kept, 7 + 6 new
    app.text_input(key="text").input("the cat sat")
    looked_at(app.run())
    assert "the rest is set aside" in said(app)
    assert "3 of 9" in said(app)
    app.text_input(key="text").input(TEXT)
    looked_at(app.run())
    assert "6 of 36" in said(app)
    assert "was painted for" not in said(app)


@pytest.mark.parametrize(
    "link",
    [
        {"mask": "zzz"},
        {"mask": "window", "size": "99"},
        {"join": "xor"},
        {"not": "maybe"},
        {"mask": "custom", "paint": "99-ff"},
        {"mask": "custom", "paint": "6-<script>"},
        {"mask": "padding", "side": "up"},
        {"mask": "padding", "sequence": "9"},
        {"head": "77"},
        {"query": "6"},
        {"demo": "causal", "becomes": "5"},
        {"demo": "all"},
    ],
)
def test_a_wrong_link_falls_back_with_a_word(link: dict[str, str]) -> None:
    app = page(**link)
    assert any("link" in warning.value for warning in app.warning)


@pytest.mark.parametrize(
    "text", ["one", "a a a a", "<b>x</b> $y$ :red[z] `q`", "日本語 👩‍👩‍👧 ‮abc"]
)
@pytest.mark.parametrize("mask", ["causal", "padding", "custom"])
def test_odd_texts_give_no_error(text: str, mask: str) -> None:
    app = page(text=text, mask=mask)
    for demo in DEMOS:
        app.session_state["demo"] = demo
        looked_at(app.run())


@pytest.mark.parametrize(
    ("demo", "missing"),
    [
        ("zero", "One token alone"),
        ("after", "One token alone"),
        ("causal", "two tokens that differ"),
    ],
)
def test_a_text_of_one_token_says_what_is_missing(demo: str, missing: str) -> None:
    assert missing in said(page(text="one", demo=demo))


@pytest.mark.parametrize("text", ["", "   ", "word " * 40])
def test_a_text_that_cannot_be_read_ends_with_a_sentence(text: str) -> None:
    app = page(text=text)
    assert len(app.error) == 1


def test_the_chosen_query_stands_in_a_table_with_its_four_numbers() -> None:
    app = page(query="1")
    assert not app.dataframe
    app.session_state["mask_table"] = True
    looked_at(app.run())
    table = app.dataframe[0].value
    assert table["Key"].tolist()[:2] == ["0 the", "1 cat"]
    assert table["May be used"].tolist() == ["yes", "yes", "no", "no", "no", "no"]
    assert table["Masked score"].tolist()[2:] == ["−∞"] * 4
    assert table["Weight"].tolist()[2:] == ["0.0000"] * 4
    assert sum(map(float, table["Weight"])) == pytest.approx(1, abs=1e-3)


def test_a_layer_of_the_model_works_too() -> None:
    app = page(projections="model", from_layer="2", mask="padding", batch="a dog barked")
    assert "MiniLM" in said(app)
    assert "Padding is kept out" in said(app)


def test_each_question_has_one_right_answer_and_answers_with_its_reason() -> None:
    answer_all(page(), "masks", QUESTIONS)
