"""The page Compare in a browser: clicks, the link in a new tab, phones, two models."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from scripts.browser import Server, settled
from tests.browser.checks import overflow, serious_violations
from tests.browser.plots import click_cell, plot

WIDE = pytest.mark.parametrize(
    "watched_page", [{"viewport": {"width": 1440, "height": 1600}}], indirect=True
)


def open_page(page: Page, server: Server, query: str = "") -> None:
    page.goto(f"{server.url}/compare?{query}")
    settled(page)


def address(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def choose(page: Page, label: str, side: int, option: str) -> None:
    page.get_by_label(label, exact=True).nth(side).click()
    page.get_by_role("option", name=option, exact=True).click()
    settled(page)


@WIDE
def test_another_head_a_click_on_a_row_and_the_same_in_a_new_tab(
    watched_page: Page, server: Server
) -> None:
    page = watched_page
    open_page(page, server)
    choose(page, "Layer", 0, "3")
    choose(page, "Head", 1, "5")
    expect(page.get_by_text("Right: L3H5")).to_be_visible()
    click_cell(page, "compare_difference", 9, 4)
    settled(page)
    expect(page.get_by_text("(query 9) looks")).to_be_visible()
    assert address(page) == {"left_layer": "3", "right_head": "5", "at": "q9"}
    table = page.locator("table").first.inner_text()
    url = page.url
    page.goto("about:blank")
    page.goto(url)
    settled(page)
    assert page.url == url and page.locator("table").first.inner_text() == table
    expect(page.get_by_text("(query 9) looks")).to_be_visible()


@WIDE
def test_a_click_in_the_strip_makes_that_head_the_right_one(
    watched_page: Page, server: Server
) -> None:
    page = watched_page
    open_page(page, server, "strip=L4H1,L5H7")
    strip = plot(page, "compare_strip").locator(".js-plotly-plot")
    strip.click(position={"x": 300, "y": 120})  # the second map
    settled(page)
    expect(page.get_by_text("Right: L5H7")).to_be_visible()
    assert address(page)["right_layer"] == "5" and address(page)["right_head"] == "7"


@WIDE
def test_what_another_page_showed_is_on_the_left(watched_page: Page, server: Server) -> None:
    page = watched_page
    page.goto(f"{server.url}/heads?layer=4&head=9&text=so+it+goes")
    settled(page)
    page.get_by_role("link", name="Compare").click()
    page.wait_for_url("**/compare**")
    settled(page)
    expect(page.get_by_text("Left: L4H9")).to_be_visible()
    expect(page.get_by_label("Text", exact=True).nth(1)).to_have_value("so it goes")
    page.get_by_role("link", name="Open L4H8 in Heads").click()
    page.wait_for_url("**/heads?**")
    settled(page)
    expect(page.get_by_role("heading", name="Layer 4, head 8")).to_be_visible()


@pytest.mark.parametrize(
    "watched_page",
    [
        {"viewport": {"width": 390, "height": 3000}, "color_scheme": "dark"},
        {"viewport": {"width": 1440, "height": 2200}, "color_scheme": "light"},
    ],
    indirect=True,
)
def test_it_fits_and_can_be_read(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, "left_text=so+it+goes")
    assert overflow(watched_page) == 0
    assert serious_violations(watched_page) == []
