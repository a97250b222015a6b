"""The page Compare without a browser: its numbers, its links, and two models at once."""

from __future__ import annotations

import base64
from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from streamlit.testing.v1 import AppTest

from explorer.capture import capture
from explorer.metrics import head_metrics
from explorer.models import load
from explorer.similarity import head_distances
from tests.pages import driven
from tests.pages.driven import PAGES, chart, looked_at, said, spec

TEXT = "The animal didn't cross the street because it was too tired."
OTHER = "local:twelve-layers"
opened = partial(driven.opened, "compare")


def link(app: AppTest) -> dict[str, str]:
    return {
        name: value[0] if isinstance(value, list) else str(value)
        for name, value in app.query_params.items()
    }


def color_bar(app: AppTest, key: str) -> str:
    """The title of a picture's colour bar."""
    (found,) = [each["colorbar"] for each in spec(app, key)["data"] if "colorbar" in each]
    return str(found["title"]["text"])


def minilm_weights(layer: int, head: int, text: str = TEXT) -> np.ndarray:
    found = capture(load("minilm", "cpu"), text).stacks["encoder"].layers[layer].weights([head])[0]
    return found.double().numpy()


def test_it_begins_with_two_heads_that_look_different_and_numpys_numbers() -> None:
    app = opened()
    words = said(app)
    left, right = minilm_weights(0, 2), minilm_weights(0, 8)
    np.testing.assert_allclose(chart(app, "compare_left"), left, atol=1e-6)
    np.testing.assert_allclose(chart(app, "compare_right"), right, atol=1e-6)
    np.testing.assert_allclose(chart(app, "compare_difference"), right - left, atol=1e-6)
    per_query = jensenshannon(left, right, axis=1) ** 2
    assert f"| **{per_query.mean():.3f}** nats of 0.693 |" in words
    flat = left.ravel(), right.ravel()
    cosine = flat[0] @ flat[1] / np.linalg.norm(flat[0]) / np.linalg.norm(flat[1])
    assert f"| Cosine | {cosine:.3f} |" in words
    assert f"| Correlation | {np.corrcoef(*flat)[0, 1]:.3f} |" in words
    entropies = [-(w * np.log(np.where(w > 0, w, 1))).sum(1).mean() for w in (left, right)]
    change = entropies[1] - entropies[0]
    assert f"{entropies[0]:.3f} → {entropies[1]:.3f} nats ({change:+.3f})" in words
    most = int(per_query.argmax())
    assert f"(query {most}) looks" in words and f"**{per_query[most]:.3f} nats**" in words
    assert "Both sides have the same tokens." in words
    assert "It does not say which of the two matters more" in words
    assert link(app) == {}


def test_another_head_is_one_choice_and_the_layer_of_both_is_one() -> None:
    app = opened()
    app.selectbox(key="left_layer").select(3)
    looked_at(app.run())
    assert app.selectbox(key="right_layer").value == 3
    app.selectbox(key="right_head").select(5)
    looked_at(app.run())
    assert link(app) == {"left_layer": "3", "right_head": "5"}
    np.testing.assert_allclose(chart(app, "compare_right"), minilm_weights(3, 5), atol=1e-6)


def test_what_is_different_on_the_right_does_not_follow() -> None:
    app = opened(right_layer="4", right_text="It slept.")
    app.selectbox(key="left_layer").select(2)
    app.text_area(key="left_text").set_value("He slept.")
    looked_at(app.run())
    assert app.selectbox(key="right_layer").value == 4
    assert app.text_area(key="right_text").value == "It slept."
    app.selectbox(key="right_layer").select(2)
    looked_at(app.run())
    app.selectbox(key="left_layer").select(5)  # the same again, so it follows
    looked_at(app.run())
    assert app.selectbox(key="right_layer").value == 5


def test_unlinked_sides_stay_apart_and_the_link_says_so() -> None:
    app = opened()
    app.toggle(key="link").set_value(False)
    looked_at(app.run())
    app.selectbox(key="left_layer").select(3)
    looked_at(app.run())
    assert app.selectbox(key="right_layer").value == 0
    assert link(app) == {"link": "no", "left_layer": "3", "right_layer": "0"}
    again = opened(**link(app))
    assert again.selectbox(key="right_layer").value == 0 and not again.toggle(key="link").value


def test_a_link_to_two_heads_forgets_what_was_compared_before() -> None:
    app = AppTest.from_file(PAGES / "compare.py", default_timeout=120)
    app.query_params.update({"left_layer": "3", "left_head": "1", "right_head": "5"})
    before = {"right_mask": "causal", "left_scale": "one", "right_text": "It slept.", "at": "q2"}
    for name, value in {**before, "layer": 1, "head": 7}.items():
        app.session_state[f"{name} kept"] = value
    looked_at(app.run())
    np.testing.assert_allclose(chart(app, "compare_left"), minilm_weights(3, 1), atol=1e-6)
    np.testing.assert_allclose(chart(app, "compare_right"), minilm_weights(3, 5), atol=1e-6)


