"""The Lines page: what it sends to the picture, what it says in words, and bad links."""

from __future__ import annotations

import json
import struct
from functools import partial
from typing import Any

import numpy as np
import pytest

from explorer.capture import capture
from explorer.models import load
from explorer.tokens import Tokens
from explorer.ui.token_lines import LinesView, Pinned, packed
from tests.pages import driven
from tests.pages.driven import said

opened = partial(driven.opened, "lines")


def unpacked(data: bytes) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    (size,) = struct.unpack("<I", data[:4])
    return json.loads(data[4 : 4 + size]), np.frombuffer(data[4 + size :], np.uint8)


def test_a_byte_for_each_weight_gives_it_back_to_within_half_a_step() -> None:
    weights = np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    queries, keys = Tokens.plain(["a", "b", "<b>"]), Tokens.plain(["c", "d", "e", "é"])
    view = LinesView((0, 1), 0.1, Pinned("q", 2))
    head, codes = unpacked(packed(weights, queries, keys, ["#111111", "#222222"], view))
    assert [token["text"] for token in head["queries"]] == ["a", "b", "<b>"]
    assert head["view"] == {"heads": [0, 1], "least": 0.1, "token": {"side": "q", "at": 2}}
    back = (codes.reshape(2, 3, 4) / 255) ** 2
    # A step of √w is 1/255, so half of one changes w by at most √w/255.
    assert np.all(np.abs(back - weights) <= np.sqrt(weights) / 255 + 1e-5)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "x",
        {"heads": [0, 9], "least": 0.1, "token": None},
        {"heads": [0], "least": 2, "token": None},
        {"heads": [0], "least": float("nan"), "token": None},
        {"heads": [True], "least": 0.1, "token": None},
        {"heads": [0], "least": 0.1, "token": {"side": "q", "at": 3}},
        {"heads": [0], "least": 0.1, "token": {"side": "x", "at": 0}},
    ],
)
def test_what_a_browser_reports_is_not_trusted(value: object) -> None:
    assert LinesView.from_browser(value, 4, 3, 4) is None


def test_what_a_browser_reports_is_read() -> None:
    given = {"heads": [3, 1, 1], "least": 0, "token": {"side": "k", "at": 3}}
    assert LinesView.from_browser(given, 4, 3, 4) == LinesView((1, 3), 0.0, Pinned("k", 3))


def test_the_table_holds_the_strongest_lines_of_the_pinned_query() -> None:
    at = opened(layer="3", token="q10", heads="0,5", least="0.01")
    text = "The animal didn't cross the street because it was too tired."
    weights = capture(load("minilm"), text).stacks["encoder"].layers[3].weights([0, 5])[:, 10]
    best = int(weights.max(0).values.argmax())
    shown = at.dataframe[0].value
    assert shown["key"][0].startswith(f"{best} ")
    assert shown["weight"][0] == f"{100 * float(weights.max()):.1f} %"
    assert set(shown["head"]) <= {"H0", "H5"}
    assert all(query == "10 it" for query in shown["query"])
    assert len(shown) == min(25, int((weights >= 0.01).sum()))


def test_pairs_of_texts_can_be_told_apart_where_there_are_two() -> None:
    assert "pairs" not in {each.key for each in opened().button_group}
    at = opened(pair="It slept.", pairs="AB")
    assert at.session_state["pairs"] == "AB"


def test_links_that_ask_for_what_is_not_there_are_told() -> None:
    at = opened(heads="0,99", least="7", token="q900", layer="3")
    words = said(at)
    assert "There are 0 to 11, written as 0,3,5" in words
    assert "It is a weight between 0 and 1" in words
    assert "q and the number of a query" in words


def test_a_text_that_is_too_long_for_lines_says_so() -> None:
    at = opened(text="a " * 400, model="minilm")
    assert "The strongest lines" in said(at)


def test_too_few_strong_lines_are_told() -> None:
    assert "No line is strong enough" in said(opened(least="1", heads="0", layer="1"))
