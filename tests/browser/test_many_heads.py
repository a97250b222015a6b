"""The page Many heads in a browser: a click on a head chooses it, another division is drawn."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from scripts.browser import Server, settled
from tests.browser.plots import click_cell, plot

BLANK = """() => {
  const open = (group) => !group.closest('[data-testid="stRadio"]');  // a question has no answer
  const groups = [...document.querySelectorAll('[role="radiogroup"]')].filter(open);
  const boxes = [...document.querySelectorAll('[data-testid="stSelectbox"]')];
  const shown = (box) => (box.querySelector("input")?.value ?? "") + box.innerText.split("\\n")[1];
  return [
    ...groups.filter((group) => !group.querySelector('[aria-checked="true"]')),
    ...boxes.filter((box) => !shown(box).trim()),
    ...document.querySelectorAll('[data-testid="stTextInput"] input[value=""]'),
  ].map((node) => node.innerText || "a text field");
}"""
"""The controls of a page that stand there without a value."""


def choose(page: Page, label: str, value: str) -> None:
    page.get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=value, exact=True).click()
    settled(page)


def test_a_click_on_a_head_of_the_grid_chooses_it(watched_page: Page, server: Server) -> None:
    watched_page.goto(f"{server.url}/many_heads")
    settled(watched_page)
    click_cell(watched_page, "split_grid", 0, 2)
    expect(watched_page.get_by_role("heading", name="Head 2", exact=True)).to_be_visible()
    settled(watched_page)
    assert "split_head=2" in watched_page.url
    expect(plot(watched_page, "split_grid").locator(".cells-outline")).to_be_visible()


def test_another_number_of_heads_is_drawn_and_stands_in_the_link(
    watched_page: Page, server: Server
) -> None:
    watched_page.goto(f"{server.url}/many_heads?split_head=3")
    settled(watched_page)
    choose(watched_page, "Heads", "2")
    expect(watched_page.get_by_text("d_k = 48 / 2 = 24")).to_be_visible()
    expect(watched_page.get_by_role("heading", name="Head 1", exact=True)).to_be_visible()
    assert "split=2" in watched_page.url


@pytest.mark.parametrize(
    "watched_page", [{"viewport": {"width": 900, "height": 900}}], indirect=True
)
def test_a_click_while_the_page_still_opens_leaves_no_control_blank(
    watched_page: Page, server: Server
) -> None:
    watched_page.goto(f"{server.url}/many_heads", wait_until="commit")
    watched_page.get_by_role("radio", name="Token embeddings").first.click()
    expect(watched_page.get_by_text("d_k = 384 / 4 = 96")).to_be_visible()
    settled(watched_page, quiet=1.0)
    assert watched_page.evaluate(BLANK) == []
    assert "vectors=embeddings" in watched_page.url
