"""The page What if in a browser: a link, a sweep with its stop, clicks, painting, a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from scripts.browser import Server, settled
from tests.browser.checks import overflow, serious_violations
from tests.browser.plots import box_of, click_cell

MODEL = "model=minilm&text=a+cat+sat&second=a+dog+ran"


def visit(page: Page, server: Server, link: str = MODEL) -> Page:
    page.goto(f"{server.url}/what_if?{link}")
    settled(page)
    return page


def test_a_change_stands_in_the_address_and_a_link_shows_it(
    watched_page: Page, server: Server
) -> None:
    page = visit(watched_page, server)
    page.get_by_role("button", name="Add this change").click()
    expect(page.get_by_text("Layer 0, head 0: switched off")).to_be_visible()
    settled(page)
    assert "change=off_L0H0" in page.url
    visit(page, server, page.url.partition("?")[2])
    expect(page.get_by_text("Layer 0, head 0: switched off")).to_be_visible()
    page.get_by_role("button", name="Undo all").click()
    expect(page.get_by_text("equal to the last bit")).to_be_visible()
    settled(page)
    assert "change=" not in page.url


def test_heads_are_tried_in_turn_and_a_click_opens_one(watched_page: Page, server: Server) -> None:
    page = visit(watched_page, server)
    page.get_by_role("button", name="Switch off each head in turn").click()
    expect(page.get_by_text("the two texts become the least alike")).to_be_visible()
    settled(page)
    click_cell(page, "effects", 4, 7)
    page.wait_for_url(re.compile("layer=4.*head=7|head=7.*layer=4"))
    settled(page)
    expect(page.get_by_role("button", name=re.compile("Switch L4H7 off")).first).to_be_visible()
    page.get_by_role("button", name=re.compile("Switch L4H7 off")).first.click()
    expect(page.get_by_text("Layer 4, head 7: switched off")).to_be_visible()
    found = page.get_by_text("the two texts become the least alike")
    words = found.inner_text()
    settled(page)
    link = page.url.partition("?")[2]
    assert "tried=yes" in link
    page.goto("about:blank")
    visit(page, server, link)  # the same is shown, without a click
    expect(found).to_have_text(words)


def test_a_sweep_is_stopped(watched_page: Page, server: Server) -> None:
    long = "&text=" + "+".join(["word"] * 300)
    page = visit(watched_page, server, "model=minilm&second=a+dog+ran" + long)
    page.get_by_role("button", name="Switch off each head in turn").click()
    expect(page.get_by_text(re.compile("of 72 heads tried"))).to_be_visible()
    page.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text(re.compile(r"Stopped after \d+ of 72 heads"))).to_be_visible()
    settled(page)


def test_clicks_paint_cells_however_quickly(watched_page: Page, server: Server) -> None:
    page = visit(watched_page, server)
    page.get_by_role("combobox", name="Change").click()
    page.get_by_role("option", name="Paint a mask").click()
    settled(page)
    page.locator(".st-key-paint_map svg image").scroll_into_view_if_needed()
    box = box_of(page, ".st-key-paint_map svg image")
    for column in range(5):
        page.mouse.click(box["x"] + (column + 0.5) * box["width"] / 5, box["y"] + box["height"] / 2)
        page.wait_for_timeout(100)
    settled(page)
    page.get_by_role("button", name="Add this change").click()
    expect(page.get_by_text("Layer 0, head 0: a painted mask")).to_be_visible()
    settled(page)
    assert "change=paint_5-1ff83ff_L0H0" in page.url  # all of 25 cells but the third row


@pytest.mark.parametrize(
    "watched_page",
    [{"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}],
    indirect=True,
)
def test_a_phone_shows_all_of_it(watched_page: Page, server: Server) -> None:
    page = visit(watched_page, server, MODEL + "&change=off_L0H1+times_0.5")
    assert overflow(page) == 0
    assert serious_violations(page) == []
