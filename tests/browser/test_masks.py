"""The Masks page in a browser: painting by mouse, and four pictures that fit."""

from __future__ import annotations

from functools import partial

import pytest
from playwright.sync_api import Page, expect

from scripts.browser import Server, settled
from tests.browser.plots import box_of, tooltip

TOKENS = 6  # of the page's own text
PICTURES = ("mask_map", "scores_map", "masked_map", "weights_map")


def opened(page: Page, server: Server, query: str) -> Page:
    page.goto(f"{server.url}/masks?{query}")
    return settled(page, quiet=1.0)  # the page may be drawn anew for its width


def middle(page: Page, key: str, row: int, column: int) -> tuple[float, float]:
    """Where the middle of a picture's cell is in the window, once it is scrolled into it."""
    cells = page.locator(f".st-key-{key} svg image").first
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    assert box is not None
    share = (column + 0.5) / TOKENS, (row + 0.5) / TOKENS
    return box["x"] + share[0] * box["width"], box["y"] + share[1] * box["height"]


def click(page: Page, row: int, column: int) -> None:
    """A real click in the middle of a cell of the mask."""
    page.mouse.click(*middle(page, "mask_map", row, column))
    settled(page)


def test_a_click_paints_a_cell_and_a_second_click_takes_it_back(
    watched_page: Page, server: Server
) -> None:
    page = opened(watched_page, server, "mask=custom")
    expect(page.get_by_text("36 of 36 cells may be used")).to_be_visible()
    click(page, 1, 4)
    expect(page.get_by_text("35 of 36 cells may be used")).to_be_visible()
    assert "paint=6-" in page.url
    click(page, 2, 5)
    expect(page.get_by_text("34 of 36 cells may be used")).to_be_visible()
    shared = page.url
    click(page, 1, 4)  # now a forbidden cell
    expect(page.get_by_text("35 of 36 cells may be used")).to_be_visible()
    page.goto(shared)  # the link of before shows the mask of before
    settled(page)
    expect(page.get_by_text("34 of 36 cells may be used")).to_be_visible()


def test_clicks_that_follow_one_another_quickly_all_count(
    watched_page: Page, server: Server
) -> None:
    page = opened(watched_page, server, "mask=custom")
    for place in [middle(page, "mask_map", 3, column) for column in range(TOKENS)]:
        page.mouse.click(*place)
        page.wait_for_timeout(100)
    settled(page)
    expect(page.get_by_text("30 of 36 cells may be used")).to_be_visible()
    assert "paint=6-ffffc0fff" in page.url  # the fourth row of six


def test_a_click_on_a_rule_that_is_not_painted_says_how_to_paint(
    watched_page: Page, server: Server
) -> None:
    page = opened(watched_page, server, "")
    click(page, 0, 5)
    expect(page.get_by_text("to paint cells")).to_be_visible()
    expect(page.get_by_text("21 of 36 cells may be used")).to_be_visible()


def test_a_cell_is_painted_by_keyboard_alone(watched_page: Page, server: Server) -> None:
    page = opened(watched_page, server, "mask=custom")
    page.get_by_role("combobox", name="Key (column)").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    settled(page)
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Forbid this cell").focus()
    page.keyboard.press("Enter")
    settled(page)
    expect(page.get_by_text("35 of 36 cells may be used")).to_be_visible()
    expect(page.get_by_role("button", name="Allow this cell")).to_be_visible()


def test_a_cell_under_the_pointer_says_its_tokens_and_its_number(
    watched_page: Page, server: Server
) -> None:
    page = opened(watched_page, server, "text=<b>x</b> $y$ z a b c")
    for key, row, column, lines in (
        ("mask_map", 0, 1, ["Query 0: <b>x</b>", "Key 1: $y$", "forbidden by the mask"]),
        ("masked_map", 0, 1, ["Query 0: <b>x</b>", "Key 1: $y$", "no value: forbidden"]),
        ("weights_map", 0, 0, ["Query 0: <b>x</b>", "Key 0: <b>x</b>", "weight 1.0000"]),
    ):
        aim = partial(middle, page, key, row, column)
        tip = page.locator(f".st-key-{key} .still-tip")
        assert tooltip(page, aim, tip).split("\n") == lines
    page.mouse.move(0, 0)
    expect(page.locator(".still-tip:visible")).to_have_count(0)


def test_the_pictures_are_named_and_what_a_query_does_not_change_stays(
    watched_page: Page, server: Server
) -> None:
    page = opened(watched_page, server, "")
    alt = "Mask: causal. 21 of 36 cells may be used; the rest is forbidden."
    expect(page.get_by_role("img", name=alt)).to_be_visible()
    page.evaluate("() => document.querySelectorAll('.still svg').forEach(svg => svg.mark = 1)")
    page.get_by_role("radio", name="A row without a key").click()
    expect(page.get_by_text("Now forbid every key")).to_be_visible()
    settled(page)
    marks = "() => [...document.querySelectorAll('.still svg')].map(svg => svg.mark)"
    assert page.evaluate(marks) == [1, 1, 1, 1]
    assert "demo=row" in page.url


@pytest.mark.parametrize(("width", "across"), [(1440, 4), (1280, 4), (1000, 2), (390, 1)])
def test_the_four_pictures_stand_side_by_side_where_there_is_room(
    width: int, across: int, watched_page: Page, server: Server
) -> None:
    watched_page.set_viewport_size({"width": width, "height": 900})
    page = opened(watched_page, server, "")
    tops = []
    for name in PICTURES:
        box = box_of(page, f".st-key-{name} .still svg")
        assert box["x"] + box["width"] <= width
        tops.append(round(box["y"]))
    assert max(tops.count(top) for top in tops) == across
