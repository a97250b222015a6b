"""The address of the Heads page: what a link shows, and what it says of wrong values."""

from __future__ import annotations

import re
import time
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from explorer.ui import address as memory
from tests.pages import driven
from tests.pages.driven import looked_at

opened = partial(driven.opened, "heads")
DEFAULTS = {"model": "minilm", "layer": 0, "head": 0, "query": 1, "show": "weights"}


def address(app: AppTest) -> dict[str, str]:
    """The address as it stands, each name with its last value."""
    values = app.query_params.items()
    return {name: value[-1] if isinstance(value, list) else value for name, value in values}


def test_a_link_shows_what_it_says_and_stays_as_it_is() -> None:
    link = {
        "text": "A cat\nsat – 日本 & more",
        "pair": "a dog",
        "layer": "3",
        "head": "4",
        "query": "5",
        "show": "dots",
        "hide_special": "yes",
        "specials": "yes",
        "dtype": "float32",
    }
    app = opened(**link)
    assert not app.warning
    state = {name: app.session_state[name] for name in link}
    expected = {**link, "layer": 3, "head": 4, "query": 5, "hide_special": True, "specials": True}
    assert state == expected
    assert address(app) == link


def test_what_is_as_usual_is_not_in_the_address() -> None:
    assert address(opened()) == {}
    assert address(opened(layer="0", head="0", text="other")) == {"text": "other"}


def test_a_choice_goes_into_the_address() -> None:
    app = opened()
    app.selectbox(key="layer").set_value(2)
    app.selectbox(key="head").set_value(9)
    app.text_area(key="text").set_value("Something else")
    looked_at(app.run())
    assert address(app) == {"layer": "2", "head": "9", "text": "Something else"}
    app.selectbox(key="layer").set_value(0)
    assert "layer" not in address(looked_at(app.run()))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "../../etc"),
        ("model", "/etc/passwd"),
        ("model", "local:nope"),
        ("model", "<b>x</b>"),
        ("model", ""),
        ("layer", "abc"),
        ("layer", "-1"),
        ("layer", "٣"),
        ("layer", "9" * 30),
        ("layer", "6"),
        ("layer", ""),
        ("head", "99"),
        ("query", "77"),
        ("show", "zzz"),
        ("stack", "zzz"),
        ("device", "tpu"),
        ("dtype", "int8"),
        ("hide_special", "1"),
        ("specials", "no"),
    ],
)
def test_a_wrong_value_falls_back_with_a_word(name: str, value: str) -> None:
    app = opened(**{name: value})
    told = [re.sub(r"\\", "", warning.value) for warning in app.warning]
    assert len(told) == 1 and told[0].startswith(f"The link asks for {name} “{value}”."), told
    assert {key: app.session_state[key] for key in DEFAULTS} == DEFAULTS
    assert name not in address(app)


def test_several_wrong_values_are_each_told() -> None:
    app = opened(layer="abc", head="99", query="77", stack="zzz", model="../../etc")
    assert len(app.warning) == 5
    assert len(app.get("plotly_chart")) == 3


def test_the_word_goes_away_with_the_next_choice() -> None:
    app = opened(layer="abc")
    app.selectbox(key="layer").set_value(3)
    assert not looked_at(app.run()).warning


def test_going_back_to_an_older_address_shows_its_view() -> None:
    app = opened(layer="2")
    app.selectbox(key="layer").set_value(4)
    assert address(looked_at(app.run())) == {"layer": "4"}
    app.session_state["layer written"] = memory.Written("4", (("2", 0.0),))  # long ago
    app.query_params["layer"] = "2"
    assert looked_at(app.run()).session_state["layer"] == 2


def test_an_address_that_comes_late_does_not_undo_a_choice() -> None:
    app = opened(layer="2")
    app.selectbox(key="layer").set_value(4)
    looked_at(app.run())
    app.selectbox(key="layer").set_value(5)
    looked_at(app.run())
    value, before = app.session_state["layer written"]
    assert value == "5" and {old for old, _ in before} == {"2", "4"}
    now = tuple((old, time.monotonic()) for old, _ in before)
    app.session_state["layer written"] = memory.Written(value, now)
    app.query_params["layer"] = "2"  # the browser has heard of neither 4 nor 5 yet
    app.selectbox(key="head").set_value(1)
    assert looked_at(app.run()).session_state["layer"] == 5
    assert address(app) == {"layer": "5", "head": "1"}


def test_a_text_too_long_for_a_link_is_left_out_and_told() -> None:
    app = opened()
    app.text_area(key="text").set_value("word " * 400)
    looked_at(app.run())
    assert "text" not in address(app)
    assert any("too long to stand in the page" in caption.value for caption in app.caption)


def test_a_run_right_after_the_first_sends_every_value_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = driven.opened("many_heads", split="8")
    assert app.selectbox(key="split").proto.set_value
    app.selectbox(key="split_head").select(3).run()  # a click that overtakes the first run
    assert app.selectbox(key="split").proto.set_value
    monkeypatch.setattr(memory, "SETTLES", 0.0)
    app.selectbox(key="split_head").select(2).run()
    assert not app.selectbox(key="split").proto.set_value


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([0, 1, 2, 3], "There are 0 to 3."),
        ([1, 2, 3, 4, 6, 8], "There are 1, 2, 3, 4, 6, 8."),
        ([5], "There is only 5."),
    ],
)
def test_a_wrong_number_is_told_what_there_is(options: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"heads “9”. {words} Showing heads")):
        memory.number_of("heads", options)("9")
