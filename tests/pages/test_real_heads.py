"""The page Real heads without a browser: what it says of each model is what was measured."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from explorer.attention import Attention
from explorer.capture import capture
from explorer.models import load
from tests.pages import driven
from tests.pages.driven import looked_at, said

opened = partial(driven.opened, "real_heads")
TEXT = "The animal didn't cross the street because it was too tired."


def control(app: AppTest, key: str) -> object:
    return next(each for each in app.segmented_control if each.key == key)


def numpy_minilm(scale: float) -> dict[str, np.ndarray]:
    """Row variance of MiniLM's scores, and its softmax with a scale, (layers, heads), by NumPy."""
    layers = capture(load("minilm", "cpu"), TEXT).stacks["encoder"].layers
    found: dict[str, list[np.ndarray]] = {"variance": [], "size": [], "entropy": [], "largest": []}
    for layer in layers:
        assert isinstance(layer, Attention)
        q, k = layer.query.double().numpy(), layer.key.double().numpy()
        dots = q @ k.transpose(0, 2, 1)
        found["variance"].append(dots.var(-1).mean(-1) / 32)
        found["size"].append(((q**2).mean(1) * k.var(1)).sum(-1) / 32)
        scores = dots * scale
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        logs = np.log(np.where(weights > 0, weights, 1))
        found["entropy"].append(-(weights * logs).sum(-1).mean(-1) / math.log(16))
        found["largest"].append(weights.max(-1).mean(-1))
    return {name: np.stack(parts) for name, parts in found.items()}


def test_the_bundled_models_heads_are_told_as_numpy_finds_them() -> None:
    words = said(opened())
    numbers = numpy_minilm(32**-0.5)
    variance, size = numbers["variance"], numbers["size"]
    assert "MiniLM L6 uses 1/√d_k = 0.1768** (d_k = 32)" in words
    assert "variance would be **1** in every head" in words
    low, high = (np.unravel_index(pick(variance), (6, 12)) for pick in (np.argmin, np.argmax))
    assert f"goes from **{variance.min():.2g}** (L{low[0]}H{low[1]})" in words
    assert f"to **{variance.max():.0f}** (L{high[0]}H{high[1]})" in words
    assert f"**{(variance > 1).sum()} of 72** heads spread their scores more" in words
    assert f"middle head's variance {np.median(size):.2g} times the assumed one" in words
    assert f"the middle head {np.median(variance / size):.2g} times as much" in words
    assert f"{(variance > size).sum()} of 72 heads lie above it" in words


@pytest.mark.parametrize(
    ("link", "scale", "row"),
    [
        ({}, 1.0, "no scaling | 1"),
        ({"against": "inverse"}, 1 / 32, "1/d_k | 0.03125"),
        ({"against": "times", "times": "1/4"}, 32**-0.5 / 4, "0.25 × its own scale | 0.04419"),
    ],
)
def test_one_head_has_numpys_numbers_with_both_scales(
    link: dict[str, str], scale: float, row: str
) -> None:
    app = opened(layer="3", head="7", **link)
    words = said(app)
    own, other = numpy_minilm(32**-0.5), numpy_minilm(scale)
    assert app.subheader[1].value == "Layer 3, head 7"
    assert f"Variance of its scores: **{own['variance'][3, 7]:.3g}**. Assumed: **1**" in words
    assert f"its q and k alone: **{own['size'][3, 7]:.3g}**" in words
    for title, numbers in (("1/√d_k (own) | 0.1768", own), (row, other)):
        entropy, largest = numbers["entropy"][3, 7], numbers["largest"][3, 7]
        assert f"| {title} | {entropy:.2f} | {100 * largest:.1f} % |" in words
        assert (
            f"entropy {entropy:.2f} of its maximum, largest weight {100 * largest:.1f} %" in words
        )
        name = title.partition(" | ")[0]
        mean = 100 * numbers["largest"].mean()
        assert f"| {name} | {numbers['entropy'].mean():.2f} | {mean:.1f} % |" in words  # over all
    assert len(app.get("plotly_chart")) == 5


def test_every_axis_can_be_chosen() -> None:
    app = opened()
    for key in ("across", "up"):
        for option in range(0, len(app.selectbox(key=key).options), 4):
            looked_at(app.selectbox(key=key).select_index(option).run())
    app = opened(across="entropy_share", up="entropy_share_compared")
    assert app.selectbox(key="across").value == "entropy_share"
    assert not app.warning


