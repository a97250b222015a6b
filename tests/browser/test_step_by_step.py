"""The step-by-step page in a browser: a click opens a cell, play goes on by itself, phones fit."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from explorer.ui.stepper import SECONDS
from scripts.browser import Server, settled
from tests.browser.checks import on_a_phone, overflow, serious_violations
from tests.browser.plots import click_cell


def open_page(page: Page, server: Server, query: str, height: int = 1900) -> None:
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height})  # type: ignore[index]
    page.goto(f"{server.url}/step_by_step?{query}")
    settled(page)


def test_a_click_on_a_cell_opens_its_arithmetic(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, "station=softmax")
    click_cell(watched_page, "softmax_after", 4, 2)
    settled(watched_page)
    expect(watched_page.get_by_text("“the” on “sat”: from dot to weight")).to_be_visible()
    assert "query=4" in watched_page.url and "key=2" in watched_page.url


def test_a_click_on_a_value_asks_for_that_number(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, "station=qkv")
    click_cell(watched_page, "qkv_V", 3, 1)
    settled(watched_page)
    expect(watched_page.get_by_text("Value of “on”, dimension 1")).to_be_visible()


def test_play_goes_on_by_itself_and_can_be_stopped(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, "start=quarter")
    watched_page.get_by_role("button", name="Play").click()
    wait = 1000 * (2 * SECONDS + 5)
    watched_page.wait_for_url("**station=scale**", timeout=wait)
    watched_page.get_by_role("button", name="Stop").click()
    settled(watched_page)
    stopped = watched_page.url
    watched_page.wait_for_timeout(1000 * (SECONDS + 1))
    assert watched_page.url == stopped
    expect(watched_page.get_by_role("button", name="Play")).to_be_visible()


@on_a_phone
@pytest.mark.parametrize("station", ["qkv", "mask", "join"])
def test_a_phone_shows_all_of_it(watched_page: Page, server: Server, station: str) -> None:
    text = "+".join(["word"] * 32) if station == "mask" else "the+cat+sat"
    open_page(watched_page, server, f"station={station}&mask=causal&times=0.125&text={text}", 3000)
    assert overflow(watched_page) == 0
    formula = watched_page.locator(".katex-display").first
    assert formula.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
    assert serious_violations(watched_page) == []
