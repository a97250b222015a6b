"""The page All heads without a browser: what it says of the heads is what was measured."""

from __future__ import annotations

import csv
import io
import re
from functools import partial
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from explorer.capture import capture
from explorer.head_table import as_csv, named
from explorer.metrics import EVERY, METRICS, QUICK
from explorer.models import load
from scripts.browser import ROOT
from tests.pages import driven
from tests.pages.driven import chart, looked_at, said, spec

TEXT = "The animal didn't cross the street because it was too tired."
page = partial(driven.opened, "all_heads")
CHARTS = ("heads_numbers", "two_numbers", "heads_map")


def weights_by_numpy(text: str = TEXT) -> np.ndarray:
    """All weights of the bundled model, (layers, heads, queries, keys)."""
    layers = capture(load("minilm", "cpu"), text).stacks["encoder"].layers
    return np.stack([layer.weights().double().numpy() for layer in layers])


def distance(p: np.ndarray, q: np.ndarray) -> float:
    """√ of the mean Jensen–Shannon divergence of the rows, as it is written in books."""

    def entropy(rows: np.ndarray) -> np.ndarray:
        return -(rows * np.log(np.where(rows > 0, rows, 1))).sum(-1)

    return float(np.sqrt((entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2).mean()))


def ringed(app: AppTest, key: str) -> str:
    """The head with the ring in a scatter."""
    (name,) = [t["text"][0] for t in spec(app, key)["data"] if t.get("mode") == "markers+text"]
    return re.sub("<.*?>", "", name).strip()


def table(app: AppTest) -> list[str]:
    return list(app.dataframe[0].value["name"])


def test_the_heatmap_holds_the_mean_weight_on_the_previous_token() -> None:
    app = page()
    expected = weights_by_numpy().diagonal(-1, 2, 3).mean(-1)  # (layers, heads)
    np.testing.assert_allclose(chart(app, "heads_numbers"), expected, atol=1e-5)
    low, high = (np.unravel_index(pick(expected), (6, 12)) for pick in (np.argmin, np.argmax))
    words = said(app)
    assert f"Highest: **L{high[0]}H{high[1]}** with {100 * expected.max():.1f} %" in words
    assert f"Lowest: **L{low[0]}H{low[1]}** with {100 * expected.min():.1f} %" in words
    assert "The weight on the position before the query's own" in words
    assert "Source: Clark et al. 2019" in words


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_number_can_be_shown_with_its_unit_meaning_and_source(metric: object) -> None:
    name, unit = metric.name, metric.unit  # type: ignore[attr-defined]
    words = said(page(metric=name))
    assert f"**{metric.title}** ({unit}). {metric.meaning}" in words  # type: ignore[attr-defined]
    assert f"Source: {metric.source}" in words  # type: ignore[attr-defined]


def test_two_numbers_stand_against_each_other() -> None:
    app = page(x="self", y="next", layer="1", head="9")
    weights = weights_by_numpy()
    trace = next(t for t in spec(app, "two_numbers")["data"] if "customdata" in t)
    assert trace["customdata"] == [[layer, head] for layer in range(6) for head in range(12)]
    layout = spec(app, "two_numbers")["layout"]
    assert layout["xaxis"]["title"]["text"] == "On itself (share of 1)"
    assert layout["yaxis"]["title"]["text"] == "On the next token (share of 1)"
    assert weights.diagonal(0, 2, 3).mean(-1).max() <= layout["xaxis"]["range"][1]
    assert ringed(app, "two_numbers") == ringed(app, "heads_map") == "L1H9"


