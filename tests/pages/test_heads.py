"""The Heads page without a browser: texts, models, choices, and what it says of each."""

from __future__ import annotations

import re
import tempfile
from functools import partial

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages import driven
from tests.pages.driven import chart, looked_at, said, spec

opened = partial(driven.opened, "heads")


def edited(app: AppTest, text: str) -> AppTest:
    return looked_at(app.text_area(key="text").set_value(text).run())


def choice(app: AppTest) -> tuple[int, int, int]:
    """The layer, head and query chosen."""
    return tuple(app.session_state[name] for name in ("layer", "head", "query"))  # type: ignore[return-value]


def test_the_page_shows_a_head_of_the_bundled_model() -> None:
    app = opened()
    assert choice(app) == (0, 0, 1)
    assert len(app.selectbox(key="layer").options) == 6
    assert len(app.selectbox(key="head").options) == 12
    words = said(app)
    assert "16 tokens of at most 512" in words
    assert "MiniLM L6 on" in words and "d_k = 32" in words and "scale = 0.1768" in words
    assert re.search(r"rows sum to 1 within \d(\.\d)?e-0[67]", words)
    assert "weight on forbidden keys 0" in words


def test_the_previous_token_head_has_its_numbers() -> None:
    words = said(opened(layer="0", head="2"))
    assert "On the previous token | 100.0 %" in words
    assert "Distance | 0.94 tokens" in words  # 15 of 16 queries look one back, the first nowhere
    assert "The weight goes from **The** to **[CLS]** (100.0 %)" in words


def test_an_edit_keeps_layer_head_and_query() -> None:
    app = edited(opened(layer="3", head="7", query="5"), "Every word of this text is another one.")
    assert choice(app) == (3, 7, 5)
    assert not app.warning


def test_a_shorter_text_without_the_chosen_query_shows_one_that_is_there() -> None:
    app = edited(opened(query="15"), "Short.")
    assert app.session_state["query"] == 1


@pytest.mark.parametrize("text", ["", "   ", "\n\t "])
def test_no_text_asks_for_text_and_goes_on(text: str) -> None:
    app = edited(opened(), text)
    assert "Please type some text" in app.error[0].value
    assert not edited(app, "Now there is some.").error


def test_one_token_is_shown() -> None:
    assert "3 tokens" in said(edited(opened(), "a"))


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("the cat the", "the"),
        ("</script><img src=x onerror=alert(1)>", "<"),
        ("$119 … $30", "$"),
        ("_x_ :red[x]", "_"),
        ("[a](javascript:b)", "["),
        ("#000001", "#"),
        ("<b>x</b> a<br>b &lt;", "<"),
        ("2024-01 1E1", "202"),
        ("##ing", "#"),
        ("=1+1 @x", "="),
        ("日本語 😀", "日"),
        ("مرحبا \u202e abc", "م"),
        ("a\n\tb  c", "a"),
        ("x" * 3000, "x" * 23 + "…"),
    ],
)
def test_odd_text_is_read_as_it_stands(text: str, token: str) -> None:
    app = edited(opened(), text)
    assert not app.error
    assert app.text_area(key="text").value == text
    assert app.selectbox(key="query").options[1] == f"1  {token}"
    sentence = next(element.value for element in app.markdown if " from **" in element.value)
    assert f" from **{token}**" in re.sub(r"\\", "", sentence)
    assert not re.search(r"(?<!\\)[$<:\[]", sentence), sentence  # nothing in it is markup


def test_typed_specials_are_text_until_one_asks() -> None:
    app = edited(opened(), "a [SEP] b")
    assert "[SEP] in the text was read as plain text" in said(app)
    count = len(app.selectbox(key="query").options)
    app = looked_at(app.toggle(key="specials").set_value(True).run())
    assert len(app.selectbox(key="query").options) == count - 2  # "[", "sep", "]" are one now


def test_a_text_too_long_is_cut_only_when_asked() -> None:
    app = edited(opened(), "word " * 600)
    assert "602 tokens" in said(app) and "at most 512" in said(app)
    assert "the last 90 be cut off" in said(app)
    assert not app.get("plotly_chart")
    app = looked_at(app.toggle(key="cut").set_value(True).run())
    assert "90 tokens at the end were cut off" in said(app)
    assert len(app.get("plotly_chart")) == 3
    assert len(app.selectbox(key="query").options) == 512


def test_a_second_text_is_read_as_a_pair() -> None:
    app = opened(text="one", pair="two")
    assert app.selectbox(key="query").options == [
        "0  [CLS]",
        "1  one",
        "2  [SEP]",
        "3  two",
        "4  [SEP]",
    ]
    assert "5 tokens" in said(app)


