"""The page Scaling in a browser: the slider by keyboard, first view at a glance, phones."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from scripts.browser import Server, settled
from tests.browser.checks import overflow, serious_violations
from tests.browser.plots import box_of


@pytest.mark.parametrize(
    "watched_page", [{"viewport": {"width": 1440, "height": 900}}], indirect=True
)
def test_the_slider_moves_by_keyboard_and_the_first_view_holds_both_pictures(
    watched_page: Page, server: Server
) -> None:
    watched_page.goto(f"{server.url}/scaling?scaling_d_k=384")
    settled(watched_page, timeout=60)
    watched_page.get_by_role("slider").first.focus()
    watched_page.keyboard.press("ArrowRight")
    watched_page.wait_for_url("**scaling_d_k=512**")
    settled(watched_page)
    expect(watched_page.get_by_text("standard deviation √d_k = 22.6")).to_be_visible()
    for name in ("scores", "weights"):
        box = box_of(watched_page, f".st-key-scaling_chart_{name} .js-plotly-plot")
        assert box["y"] + box["height"] <= 900


@pytest.mark.parametrize(
    "watched_page",
    [{"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}],
    indirect=True,
)
@pytest.mark.parametrize("view", ["variance", "gradient", "scales"])
def test_a_phone_shows_all_of_it(watched_page: Page, server: Server, view: str) -> None:
    watched_page.goto(f"{server.url}/scaling?scaling_view={view}&rho=0.3&scaling_keys=1024")
    settled(watched_page, timeout=60)
    expect(watched_page.get_by_text("Test yourself")).to_be_attached()
    assert overflow(watched_page) == 0
    assert serious_violations(watched_page) == []