def test_the_nearest_and_the_farthest_heads_are_those_numpy_finds() -> None:
    weights = weights_by_numpy().reshape(72, 16, 16)
    own = 2 * 12 + 3
    far = [distance(weights[own], each) for each in weights]
    order = [f"L{at // 12}H{at % 12}" for at in np.argsort(far) if at != own]
    app = page(layer="2", head="3")
    buttons = {button.key: button.label for button in app.button}
    assert [buttons[f"like_{n}"] for n in range(5)] == order[:5]
    assert [buttons[f"unlike_{n}"] for n in range(5)] == order[::-1][:5]
    nearest, farthest = sorted(far)[1], max(far)
    assert f"**{order[0]}** is the most like L2H3 (distance {nearest:.2f})" in said(app)
    assert f"**{order[-1]}** the least ({farthest:.2f})" in said(app)
    shown = [caption.value for caption in app.caption]
    assert f"{nearest:.3f}" in shown and f"{farthest:.3f}" in shown


def test_a_neighbour_is_chosen_by_its_button_in_all_pictures() -> None:
    app = page()
    name = app.button(key="unlike_0").label
    app = looked_at(app.button(key="unlike_0").click().run())
    assert name == f"L{app.selectbox(key='layer').value}H{app.selectbox(key='head').value}"
    assert ringed(app, "two_numbers") == ringed(app, "heads_map") == name
    assert f"Heads like {name}" in [heading.value for heading in app.subheader]


def test_the_most_previous_token_like_head_is_a_click_away_and_its_link_shows_the_same() -> None:
    app = looked_at(page().button(key="highest_head").click().run())
    previous = weights_by_numpy().diagonal(-1, 2, 3).mean(-1)
    layer, head = np.unravel_index(np.argmax(previous), (6, 12))
    assert ringed(app, "two_numbers") == f"L{layer}H{head}"
    again = page(layer=str(layer), head=str(head))
    assert said(again) == said(app)
    assert table(again) == table(app)


@pytest.mark.parametrize(
    ("link", "traces", "said_of_it"),
    [
        ({"color": "group", "groups": "3"}, 3, "Ward 1963"),
        ({"color": "number", "number": "self"}, 1, "This map shows"),
        ({}, 1, "This map shows"),
    ],
)
def test_the_map_is_coloured_by_layer_number_or_group(
    link: dict[str, str], traces: int, said_of_it: str
) -> None:
    app = page(**link)
    with_heads = [t for t in spec(app, "heads_map")["data"] if "customdata" in t]
    assert len(with_heads) == traces
    assert sum(len(t["customdata"]) for t in with_heads) == 72
    assert said_of_it in said(app)


def test_the_share_that_the_map_shows_is_that_of_its_two_largest_eigenvalues() -> None:
    weights = weights_by_numpy().reshape(72, 16, 16)
    squared = np.array([[distance(p, q) ** 2 for q in weights] for p in weights])
    centre = np.eye(72) - 1 / 72
    values = np.sort(np.linalg.eigvalsh(-0.5 * centre @ squared @ centre))[::-1]
    share = values[:2].sum() / values[values > 0].sum()
    assert f"This map shows **{100 * share:.0f} %**" in said(page())


def test_the_table_has_every_head_and_every_quick_number() -> None:
    app = page()
    shown = app.dataframe[0].value
    assert len(shown) == 72 and set(QUICK) < set(shown.columns)
    assert not set(EVERY) - set(QUICK) & set(shown.columns)
    row = shown[shown["name"] == "L2H3"].iloc[0]
    assert row["self"] == pytest.approx(weights_by_numpy()[2, 3].diagonal().mean(), abs=1e-6)
    shown = looked_at(app.toggle(key="costly").set_value(True).run()).dataframe[0].value
    assert set(EVERY) < set(shown.columns)


def test_the_table_is_filtered_by_layer_and_range() -> None:
    own = weights_by_numpy().diagonal(-1, 2, 3).mean(-1)
    app = page(layers="1,2", by="previous", at_least="0.1", at_most="0.5")
    wanted = [f"L{n}H{h}" for n in (1, 2) for h in range(12) if 0.1 <= own[n, h] <= 0.5]
    assert table(app) == wanted
    assert f"{len(wanted)} of 72 heads" in said(app)
    app = looked_at(app.multiselect(key="layers_shown").set_value([]).run())
    assert any(name.startswith("L0") for name in table(app))
    app = looked_at(app.number_input(key="at_least").set_value(2.0).run())
    assert "None of the 72 heads fits" in said(app)
    assert not app.dataframe


