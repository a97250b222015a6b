"""The page Continue in a browser: clicked tokens, step by step, a link, a stop, a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from scripts.browser import Server, settled
from tests.browser.checks import on_a_phone_and_a_desk, overflow, serious_violations, serve_models
from tests.headed_models import save_headed_models

MODEL = "model=local:writer&text=a+cat+a+cat"


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An app with small models that write."""
    with serve_models(save_headed_models(tmp_path_factory.mktemp("headed"))) as running:
        yield running


def visit(page: Page, server: Server, link: str = MODEL) -> Page:
    page.goto(f"{server.url}/continue_text?{link}")
    settled(page)
    expect(added(page, 0).first).to_be_visible()
    return page


def added(page: Page, side: int) -> Locator:
    """The added tokens of a side."""
    return page.locator(f'.both button[data-side="{side}"]')


def test_a_click_and_the_arrow_keys_choose_a_token(watched_page: Page, writers: Server) -> None:
    page = visit(watched_page, writers, MODEL + "&change=off_L0")
    added(page, 1).nth(4).click()
    settled(page)
    assert "picked=5" in page.url
    for side in (0, 1):
        expect(added(page, side).nth(4)).to_have_attribute("aria-pressed", "true")
    added(page, 1).nth(4).focus()
    page.keyboard.press("ArrowRight")
    expect(added(page, 1).nth(5)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("picked=6"))
    settled(page)
    expect(added(page, 1).nth(5)).to_be_focused()


def test_step_by_step_and_a_link_that_shows_the_same(watched_page: Page, writers: Server) -> None:
    link = MODEL + "&change=off_L0&temperature=1.0&draw_seed=3&written=0"
    page = watched_page
    page.goto(f"{writers.url}/continue_text?{link}")
    settled(page)
    expect(page.get_by_text("No token is added yet")).to_be_visible()
    for count in (1, 2):
        page.get_by_role("button", name="Next token").click()
        expect(added(page, 1)).to_have_count(count)
        settled(page)
    assert "written=2" in page.url
    texts = [added(page, side).all_text_contents() for side in (0, 1)]
    visit(page, writers, page.url.partition("?")[2])
    assert [added(page, side).all_text_contents() for side in (0, 1)] == texts
    page.get_by_role("button", name="Run to 20").click()
    settled(page)
    assert "written" not in page.url
    assert [added(page, side).all_text_contents()[:2] for side in (0, 1)] == texts


def test_a_change_goes_along_to_what_if_and_back(watched_page: Page, writers: Server) -> None:
    page = visit(watched_page, writers, MODEL + "&change=off_L1H2")
    page.get_by_test_id("stMain").get_by_role("link", name="What if").click()
    page.wait_for_url(re.compile("/what_if"))
    expect(page.get_by_text("Layer 1, head 2: switched off")).to_be_visible()
    settled(page)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Continue").click()
    page.wait_for_url(re.compile("/continue_text"))
    expect(page.get_by_text("Layer 1, head 2: switched off")).to_be_visible()
    expect(added(page, 1).first).to_be_visible()


@on_a_phone_and_a_desk
def test_it_fits_and_can_be_used_by_all(watched_page: Page, writers: Server) -> None:
    page = visit(watched_page, writers, MODEL + "&change=off_L0&temperature=0.8&top_k=10")
    assert overflow(page) == 0
    assert serious_violations(page) == []