def test_without_a_link_the_left_side_is_what_another_page_showed() -> None:
    app = AppTest.from_file(PAGES / "compare.py", default_timeout=120)
    for name, value in {"layer": 1, "head": 7, "text": "so it goes"}.items():
        app.session_state[f"{name} kept"] = value
    looked_at(app.run())
    expected = minilm_weights(1, 7, "so it goes")
    np.testing.assert_allclose(chart(app, "compare_left"), expected, atol=1e-6)


def test_swapping_exchanges_everything_and_turns_the_difference_round() -> None:
    app = opened(right_layer="4", right_scale="times", right_factor="0.5", right_text="It slept.")
    before = {name: chart(app, f"compare_{name}") for name in ("left", "right")}
    next(b for b in app.button if b.label == "Swap sides").click()
    looked_at(app.run())
    np.testing.assert_allclose(chart(app, "compare_left"), before["right"], atol=1e-7)
    np.testing.assert_allclose(chart(app, "compare_right"), before["left"], atol=1e-7)
    again = opened(**link(app))
    np.testing.assert_allclose(chart(again, "compare_left"), before["right"], atol=1e-7)
    np.testing.assert_allclose(chart(again, "compare_right"), before["left"], atol=1e-7)


def test_the_three_pictures_share_one_range_of_colours() -> None:
    app = opened(right_layer="5")
    ranges = {}
    for name in ("left", "right", "difference"):
        shown = spec(app, f"compare_{name}")["data"][0]
        ranges[name] = (shown["zmin"], shown["zmax"])
        assert np.array(shown["customdata"]["shape"].split(", "), int)[-1] == 2  # the other two
    assert ranges["left"] == ranges["right"] == (0, ranges["left"][1])
    assert ranges["difference"] == (-ranges["left"][1], ranges["left"][1])


@pytest.mark.usefixtures("local_models")
def test_two_models_with_different_tokenizers_are_compared_by_words() -> None:
    app = opened(right_model=OTHER, right_head="15", left_layer="2")
    words = said(app)
    assert "The two models cut the text differently" in words
    left = chart(app, "compare_left")
    assert left.shape == chart(app, "compare_right").shape == (14, 14)
    tokens = capture(load("minilm", "cpu"), TEXT).tokens
    weights = minilm_weights(2, 2)
    # "'" and "t" are two words of the one and one of the other; [SEP] has no partner.
    at = tokens.texts.index("'")
    rows = np.vstack([weights[:at], weights[at : at + 2].mean(0), weights[at + 2 : -1]])
    summed = rows[:, at : at + 2].sum(1, keepdims=True)
    expected = np.hstack([rows[:, :at], summed, rows[:, at + 2 : -1]])
    np.testing.assert_allclose(left, expected, atol=1e-6)
    assert "of a row is elsewhere" in words
    again = opened(**link(app))
    np.testing.assert_array_equal(chart(again, "compare_right"), chart(app, "compare_right"))


@pytest.mark.usefixtures("local_models")
def test_a_layer_that_the_right_model_lacks_is_clamped_and_told() -> None:
    app = opened(left_model=OTHER, left_layer="11", right_model="minilm")
    assert app.selectbox(key="right_layer").value == 5
    assert "There is no layer 11 here; the nearest is 5." in said(app)
    app.selectbox(key="left_model").select("minilm")
    looked_at(app.run())
    assert "There is no layer 11 on the left. Showing 5." in said(app)


def test_texts_that_share_nothing_stand_apart_with_the_reason() -> None:
    app = opened(right_text="Nobody knew.")
    assert "too few for a difference that means something" in said(app)
    assert chart(app, "compare_right").shape == (5, 5)
    with pytest.raises(ValueError, match="not enough values"):
        chart(app, "compare_difference")


def test_the_most_previous_token_like_head_its_nearest_and_farthest_and_the_link() -> None:
    stack = capture(load("minilm", "cpu"), TEXT).stacks["encoder"]
    table = head_metrics(stack)
    best = table.loc[table["previous"].idxmax()]
    layer, head = int(best["layer"]), int(best["head"])
    order = head_distances(stack).like(layer, head)
    app = opened(left_layer=str(layer), left_head=str(head))
    for (far_layer, far_head), distance in (order[0], order[-1]):
        label = f"L{far_layer}H{far_head} → right"
        next(button for button in app.button if button.label == label).click()
        looked_at(app.run())
        assert f"| **{distance**2:.3f}** nats of 0.693 |" in said(app)
        assert f"Right: L{far_layer}H{far_head}" in said(app)
        again = opened(**link(app))
        np.testing.assert_array_equal(
            chart(again, "compare_difference"), chart(app, "compare_difference")
        )
        assert said(again) == said(app)


def test_the_strip_shows_named_heads_and_puts_them_left() -> None:
    app = opened(strip="L3H5, L4H1", click_to="left", right_layer="1")
    next(button for button in app.button if button.label == "L4H1 → left").click()
    looked_at(app.run())
    assert (app.selectbox(key="left_layer").value, app.selectbox(key="left_head").value) == (4, 1)
    assert app.selectbox(key="right_layer").value == 1