def test_the_saved_file_holds_what_the_table_shows_and_no_text() -> None:
    app = page(layers="5", text="=SUM(A1) secret")
    shown = app.dataframe[0].value
    file = as_csv(named(shown.drop(columns="name")))
    rows = list(csv.reader(io.StringIO(file)))
    assert len(rows) == 13 and rows[1][0] == "L5H0"
    assert "Entropy (nats)" in rows[0] and "Distance (tokens)" in rows[0]
    assert "secret" not in file and "SUM" not in file


def test_a_row_of_the_table_is_the_chosen_head() -> None:
    app = page(layer="2", head="3")
    assert app.session_state["numbers_table"]["selection"]["rows"] == [27]
    app = page(layer="2", head="3", layers="2,4")
    assert app.session_state["numbers_table"]["selection"]["rows"] == [3]
    app = page(layer="2", head="3", layers="4")
    assert app.session_state["numbers_table"]["selection"]["rows"] == []


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ({"metric": "nothing"}, "metric “nothing”"),
        ({"x": "<b>"}, "x “<b>”"),
        ({"y": "$1"}, "y “$1”"),
        ({"color": "red"}, "color “red”"),
        ({"color": "group", "groups": "99"}, "groups “99”"),
        ({"layers": "0,99"}, "layers “0,99”"),
        ({"layers": "a"}, "layers “a”"),
        ({"by": "what"}, "by “what”"),
        ({"by": "self", "at_least": "much"}, "at_least “much”"),
        ({"by": "self", "at_most": "1e999"}, "at_most “1e999”"),
        ({"costly": "1"}, "costly “1”"),
        ({"layer": "99"}, "layer “99”"),
        ({"model": "../../etc"}, "model “../../etc”"),
    ],
)
def test_a_wrong_link_falls_back_with_a_word(link: dict[str, str], told: str) -> None:
    app = page(**link)
    assert told in said(app)
    assert len(app.get("plotly_chart")) == 3 and len(table(app)) == 72


def test_of_a_long_text_some_queries_are_compared_and_it_says_which() -> None:
    app = page(text="one two three four five " * 95)
    words = re.search(r"From (\d+) of the (\d+) queries, evenly spread", said(app))
    assert words and int(words[1]) < int(words[2]) > 470
    assert "From all 16 queries" in said(page())


@pytest.mark.usefixtures("local_models")
@pytest.mark.parametrize(
    ("name", "heads", "words"),
    [
        ("twelve-layers", 192, "From all"),
        ("causal", 8, "Highest"),
        ("window", 8, "Highest"),
        ("sinks", 8, "Highest"),
        ("two-stacks", 8, "its decoder goes on from another text"),
        ("off-interface", 8, "Highest"),
        ("no-numbers", 8, "4 heads whose weights are not numbers are left out"),
    ],
)
def test_a_model_of_each_kind_is_shown(name: str, heads: int, words: str) -> None:
    app = page(model=f"local:{name}", text="It was too tired.", pair="so")
    assert not app.error
    assert len(app.dataframe[0].value) == heads
    assert words in said(app)


@pytest.mark.usefixtures("local_models")
def test_a_model_of_one_head_has_no_map_and_says_so() -> None:
    app = page(model="local:one-head", text="short")
    assert "A map needs at least three heads" in said(app)
    assert "There is no other head to compare it with" in said(app)
    assert "All heads have" in said(app) and table(app) == ["L0H0"]


