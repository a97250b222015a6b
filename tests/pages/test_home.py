"""The home page without a browser."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from scripts.browser import ROOT


def opened(**link: str) -> AppTest:
    app = AppTest.from_file(ROOT / "app.py", default_timeout=60)
    app.query_params.update(link)
    app.run()
    assert not app.exception, app.exception
    return app


def test_home_shows_a_picture_computed_now() -> None:
    app = opened()
    assert len(app.get("plotly_chart")) == 1
    assert any("rows sum to 1 within" in caption.value for caption in app.caption)


@pytest.mark.parametrize("text", ["", "   ", "x", "</script>", "word " * 100, "[SEP] 日本語"])
def test_home_shows_a_picture_for_any_text(text: str) -> None:
    app = opened()
    app.text_input(key="text").set_value(text).run()
    assert not app.exception and not app.error
    assert len(app.get("plotly_chart")) == 1


def test_home_says_that_an_empty_field_shows_an_example() -> None:
    app = opened()
    app.text_input(key="text").set_value("").run()
    assert any("Nothing is typed yet" in caption.value for caption in app.caption)
    app.text_input(key="text").set_value("x").run()
    assert not any("Nothing is typed yet" in caption.value for caption in app.caption)


def test_a_text_too_long_for_home_is_cut_and_said_so() -> None:
    app = opened(text="word " * 600)
    assert not app.error
    assert len(app.get("plotly_chart")) == 1
    assert any("first 600 of your 3,000 characters" in caption.value for caption in app.caption)