def test_a_query_and_a_key_that_differ_most_are_a_click_away() -> None:
    app = opened()
    gap = np.abs(minilm_weights(0, 8) - minilm_weights(0, 2)).mean(0)
    key = int(gap.argmax())
    app.button(key=f"show k{key}").click()
    looked_at(app.run())
    assert f"(key {key}), on the left and on the right" in said(app)
    assert f"**{gap[key]:.3f}**" in said(app)
    assert link(app) == {"at": f"k{key}"}


@pytest.mark.parametrize(
    ("way", "measure"),
    [
        ("value_weighted", "weight × value"),
        ("norm_based", "weight × value × W_O"),
        ("rollout", "rollout"),
        ("average", "mean weight"),
    ],
)
def test_every_way_to_weigh_says_what_it_is_and_where_it_comes_from(way: str, measure: str) -> None:
    app = opened(right_way=way, right_layer="3")
    assert "Source:" in said(app)
    np.testing.assert_allclose(chart(app, "compare_right").sum(1), 1, atol=1e-5)
    assert color_bar(app, "compare_left").startswith("weight, share of 1")
    assert color_bar(app, "compare_right").startswith(f"{measure}, share of 1")
    assert color_bar(app, "compare_difference") == f"{measure} − weight, share of 1"
    assert f"looks, on the left (weight) and on the right ({measure})." in said(app)


def test_one_way_on_both_sides_is_named_in_the_difference() -> None:
    app = opened(left_way="value_weighted")
    for name in ("left", "right"):
        assert color_bar(app, f"compare_{name}").startswith("weight × value, share of 1")
    assert color_bar(app, "compare_difference") == "difference in weight × value, share of 1"
    axis = spec(app, "compare_bars")["layout"]["xaxis"]["title"]["text"]
    assert axis == "weight × value, share of 1"


def test_causal_on_top_is_drawn_as_forbidden() -> None:
    app = opened(right_mask="causal", right_head="2")
    traces = spec(app, "compare_right")["data"]
    drawn = next(trace for trace in traces if trace.get("colorbar"))["z"]
    right = np.frombuffer(base64.b64decode(drawn["bdata"]), drawn["dtype"]).reshape(16, 16)
    assert np.array_equal(np.isnan(right), np.triu(np.ones((16, 16), bool), 1))
    left = minilm_weights(0, 2)
    kept = np.tril(left)
    divergence = jensenshannon(left, kept / kept.sum(1, keepdims=True), axis=1) ** 2
    assert f"| **{divergence.mean():.3f}** nats" in said(app)
    assert "mask: its own and causal" in said(app)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"left_layer": "11"}, "left layer “11”. There are 0 to 5. Showing 0."),
        ({"right_head": "abc"}, "right head “abc”. There are 0 to 11."),
        ({"left_model": "../../etc"}, "left model “../../etc”"),
        ({"right_mask": "<b>"}, "right mask “<b>”"),
        ({"left_way": "magic"}, "left way “magic”"),
        ({"left_scale": "times", "left_factor": "nan"}, "left factor “nan”"),
        ({"left_mask": "window", "left_window": "0"}, "left window “0”"),
        ({"at": "q99"}, "asks for at “q99”"),
        ({"strip": "L9H9"}, "asks for strip “L9H9”"),
        ({"click_to": "up"}, "click_to “up”"),
        ({"link": "maybe"}, "link “maybe”"),
        ({"words": "no"}, "words “no”"),
    ],
)
def test_wrong_values_in_a_link_fall_back_and_are_told(wrong: dict[str, str], told: str) -> None:
    app = opened(**wrong)
    assert told in said(app)
    assert chart(app, "compare_difference").shape == (16, 16)


@pytest.mark.usefixtures("local_models")
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"left_text": " "}, "Please type some text"),
        ({"right_model": "local:no-tokenizer"}, "comes without a tokenizer"),
        ({"right_model": "local:off-interface", "right_scale": "one"}, "gives its weights alone"),
        ({"right_model": "local:causal"}, "Cut or shorten the text"),
        ({"right_way": "average", "right_heads": "L9H0"}, "There is no layer 9 here"),
        ({"right_model": "local:no-numbers", "right_layer": "1"}, "No query has numbers"),
        ({"left_model": "local:one-head"}, "Both sides are the same map"),
        ({"left_model": "local:sinks"}, "a sink"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(asked: dict[str, str], told: str) -> None:
    assert told in said(opened(**asked))


def test_the_tables_hold_every_query_and_weight() -> None:
    app = opened()
    app.session_state["compare_table"] = True
    queries, weights = (element.value for element in looked_at(app.run()).dataframe)
    gap = minilm_weights(0, 8) - minilm_weights(0, 2)
    assert len(queries) == 16 and len(weights) == 256
    assert abs(weights["right − left"][0]) == pytest.approx(np.abs(gap).max(), abs=1e-6)


def test_tokens_are_data() -> None:
    words = said(opened(left_text="**a** <b>x</b> $y$ [z](javascript:q)"))
    assert "**a**" not in words.replace("Where **", "")