@pytest.mark.usefixtures("local_models")
@pytest.mark.parametrize(
    ("link", "why"),
    [
        ({"model": "local:two-stacks", "pair": "of", "stack": "cross"}, "are of two texts"),
        (
            {"model": "local:off-interface", "metric": "score_variance"},
            "gives its weights alone, not the scores",
        ),
        ({"metric": "punctuation"}, "no token of punctuation only"),
        ({"metric": "same"}, "no token stands in the text twice"),
    ],
)
def test_a_number_that_is_not_known_says_why(link: dict[str, str], why: str) -> None:
    app = page(**{"text": "three", **link})
    assert why in said(app)


@pytest.mark.usefixtures("local_models")
def test_a_decoder_is_tested_on_a_repeated_segment_only_when_asked() -> None:
    app = page(model="local:causal", text="ab")
    assert "repeated segment" not in said(app)
    assert not [c for c in app.dataframe[0].value.columns if c.startswith("segment")]
    app = looked_at(app.toggle(key="segment").set_value(True).run())
    assert (
        "Also run: 23 tokens, a random segment of 11 read 2 times after the model's start token "
        "(seed 0)" in said(app)
    )
    shown = app.dataframe[0].value
    assert {"segment_induction", "segment_previous", "segment_duplicate"} < set(shown.columns)
    app = looked_at(app.selectbox(key="metric").set_value("segment_induction").run())
    np.testing.assert_allclose(
        chart(app, "heads_numbers").ravel(), shown["segment_induction"], atol=1e-6
    )


def test_an_encoder_says_why_it_has_no_induction_score() -> None:
    app = page()
    assert "it sees what comes after a token too" in said(app)
    assert "segment" not in [toggle.key for toggle in app.toggle]


def test_a_metric_that_another_model_lacks_falls_back(local_models: None) -> None:
    app = page(model="local:causal", text="ab", segment="yes", metric="segment_induction")
    assert app.selectbox(key="metric").value == "segment_induction"
    app = looked_at(app.selectbox(key="model").set_value("minilm").run())
    assert app.selectbox(key="metric").value == "previous"


def test_the_links_lead_to_the_head_and_to_both_comparisons() -> None:
    app = AppTest.from_file(ROOT / "app.py", default_timeout=120)
    app.query_params["text"] = "A short walk"
    app.switch_page("pages/all_heads.py").run()
    looked_at(app)
    links = {e.proto.label: e.proto.query_string for e in app.get("page_link")}
    (to_head,) = [query for label, query in links.items() if label == "Open L0H0 in Heads"]
    assert parse_qs(to_head)["layer"] == ["0"] and parse_qs(to_head)["head"] == ["0"]
    compared = {k: v for k, v in links.items() if k.startswith("Compare L0H0 with L")}
    assert len(compared) == 2
    for label, query in compared.items():
        wanted = parse_qs(urlsplit(f"?{query}").query)
        assert wanted["left_layer"] == wanted["left_head"] == ["0"]
        assert label.endswith(f"L{wanted['right_layer'][0]}H{wanted['right_head'][0]}")
        assert wanted["left_text"] == wanted["right_text"]
        assert wanted["left_model"] == wanted["right_model"] == ["minilm"]


@pytest.mark.parametrize("text", ["", "   "])
def test_no_text_asks_for_text(text: str) -> None:
    app = looked_at(page().text_area(key="text").set_value(text).run())
    assert "Please type some text" in app.error[0].value


@pytest.mark.parametrize(
    "text", ["a", "<b>x</b> &lt; $1 $2", "#000001 _x_ :red[x]", "مرحبا 日本語"]
)
def test_odd_text_is_no_markup(text: str) -> None:
    app = page(text=text)
    assert not app.error and len(app.get("plotly_chart")) == 3


def test_the_small_pictures_name_their_heads() -> None:
    app = page(layer="2", head="3")
    words = [picture.alt for element in app.get("image") for picture in element.proto.imgs]
    assert len(words) == 11  # the chosen head, five like it, five unlike
    assert words[0].startswith("Small map of L2H3")
    for at, button in enumerate(button for button in app.button if "like_" in str(button.key)):
        assert words[at + 1].startswith(f"Small map of {button.label};")