def test_scores_and_dots_are_shown_on_request() -> None:
    app = opened(show="scores")
    assert [control.value for control in app.segmented_control] == ["scores"]
    looked_at(app.segmented_control[0].set_value("dots").run())


def test_hidden_specials_leave_the_weights_as_they_are() -> None:
    app = opened(hide_special="yes", layer="5")
    assert "[CLS]" not in " ".join(app.selectbox(key="query").options)
    hidden = re.search(r"special tokens get ([\d.]+) % of these queries", said(app))
    assert hidden and 0 < float(hidden[1]) < 100


def test_the_comparison_with_the_models_own_attention_is_made_on_demand() -> None:
    app = opened(text="A comparison.")
    assert "Largest difference" not in said(app)
    app = looked_at(app.button[0].click().run())
    found = re.search(r"attention: ([\d.e-]+) in a weight, ([\d.e-]+) in its output", said(app))
    assert found and float(found[1]) < 1e-5 and float(found[2]) < 1e-4


# Models


@pytest.mark.usefixtures("local_models")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("twelve-layers", "mask: none"),
        ("one-head", "(the only one)"),
        ("causal", "mask: causal"),
        ("window", "mask: sliding window of 3"),
        ("window", "4 heads share 2 key/value heads"),
        ("sinks", "of each row goes to the model's sink"),
        ("sinks", "| In the sink |"),
        ("two-stacks", "with a position bias"),
        ("off-interface", "the model's own and can't be changed here"),
        ("no-numbers", "are not numbers (NaN), drawn hatched"),
    ],
)
def test_a_model_of_each_kind_is_shown_and_explained(name: str, words: str) -> None:
    app = opened(model=f"local:{name}", text="It was too tired.")
    assert not app.error
    assert words in said(app)
    assert len(app.get("plotly_chart")) == 3


@pytest.mark.usefixtures("local_models")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("local:no-tokenizer", "comes without a tokenizer"),
        ("local:broken", "cannot be read"),
        ("nobody/no-such-model", "is not on this computer"),
    ],
)
def test_a_model_that_cannot_be_had_is_a_sentence_and_one_can_go_back(
    name: str, words: str
) -> None:
    app = opened(model=name)
    assert words in said(app)
    assert str(tempfile.gettempdir()) not in said(app)  # visitors don't see the server's folders
    app = looked_at(app.selectbox(key="model").set_value("minilm").run())
    assert not app.error and len(app.get("plotly_chart")) == 3


@pytest.mark.usefixtures("local_models")
def test_a_layer_and_head_that_the_next_model_lacks_move_to_the_nearest() -> None:
    app = opened(model="local:twelve-layers", layer="11", head="15")
    assert choice(app)[:2] == (11, 15)
    app = looked_at(app.selectbox(key="model").set_value("minilm").run())
    assert choice(app)[:2] == (5, 11)
    assert "There is no layer 11 here. Showing layer 5." in said(app)
    assert "There is no head 15 here. Showing head 11." in said(app)


@pytest.mark.usefixtures("local_models")
def test_scores_fall_back_to_weights_where_a_model_gives_none() -> None:
    app = opened(model="local:causal", show="scores", text="short")
    app = looked_at(app.selectbox(key="model").set_value("local:off-interface").run())
    assert app.session_state["show"] == "weights"


@pytest.mark.usefixtures("local_models")
def test_an_encoder_decoder_shows_three_stacks() -> None:
    app = opened(model="local:two-stacks", text="three", pair="of")
    control = next(each for each in app.segmented_control if each.key == "stack")
    assert control.options == ["Encoder", "Decoder", "Decoder to encoder (cross)"]
    app = looked_at(control.set_value("cross").run())
    assert len(app.selectbox(key="layer").options) == 3
    assert len(app.selectbox(key="query").options) < 6  # queries are those of the shorter text
    assert "Distance | –" in said(app)  # two texts: no distance between them
    app = looked_at(app.selectbox(key="model").set_value("minilm").run())
    assert not app.error


@pytest.mark.usefixtures("local_models")
def test_a_limit_of_its_own_is_kept() -> None:
    app = opened(model="local:causal", text="x" * 40)
    assert "the model reads at most 24" in said(app)


def test_a_long_texts_row_has_bars_for_its_largest_weights_and_says_what_the_rest_has() -> None:
    app = opened(text=" ".join(f"word{n}" for n in range(60)))
    assert len(spec(app, "one_row")["layout"]["yaxis2"]["ticktext"]) == 40
    row = np.sort(chart(app, "one_head")[1])
    rest = f"The other {len(row) - 40} have {100 * row[:-40].sum():.1f} % together"
    assert len(row) > 80 and rest in said(app)
