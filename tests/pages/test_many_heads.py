"""The page Many heads."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from explorer.attention import Attention
from explorer.capture import capture
from explorer.metrics import layer_metrics
from explorer.models import load
from explorer.ui.lesson import TEXT
from explorer.ui.many_heads_questions import QUESTIONS
from tests.pages import driven
from tests.pages.driven import said, still

opened = partial(driven.opened, "many_heads")


def test_four_heads_of_48_are_the_first_thing_shown() -> None:
    app = opened()
    assert not app.exception
    assert "d_k = 48 / 4 = 12" in said(app)
    assert len(app.table[0].value) == 4


@pytest.mark.parametrize(("heads", "d_k"), [(1, 48), (3, 16), (16, 3)])
def test_more_heads_leave_less_for_each(heads: int, d_k: int) -> None:
    app = opened(split=str(heads))
    assert f"d_k = 48 / {heads} = {d_k}" in said(app)
    assert len(app.table[0].value) == heads


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


@pytest.mark.parametrize("vectors", ["embeddings", "hidden"])
def test_a_models_own_vectors_can_be_divided_too(vectors: str) -> None:
    app = opened(vectors=vectors, split="12")
    assert not app.exception
    assert "d_k = 384 / 12 = 32" in said(app)
    assert len(app.table[0].value) == 12


def test_hidden_states_of_another_layer_give_other_weights() -> None:
    first, last = (opened(vectors="hidden", from_layer=layer) for layer in ("0", "5"))
    assert not last.exception
    assert "hidden states at layer 5" in said(last)
    assert list(first.table[0].value["on itself"]) != list(last.table[0].value["on itself"])


def test_a_layer_of_the_model_keeps_its_own_heads() -> None:
    app = opened(projections="model", from_layer="3")
    assert not app.exception
    assert "d_k = 384 / 12 = 32" in said(app)
    assert "fixed before the model was trained" in said(app)
    assert {"split", "split_kv", "split_seed"}.isdisjoint(box.key for box in app.selectbox)
    layer = capture(load("minilm", "cpu"), TEXT).stacks["encoder"].layer(3)
    assert isinstance(layer, Attention)
    found = layer_metrics(layer)["distance"].tolist()
    assert list(app.table[0].value["distance"]) == [f"{each:.1f} tokens" for each in found]


def test_the_layers_output_is_the_heads_joined_by_the_models_own_w_o() -> None:
    app = opened(projections="model", from_layer="3")
    loaded = load("minilm", "cpu")
    layer = capture(loaded, TEXT).stacks["encoder"].layer(3)
    assert isinstance(layer, Attention)
    dense = loaded.model.encoder.layer[3].attention.output.dense
    with torch.no_grad():
        expected = dense(layer.output().transpose(0, 1).flatten(1)).numpy()
    assert still(app, "joined_output") == pytest.approx(expected, abs=1e-4)
    assert "then adds a bias" in said(app)


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
