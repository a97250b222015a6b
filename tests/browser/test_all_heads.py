"""The page All heads in a browser: clicks in every picture and in the table, the file, phones."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from scripts.browser import Server, settled
from tests.browser.checks import on_a_phone_and_a_desk, overflow, serious_violations
from tests.browser.plots import click_cell

RINGED = """([key, name]) => {
  const plot = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const ring = plot?._fullData?.find((each) => each.mode === "markers+text");
  return ring && ring.text[0].includes(`>${name}<`);
}"""
SCATTERS = ("two_numbers", "heads_map")
ROW = 36  # pixels of a row of the table; its header is as tall

WIDE = pytest.mark.parametrize(
    "watched_page", [{"viewport": {"width": 1440, "height": 1100}}], indirect=True
)


def open_page(page: Page, server: Server, query: str = "") -> None:
    page.goto(f"{server.url}/all_heads?{query}")
    settled(page)


def chosen_everywhere(page: Page, name: str) -> None:
    """All pictures and the heading show this head."""
    for key in SCATTERS:
        page.wait_for_function(RINGED, arg=[key, name])
    expect(page.get_by_role("heading", name=f"Heads like {name}", exact=True)).to_be_visible()
    settled(page)


@WIDE
def test_a_click_in_any_picture_chooses_that_head_in_all(
    watched_page: Page, server: Server
) -> None:
    page = watched_page
    open_page(page, server)
    click_cell(page, "heads_numbers", 1, 9)
    chosen_everywhere(page, "L1H9")
    assert "layer=1" in page.url and "head=9" in page.url
    for key, layer, head in (("two_numbers", 0, 2), ("heads_map", 4, 9), ("two_numbers", 0, 2)):
        click_cell(page, key, layer, head, marker=True)
        chosen_everywhere(page, f"L{layer}H{head}")
    fourth = {"x": 15.0, "y": ROW * 4.5}
    page.locator(".st-key-numbers_table").click(position=fourth)
    chosen_everywhere(page, "L0H3")


@WIDE
def test_the_most_previous_token_like_head_is_compared_with_its_opposite_and_sent_as_a_link(
    watched_page: Page, server: Server
) -> None:
    page = watched_page
    open_page(page, server, "text=A+short+walk+in+the+sun")
    page.get_by_role("button", name="Choose the highest").click()
    expect(page).to_have_url(re.compile("head="))
    settled(page)
    link = page.url
    sentence = page.get_by_text(re.compile("Of 71 other heads")).inner_text()
    page.goto("about:blank")
    page.goto(link)
    settled(page)
    assert page.get_by_text(re.compile("Of 71 other heads")).inner_text() == sentence
    least = re.search(r"and (L\d+H\d+) the least", sentence)
    assert least
    page.get_by_role("link", name=re.compile(rf"Compare L\d+H\d+ with {least[1]}$")).click()
    page.wait_for_url(re.compile(r"/compare\?"))
    settled(page)
    layer, head = re.findall(r"\d+", least[1])
    for what, number in (("Layer", layer), ("Head", head)):
        shown = page.get_by_role("combobox", name=what, exact=True).nth(1)
        expect(shown).to_have_value(number)


@WIDE
def test_the_file_holds_the_heads_of_the_table(
    watched_page: Page, server: Server, tmp_path: Path
) -> None:
    open_page(watched_page, server, "layers=2&text=%3D1%2B1+secret")
    with watched_page.expect_download() as waited:
        watched_page.get_by_role("button", name="Save as CSV").click()
    waited.value.save_as(tmp_path / "heads.csv")
    text = (tmp_path / "heads.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(text.splitlines()))
    assert [row[0] for row in rows] == ["Name", *(f"L2H{head}" for head in range(12))]
    assert "Entropy (nats)" in rows[0]
    assert "secret" not in text and "=" not in text


@on_a_phone_and_a_desk
def test_it_fits_and_can_be_read(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, "text=so+it+goes&color=group&by=self&at_least=0.01")
    assert overflow(watched_page) == 0
    assert serious_violations(watched_page) == []
