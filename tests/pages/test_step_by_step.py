"""The step-by-step page: every station opens, and each number shown is the tensor's own."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.attention import Attention
from explorer.capture import capture
from explorer.formula import STATIONS
from explorer.masks import causal
from explorer.models import load
from explorer.multihead import MultiHeadAttention
from explorer.ui.cell_arithmetic import number
from explorer.ui.lesson import TEXT
from explorer.ui.step_questions import QUESTIONS
from explorer.vectors import random_embeddings, words
from tests.pages import driven
from tests.pages.driven import answer_all, said

page = partial(driven.visited, "step_by_step")
NAMES = [station.name for station in STATIONS]


def table(app: AppTest) -> list[list[str]]:
    """The rows of the arithmetic's table, without marks."""
    shown = next(text.value for text in app.markdown if text.value.startswith("| "))
    lines = [line.replace("\\", "").replace("**", "") for line in shown.splitlines()]
    return [[part.strip() for part in line.strip("| ").split("|")] for line in lines[2:]]


def own_layer(text: str = "the cat sat on the mat") -> tuple[torch.Tensor, MultiHeadAttention]:
    return random_embeddings(words(text), 8), MultiHeadAttention(8, 2, d_k=4, d_v=4, seed=0)


@pytest.mark.parametrize("station", NAMES)
@pytest.mark.parametrize(
    "more",
    [{}, {"mask": "causal"}, {"projections": "model"}, {"vectors": "hidden"}, {"start": "dots"}],
    ids=lambda more: "-".join(more.values()) or "plain",
)
def test_every_station_opens_from_a_link(station: str, more: dict[str, str]) -> None:
    app = page(station=station, **more)
    assert not app.warning and not app.error
    assert len(app.latex) == 1 and r"\boxed" in app.latex[0].value


def test_the_dot_is_shown_term_by_term() -> None:
    x, layer = own_layer()
    attention = layer.attention(x)
    rows = table(page(station="dots", query="2", key="5", head="1"))
    query, key = attention.query[1, 2], attention.key[1, 5]
    for at in range(4):
        expected = [query[at], key[at], query[at] * key[at]]
        assert rows[at][1:] == [number(float(each)) for each in expected]
    assert rows[4][-1] == number(float(attention.dots([1])[0, 2, 5]))


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_way_from_dot_to_weight_holds_the_tensors_numbers(mask: str) -> None:
    x, layer = own_layer()
    steps = layer.attention(x, mask=causal() if mask == "causal" else None).steps()
    for key in (1, 4):
        rows = {row[0]: row[-1] for row in table(page(station="softmax", mask=mask, key=str(key)))}
        assert rows["dot"] == number(float(steps.dots[0, 1, key]))
        assert rows["scaled"] == number(float(steps.scores[0, 1, key]))
        assert rows["mask"] == number(float(steps.masked_scores[0, 1, key]))
        assert rows["weight"] == number(float(steps.weights[0, 1, key]))
    assert (rows["mask"], rows["exponential"]) == ("−∞", "0") if mask == "causal" else True


def test_the_output_is_each_weight_times_its_value() -> None:
    x, layer = own_layer()
    attention = layer.attention(x)
    rows = table(page(station="values", query="3", dimension="2"))
    weights, values = attention.weights()[0, 3], attention.value[0, :, 2]
    for at in range(6):
        expected = (weights[at], values[at], weights[at] * values[at])
        assert rows[at][1:] == [number(float(each)) for each in expected]
    assert rows[6][-1] == number(float(attention.output()[0, 3, 2]))


def test_the_joined_output_is_the_layers_own() -> None:
    x, layer = own_layer()
    with torch.no_grad():
        whole = layer(x)
    assert table(page(station="join", dimension="7"))[-1][-1] == number(float(whole[1, 7]))


def test_a_models_own_w_o_and_its_bias_join_the_heads() -> None:
    loaded = load("minilm", "cpu")
    layer = capture(loaded, TEXT).stacks["encoder"].layer(2)
    assert isinstance(layer, Attention)
    dense = loaded.model.encoder.layer[2].attention.output.dense
    with torch.no_grad():
        side = layer.output().transpose(0, 1).flatten(1)  # (n, 384)
        expected = float(dense(side)[1, 300])
    rows = table(page(station="join", projections="model", from_layer="2", dimension="300"))
    assert float(rows[-1][-1].replace("−", "-")) == pytest.approx(expected, abs=1e-4)
    assert rows[-2] == ["bias", "", "", number(float(dense.bias.detach()[300]))]


def test_a_number_of_a_value_vector_can_be_asked_for() -> None:
    x, layer = own_layer()
    app = page(station="qkv", key="3", dimension="1")
    app.segmented_control(key="vector").set_value("V").run()
    assert table(app)[-1][-1] == number(float(layer.attention(x).value[0, 3, 1]))


