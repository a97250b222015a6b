"""Long texts in a browser: a dragged box, a click, Back, a copied link, a pass that is stopped."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from explorer.ui.address import ON_ITS_WAY
from scripts.browser import Server, settled
from tests.browser.checks import on_a_phone_and_a_desk, overflow, serious_violations
from tests.browser.plots import click_cell, over, plot, tooltip

LONG = "sample=argparse&rule=causal"  # some 24,000 tokens


def open_page(page: Page, server: Server, query: str = "", height: int = 1300) -> None:
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": size["width"], "height": height})
    page.goto(f"{server.url}/long_texts?{query}")
    settled(page)


def drag(page: Page, start: tuple[int, int], end: tuple[int, int]) -> None:
    """A box on the map from the middle of one bin to that of another, and what it leads to."""
    before = page.url
    # Both before the button is pressed: from then on a cover lies over the page.
    first, (x, y) = over(page, "long_map", *start), over(page, "long_map", *end)
    page.mouse.move(*first)
    page.mouse.down()
    page.mouse.move(x - 3, y - 3)
    page.mouse.move(x, y)
    page.mouse.up()
    page.wait_for_url(lambda url: url != before)
    settled(page)


def test_boxes_lead_to_a_word_pair_back_leads_out_and_a_link_shows_the_same(
    watched_page: Page, server: Server
) -> None:
    open_page(watched_page, server)
    drag(watched_page, (20, 60), (60, 100))
    expect(watched_page.get_by_role("button", name="Whole text")).to_be_visible()
    first = watched_page.url
    assert re.search(r"zoom=\d+-\d+\.\d+-\d+$", first)
    drag(watched_page, (20, 60), (60, 100))
    drag(watched_page, (4, 6), (7, 10))
    assert re.search(r"~(\d+)-(\d+)\.(\d+)-(\d+)$", watched_page.url)
    assert plot(watched_page, "long_map").locator(".ytick text").count() == 4
    click_cell(watched_page, "long_map", 2, 3)
    settled(watched_page)
    assert re.search(r"cell=\d+-\d+", watched_page.url)
    sentence = watched_page.get_by_text(re.compile(r"^Query .* gives key"))
    expect(sentence).to_be_visible()

    other = watched_page.context.new_page()
    other.goto(watched_page.url)
    settled(other)
    assert other.get_by_text(re.compile(r"^Query .* gives key")).text_content() == (
        sentence.text_content()
    )
    assert plot(other, "long_map").locator("path.shapelayer, .shapelayer path").count() == 1
    other.close()

    watched_page.wait_for_timeout(1000 * ON_ITS_WAY + 200)
    for _ in range(3):
        watched_page.go_back()
        settled(watched_page)
    assert watched_page.url == first


def test_a_tooltip_holds_the_words_of_both_sides(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, "find=namespace")
    tip = plot(watched_page, "long_map").locator(".hoverlayer")
    found = tooltip(watched_page, lambda: over(watched_page, "long_map", 30, 40), tip)
    assert re.search(r"Query .*“.*”.*Key .*“.*”.*weight", found, re.DOTALL), found


def test_steps_in_by_keyboard_keep_the_focus(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server)
    closer = watched_page.get_by_role("button", name="In on the strongest")
    closer.focus()
    for _ in range(3):
        watched_page.keyboard.press("Enter")
        settled(watched_page)
        expect(closer).to_be_focused()
    assert "cell=" in watched_page.url


def test_a_click_on_a_small_map_chooses_its_head(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server)
    click_cell(watched_page, "long_heads", 1, 2)
    settled(watched_page)
    assert re.search(r"head=\d", watched_page.url)
    outline = plot(watched_page, "long_heads").locator(".cells-outline")
    expect(outline).to_be_visible()


def test_a_row_of_the_far_links_leads_to_its_pair(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, height=2400)
    table = watched_page.get_by_test_id("stDataFrame").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    watched_page.mouse.click(box["x"] + 18, box["y"] + 54)
    settled(watched_page)
    assert "cell=" in watched_page.url and "zoom=" in watched_page.url


def test_a_long_pass_waits_to_be_asked_for_shows_itself_and_can_be_stopped(
    watched_page: Page, server: Server
) -> None:
    open_page(watched_page, server, LONG)
    main = watched_page.get_by_test_id("stMain")
    assert watched_page.get_by_test_id("stPlotlyChart").count() == 0
    main.get_by_role("button", name="Compute").click()
    stop = main.get_by_role("button", name="Stop")
    expect(main.get_by_test_id("stProgress")).to_be_visible()
    expect(watched_page.get_by_role("button", name="Stop")).to_have_count(1)  # not Streamlit's too
    expect(main.get_by_role("button", name="Compute")).to_have_count(0)
    stop.click()
    settled(watched_page)
    expect(main.get_by_role("button", name="Compute")).to_be_visible()


@on_a_phone_and_a_desk
def test_the_page_fits_and_is_accessible(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, "find=block&zoom=0-200.100-300&cell=20-130", 4000)
    assert overflow(watched_page) == 0
    assert serious_violations(watched_page) == []
