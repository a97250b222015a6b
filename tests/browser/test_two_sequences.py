"""The page Two sequences in a browser: each axis names its own text, a click chooses a query."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from explorer.ui.two_sequences import ANSWERING, ASKING
from scripts.browser import Server, settled
from tests.browser.plots import click_cell, over, plot, tick_texts, tooltip


def opened(page: Page, server: Server, query: str = "") -> Page:
    page.goto(f"{server.url}/two_sequences?{query}")
    return settled(page, quiet=1.0)  # it may be drawn anew for its width


def test_each_axis_names_its_own_text(watched_page: Page, server: Server) -> None:
    page = opened(watched_page, server)
    assert tick_texts(page, "one_head", "y") == ASKING.split()
    assert tick_texts(page, "one_head", "x") == ANSWERING.split()


def test_a_click_on_a_cell_chooses_its_query_and_its_tooltip_names_both_words(
    watched_page: Page, server: Server
) -> None:
    page = opened(watched_page, server)
    tip = plot(page, "one_head").locator(".hoverlayer")
    assert "cat" in tooltip(page, lambda: over(page, "one_head", 1, 3), tip)
    click_cell(page, "one_head", 4, 9)
    page.wait_for_url("**query=4**")
    expect(page.get_by_text("from the to", exact=False).first).to_be_visible()


@pytest.mark.parametrize("name", ["two-stacks", "denoiser"])
def test_a_real_encoder_decoder_has_both_texts_on_its_axes(
    watched_page: Page, with_models: Server, name: str
) -> None:
    query = f"heads_of=model&translator=local:{name}&text=a+cat&other=the+big+cat"
    page = opened(watched_page, with_models, query)
    expect(page.get_by_text("The map is 7 × 12")).to_be_visible()
    assert tick_texts(page, "one_head", "y")[1:] == ["<s>", *"a·cat"]
    assert tick_texts(page, "one_head", "x") == ["<s>", *"the·big·cat"]