@pytest.mark.parametrize(
    ("start", "station", "last"),
    [
        ("dots", "dots", "6"),
        ("quarter", "softmax", "0.75"),
        ("quarter", "values", "5"),
        ("equal", "softmax", "0.25"),
        ("equal", "values", "4"),
        ("causal", "softmax", "0.6667"),
        ("causal", "values", "4"),
        ("scale", "softmax", "0.75"),
    ],
)
def test_one_click_opens_a_worked_example_on_its_number(
    start: str, station: str, last: str
) -> None:
    app = page(station=station)
    app.pills(key="start").set_value(start).run()
    assert not app.exception
    assert table(app)[-1][-1] == last


def test_an_example_opens_with_its_own_mask_and_the_plain_scale() -> None:
    app = page(times="10", query="4")
    app.pills(key="start").set_value("causal").run()
    assert app.segmented_control(key="mask").value == "causal"
    assert app.select_slider(key="times").value == "1"
    assert app.selectbox(key="query").value == 1
    app.pills(key="start").set_value("text").run()
    assert app.segmented_control(key="mask").value == "none"


def test_twice_the_scale_undoes_the_root_as_the_example_says() -> None:
    app = page(start="scale", station="softmax", times="2")
    assert table(app)[-1][-1] == "0.9"


def test_the_slider_makes_attention_hard_or_soft() -> None:
    """Spread over 1 key at most where hard, and over nearly all 6 where soft."""
    keys = {}
    for times in ("0.1", "1", "10"):
        found = re.search(r"over ([\d.]+) equal keys", said(page(times=times)))
        assert found
        keys[times] = float(found[1])
    assert keys["10"] < keys["1"] < keys["0.1"]
    assert keys["0.1"] > 5.9


def test_next_and_back_walk_the_stations_and_stop_at_the_ends() -> None:
    app = page()
    seen = [app.session_state["station"]]
    for _ in range(6):
        app.button[1].click().run()
        seen.append(app.session_state["station"])
    assert seen == NAMES
    assert app.button[1].disabled and app.query_params["station"] == "join"
    app.button[0].click().run()
    assert app.session_state["station"] == "values"


def test_play_turns_into_stop_and_back() -> None:
    app = page()
    app.button(key="play").click().run()
    assert app.button(key="play").label == "Stop"
    app.button(key="play").click().run()
    assert app.button(key="play").label == "Play"
    app.button(key="play").click().run()
    app.button[1].click().run()  # a step by hand ends the play
    assert app.button(key="play").label == "Play"


def test_play_begins_anew_from_the_last_station() -> None:
    app = page(station="join")
    app.button(key="play").click().run()
    assert app.session_state["station"] == "qkv"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("station", "nowhere"), ("start", "x"), ("mask", "window"), ("times", "11")),
        *(("query", "99"), ("key", "-1"), ("head", "abc"), ("dimension", "9")),
    ],
)
def test_a_wrong_link_falls_back_with_a_word(name: str, value: str) -> None:
    app = page(**{"station": "values", name: value})
    assert len(app.warning) == 1
    assert value in app.warning[0].value.replace("\\", "")


@pytest.mark.parametrize("text", ["", "   ", "word " * 33])
def test_a_text_that_cannot_be_read_gets_a_sentence(text: str) -> None:
    app = page()
    app.text_input(key="text").set_value(text).run()
    assert not app.exception
    assert len(app.error) == 1


@pytest.mark.parametrize("text", ["one", "a|b **c** $x$ [d](e) <b>", "=1+1 ``` | \\", "日本 ar مر"])
@pytest.mark.parametrize("station", ["qkv", "softmax", "values", "join"])
def test_one_word_and_words_full_of_marks_are_data(station: str, text: str) -> None:
    app = page(station=station, text=text)
    assert not app.exception and not app.error
    if station == "values":
        assert [row[0] for row in table(app)][:-1] == text.split() or "|" in text


def test_a_shorter_text_keeps_the_page_whole() -> None:
    app = page(station="softmax", query="5", key="5")
    app.text_input(key="text").set_value("two words").run()
    assert not app.exception
    assert app.selectbox(key="query").value == 1


def test_the_invariants_are_measured_on_what_is_shown() -> None:
    text = said(page(mask="causal"))
    assert "weight on forbidden keys 0" in text
    found = re.search(r"rows sum to 1 within (\S+)", text)
    assert found and float(found[1]) < 1e-6


def test_each_question_has_one_right_answer_and_every_answer_a_reason() -> None:
    assert len(QUESTIONS) == 3
    answer_all(page(), "step_by_step", QUESTIONS)


def test_what_the_questions_say_is_true() -> None:
    def softmax(scores: list[float]) -> np.ndarray:
        powers = np.exp(scores)
        return powers / powers.sum()

    np.testing.assert_allclose(softmax([0, np.log(3)]), [1 / 4, 3 / 4])
    row = [0.3, -1.2, 2.0]
    np.testing.assert_allclose(softmax([each + 5 for each in row]), softmax(row))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.25, "0.25"),
        (-1.0986123, "−1.0986"),
        (2.0, "2"),
        (0.0, "0"),
        (-0.0, "0"),
        (1.69e-5, "1.69e−05"),
        (float("-inf"), "−∞"),
        (12345.678, "12345.678"),
        (2.5e7, "2.50e+07"),
    ],
)
def test_numbers_are_short_and_none_is_taken_for_0(value: float, written: str) -> None:
    assert number(value) == written
