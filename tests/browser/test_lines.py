"""The Lines page in a browser: hover, click and keys give a token's lines; a link keeps them."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from explorer.ui.address import ON_ITS_WAY
from scripts.browser import Server, settled
from tests.browser.checks import serious_violations

# How many of a canvas's pixels are not empty.
INK = """(name) => {
  const all = [...document.querySelectorAll("*")];
  const host = all.find((each) => each.shadowRoot?.querySelector(".lines"));
  const canvas = host.shadowRoot.querySelector(`canvas.${name}`);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 3; at < data.length; at += 4) count += data[at] > 0;
  return count;
}"""


def open_page(page: Page, server: Server, query: str = "") -> None:
    page.set_viewport_size({"width": 1280, "height": 1400})
    page.goto(f"{server.url}/lines?{query}")
    settled(page)
    expect(page.locator(".stage[data-drawn=yes]")).to_be_visible()


def test_pointing_at_a_query_shows_its_lines_alone_and_says_them(
    watched_page: Page, server: Server
) -> None:
    page = watched_page
    open_page(page, server, "layer=3")
    assert page.evaluate(INK, "base") > 500
    assert page.evaluate(INK, "over") == 0
    page.locator(".queries li").nth(10).hover()
    expect(page.locator(".said")).to_contain_text("Query 10, it, looks most at")
    assert page.evaluate(INK, "over") > 50
    expect(page.locator("canvas.base")).to_have_class("base dim")
    page.mouse.move(5, 5)
    expect(page.locator(".said")).to_contain_text("Point at a token")
    assert page.evaluate(INK, "over") == 0


def test_a_click_pins_a_token_and_the_link_reproduces_it(
    watched_page: Page, server: Server
) -> None:
    page = watched_page
    open_page(page, server, "layer=3")
    page.locator(".keys li").nth(2).click()
    page.wait_for_url("**token=k2**")
    settled(page)
    expect(page.get_by_text("The strongest lines of key 2, animal")).to_be_visible()
    page.mouse.move(5, 5)
    expect(page.locator(".said")).to_contain_text("Key 2, animal, is looked at most by")
    open_page(page, server, page.url.split("?")[1])
    expect(page.locator(".keys li").nth(2)).to_have_attribute("aria-selected", "true")


def test_a_head_that_is_switched_off_takes_its_lines_with_it(
    watched_page: Page, server: Server
) -> None:
    page = watched_page
    open_page(page, server)
    full = page.evaluate(INK, "base")
    page.get_by_role("button", name="No head").click()
    page.wait_for_url("**heads=none**")
    assert page.evaluate(INK, "base") == 0
    page.get_by_role("button", name="H2", exact=True).click()
    page.wait_for_url("**heads=2**")
    expect(page.get_by_role("button", name="H2", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    assert 0 < page.evaluate(INK, "base") < full
    settled(page)
    page.wait_for_timeout(1000 * ON_ITS_WAY)
    page.go_back()
    page.wait_for_url("**heads=none**")
    expect(page.get_by_role("button", name="H2", exact=True)).to_have_attribute(
        "aria-pressed", "false"
    )


def test_all_of_it_can_be_done_with_the_keyboard(watched_page: Page, server: Server) -> None:
    page = watched_page
    open_page(page, server, "layer=3")
    page.get_by_role("button", name="No head").focus()
    page.keyboard.press("Tab")  # the slider
    page.keyboard.press("Tab")  # the queries
    expect(page.locator(".queries")).to_be_focused()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "End", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**token=k15**")
    expect(page.locator(".said")).to_contain_text("Key 15, [SEP]")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "token" not in url)


def test_a_heavier_threshold_leaves_fewer_lines(watched_page: Page, server: Server) -> None:
    page = watched_page
    open_page(page, server)
    before = page.evaluate(INK, "base")
    page.locator(".least").focus()
    page.keyboard.press("PageUp")
    page.keyboard.press("PageUp")
    page.wait_for_url("**least=**")
    assert page.evaluate(INK, "base") < before


def test_it_is_accessible_with_a_token_pinned(watched_page: Page, server: Server) -> None:
    open_page(watched_page, server, "token=q3&layer=2")
    assert serious_violations(watched_page) == []
