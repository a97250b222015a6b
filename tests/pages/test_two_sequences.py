"""The page Two sequences."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from explorer.ui.two_sequences import ANSWERING, ASKING, QUESTIONS
from tests.pages import driven
from tests.pages.driven import chart, said, spec

opened = partial(driven.opened, "two_sequences")


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
    app = opened(vectors="embeddings")
    assert not app.exception
    assert "The map is 8 × 12" in said(app)  # [CLS] and [SEP] on each side


def test_hidden_states_of_the_chosen_layer_can_be_compared_too() -> None:
    first, last = (opened(vectors="hidden", from_layer=layer) for layer in ("0", "5"))
    assert not first.exception and not last.exception
    assert "The map is 8 × 12" in said(last)
    assert not np.allclose(chart(first, "one_head"), chart(last, "one_head"), atol=1e-3)


@pytest.mark.usefixtures("local_models")
@pytest.mark.parametrize("name", ["two-stacks", "denoiser"])
def test_an_encoder_decoder_reads_one_text_and_writes_the_other(
    name: str, model_folder: Path
) -> None:
    app = opened(heads_of="model", translator=f"local:{name}", text="a cat", other="the big cat")
    assert not app.exception
    assert not app.error
    # One token a byte, and <s> first in both texts: what is written has the start token before it.
    assert "The map is 7 × 12" in said(app)
    figure = spec(app, "one_head")
    rows, columns = (figure["layout"][axis]["ticktext"] for axis in ("yaxis", "xaxis"))
    assert len(rows) == 7 and rows[1:] == ["&#60;s&#62;", "a", "·", "c", "a", "t"]
    assert len(columns) == 12 and columns[:5] == ["&#60;s&#62;", "t", "h", "e", "·"]
    model = AutoModel.from_pretrained(model_folder / name, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(model_folder / name)
    start = torch.tensor([[model.config.decoder_start_token_id]])
    asking = tokenizer("a cat", return_tensors="pt").input_ids
    with torch.no_grad():
        outputs = model(
            input_ids=tokenizer("the big cat", return_tensors="pt").input_ids,
            decoder_input_ids=torch.cat([start, asking], 1),
            output_attentions=True,
        )
    expected = outputs.cross_attentions[0][0, 0].numpy()
    assert chart(app, "one_head") == pytest.approx(expected, abs=1e-5)
    shapes = dict(app.dataframe[0].value[["step", "shape"]].to_numpy())
    assert (shapes["Q"], shapes["K"], shapes["joined"]) == ("(4, 7, 8)", "(4, 12, 8)", "(7, 32)")


@pytest.mark.usefixtures("local_models")
def test_another_layer_and_head_of_an_encoder_decoder_can_be_chosen() -> None:
    app = opened(heads_of="model", translator="local:two-stacks")
    first = chart(app, "one_head")
    app.selectbox(key="cross_layer").select(2).run()
    app.selectbox(key="pair_head").select(3).run()
    assert not app.exception
    assert not np.allclose(first, chart(app, "one_head"), atol=1e-3)


def test_without_an_encoder_decoder_the_page_says_what_to_do() -> None:
    app = opened(heads_of="model")
    assert not app.exception
    assert "Type the id of one" in app.error[0].value


def test_a_model_that_reads_one_text_only_is_refused_with_the_reason() -> None:
    app = opened(heads_of="model", translator="minilm")
    assert not app.exception
    assert "reads one text only" in app.error[0].value


def test_empty_text_is_answered_with_a_sentence() -> None:
    app = opened()
    app.text_input(key="other").set_value(" ").run()
    assert not app.exception
    assert "type some text" in app.error[0].value


def test_every_question_has_one_right_answer() -> None:
    assert [sum(choice.right for choice in each.choices) for each in QUESTIONS] == [1, 1, 1]
