"""The page Real heads in a browser: a click opens a head, a link leads on, phones fit."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from scripts.browser import Server, settled
from tests.browser.checks import on_a_phone_and_a_desk, overflow, serious_violations
from tests.browser.plots import click_cell

RINGED = """() => {
  const plot = document.querySelector(".st-key-heads_scatter .js-plotly-plot");
  return plot._fullData.find((each) => each.marker?.symbol === "circle-open").text[0];
}"""


def open_page(page: Page, server: Server, query: str = "", height: int = 1600) -> None:
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height})  # type: ignore[index]
    page.goto(f"{server.url}/real_heads?{query}")
    settled(page)


def click_head(page: Page, layer: int, head: int) -> None:
    click_cell(page, "heads_scatter", layer, head, marker=True)


def heading(page: Page, layer: int, head: int) -> None:
    expect(page.get_by_role("heading", name=f"Layer {layer}, head {head}")).to_be_visible()


WIDE = pytest.mark.parametrize(
    "watched_page", [{"viewport": {"width": 1440, "height": 1600}}], indirect=True
)


@WIDE
def test_a_click_on_a_point_opens_that_head_and_the_link_leads_to_it(
    watched_page: Page, server: Server
) -> None:
    open_page(watched_page, server, "text=A+short+walk")
    click_head(watched_page, 0, 2)
    heading(watched_page, 0, 2)
    settled(watched_page)
    assert "L0H2" in watched_page.evaluate(RINGED)
    assert "head=2" in watched_page.url
    watched_page.get_by_text("1/d_k", exact=True).first.click()
    watched_page.wait_for_url("**against=inverse**")
    settled(watched_page)
    heading(watched_page, 0, 2)
    click_head(watched_page, 0, 2)  # again, on a chart that was replaced
    settled(watched_page)
    watched_page.get_by_role("link", name="Open L0H2 in Heads").click()
    watched_page.wait_for_url(re.compile(r"/heads\?"))
    settled(watched_page)
    heading(watched_page, 0, 2)
    expect(watched_page.get_by_label("Text", exact=True)).to_have_value("A short walk")


@WIDE
def test_a_link_shows_the_same_in_a_new_tab(watched_page: Page, server: Server) -> None:
    query = "layer=4&head=9&against=times&times=8&across=layer&up=largest_weight_compared"
    open_page(watched_page, server, query)
    heading(watched_page, 4, 9)
    expect(watched_page.get_by_text("8 × its own scale: factor 1.414")).to_be_visible()
    for part in query.split("&"):
        assert part in watched_page.url
    assert "L4H9" in watched_page.evaluate(RINGED)
    link = watched_page.get_by_role("link", name="Open L4H9 in Heads")
    assert re.search(r"heads\?.*layer=4.*head=9", link.get_attribute("href") or "")


@WIDE
def test_quick_clicks_leave_one_head_everywhere(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server)
    clicked = ((0, 2), (1, 8), (0, 11))
    for layer, head in clicked:
        click_head(watched_page, layer, head)
        watched_page.wait_for_timeout(200)
    watched_page.wait_for_url(re.compile("head="))
    settled(watched_page)
    # A click on a chart that is just being replaced may get lost, but never a part of one.
    ringed = re.search(r"L(\d+)H(\d+)", watched_page.evaluate(RINGED))
    assert ringed
    layer, head = int(ringed[1]), int(ringed[2])
    assert (layer, head) in clicked
    heading(watched_page, layer, head)
    expect(watched_page.get_by_role("heading", name=f"L{layer}H{head} with")).to_be_visible()
    assert f"head={head}" in watched_page.url and (f"layer={layer}" in watched_page.url) == (
        layer > 0
    )


@on_a_phone_and_a_desk
def test_it_fits_and_can_be_read(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, "text=so+it+goes", 3000)
    assert overflow(watched_page) == 0
    assert serious_violations(watched_page) == []