def test_the_table_holds_every_head_with_its_units() -> None:
    app = opened()
    app.session_state["heads_table"] = True
    (table,) = [element.value for element in looked_at(app.run()).dataframe]
    assert len(table) == 72
    row = table[(table["name"] == "L0H2")].iloc[0]
    expected = numpy_minilm(1.0)
    assert row["scores_row_variance"] == pytest.approx(expected["variance"][0, 2], rel=1e-4)
    assert row["entropy_share_compared"] == pytest.approx(expected["entropy"][0, 2], abs=1e-5)
    assert row["d_k"] == 32 and row["queries"] == 16


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ({"layer": "99"}, "layer “99”"),
        ({"head": "abc"}, "head “abc”"),
        ({"across": "nothing"}, "across “nothing”"),
        ({"up": "<b>"}, "up “<b>”"),
        ({"against": "2"}, "against “2”"),
        ({"against": "times", "times": "0"}, "times “0”"),
        ({"model": "../../etc"}, "model “../../etc”"),
    ],
)
def test_a_wrong_link_falls_back_with_a_word(link: dict[str, str], told: str) -> None:
    app = opened(**link)
    assert told in said(app)
    assert len(app.get("plotly_chart")) == 5


@pytest.mark.parametrize("text", ["", "   "])
def test_no_text_asks_for_text(text: str) -> None:
    app = opened()
    app = looked_at(app.text_area(key="text").set_value(text).run())
    assert "Please type some text" in app.error[0].value


def test_a_text_of_one_word_is_shown() -> None:
    app = opened(text="a")
    assert "3 tokens" in said(app) and len(app.get("plotly_chart")) == 5


@pytest.mark.usefixtures("local_models")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("twelve-layers", "uses 1/√d_k = 0.7071** (d_k = 2)"),
        ("one-head", "uses 1/√d_k = 0.1768** (d_k = 32)"),
        ("causal", "uses 1/√d_k = 0.3536** (d_k = 8)"),
        ("window", "uses 1/√d_k = 0.3536** (d_k = 8)"),
        ("sinks", "A part of each row's weight goes to a sink, which is no key."),
        ("two-stacks", "does not scale: its factor on q·k is 1** (d_k = 8)"),
        ("two-stacks", "Its scores also hold a position bias, which no prediction here knows."),
        ("two-stacks", "variance would be **8** in every head"),
        ("twelve-layers", "goes from **less than 0.001** (L1"),
        ("no-numbers", "4 of 8 heads have scores that are not numbers (NaN)"),
    ],
)
def test_a_model_of_each_kind_is_shown_with_its_true_scale(name: str, words: str) -> None:
    app = opened(model=f"local:{name}", text="It was too tired.", pair="so")
    assert not app.error
    assert words in said(app)
    assert len(app.get("plotly_chart")) == 5


@pytest.mark.usefixtures("local_models")
def test_a_model_without_a_scale_is_compared_with_the_others_only() -> None:
    app = opened(model="local:two-stacks", text="three", pair="of")
    assert control(app, "against").options == ["1/d_k", "1/√d_k", "A factor"]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("local_models")
def test_cross_attention_is_shown_from_the_shorter_text_to_the_longer() -> None:
    app = opened(model="local:two-stacks", text="three words here", pair="of", stack="cross")
    assert not app.error
    assert len(app.selectbox(key="layer").options) == 3
    app.session_state["heads_table"] = True
    (table,) = [element.value for element in looked_at(app.run()).dataframe]
    assert len(table) == 3 * 4
    assert set(table["queries"]) < set(range(2, 6))


@pytest.mark.usefixtures("local_models")
def test_a_model_of_weights_alone_says_why_it_cannot_be_shown() -> None:
    app = opened(model="local:off-interface", text="short")
    assert "need the queries and keys behind them, so they can't be shown for it" in said(app)
    assert not app.get("plotly_chart")
    app = looked_at(app.selectbox(key="model").set_value("minilm").run())
    assert len(app.get("plotly_chart")) == 5


@pytest.mark.usefixtures("local_models")
def test_a_decoder_with_one_token_has_no_spread_and_says_so() -> None:
    app = opened(model="local:two-stacks", text="word", stack="decoder")
    assert "No query here has two keys with numbers" in said(app)


@pytest.mark.usefixtures("local_models")
def test_a_head_that_the_next_model_lacks_moves_to_the_nearest() -> None:
    app = opened(model="local:twelve-layers", layer="11", head="15")
    app = looked_at(app.selectbox(key="model").set_value("minilm").run())
    assert "There is no layer 11 here. Showing layer 5." in said(app)
    assert app.subheader[1].value == "Layer 5, head 11"


@pytest.mark.parametrize("text", ["<b>x</b> &lt; $1 $2", "#000001 _x_ :red[x]", "مرحبا 日本語 😀"])
def test_odd_text_is_no_markup(text: str) -> None:
    app = opened(text=text)
    assert not app.error and len(app.get("plotly_chart")) == 5
