"""What the browser shows is what the page computes with; and Back goes one step."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from scripts.browser import Server, settled


def typed(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Text", exact=True)
    box.fill(text)
    box.press("Enter")
    settled(page)


def chosen(page: Page, label: str) -> str:
    """The words that a select box shows."""
    boxes = page.get_by_test_id("stSelectbox").filter(has=page.get_by_text(label, exact=True))
    return boxes.locator("input").input_value()


def test_controls_come_back_as_they_were_after_a_text_that_can_not_be_read(
    watched_page: Page, server: Server
) -> None:
    page = watched_page
    page.goto(f"{server.url}/masks?mask=window&query=3")
    settled(page)
    before = [chosen(page, label) for label in ("Mask", "Query to follow")]
    assert before == ["Sliding window", "3  on"]
    typed(page, "")
    expect(page.get_by_test_id("stSelectbox")).to_have_count(0)
    typed(page, "the cat sat on the mat")
    assert [chosen(page, label) for label in ("Mask", "Query to follow")] == before


def test_a_chosen_token_shows_the_words_of_the_new_text(watched_page: Page, server: Server) -> None:
    page = watched_page
    page.goto(f"{server.url}/step_by_step")
    settled(page)
    assert chosen(page, "Query (row)") == "1  cat"
    typed(page, "zero one two three")
    assert chosen(page, "Query (row)") == "1  one"
    assert "query" not in page.url


def test_a_pasted_text_longer_than_home_draws_is_taken(watched_page: Page, server: Server) -> None:
    watched_page.goto(server.url)
    settled(watched_page)
    box = watched_page.get_by_role("textbox", name="Your sentence")
    box.fill("word " * 200)
    box.press("Enter")
    expect(watched_page.get_by_text("the first 600 of your 1,000 characters")).to_be_visible()


def test_back_leaves_a_page_that_has_just_opened_and_undoes_one_choice(
    watched_page: Page, server: Server
) -> None:
    page = watched_page

    def steps() -> int:
        return int(page.evaluate("history.length"))

    page.goto(f"{server.url}?text=a+dog+barks")
    settled(page)
    at_home = steps()
    page.get_by_test_id("stSidebar").get_by_role("link", name="Masks", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
    settled(page, quiet=1.0)
    assert page.url.endswith("masks?text=a+dog+barks")  # written by the page: no step
    assert steps() == at_home + 1
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Attention Explorer")
    page.goto(f"{server.url}/masks")
    settled(page, quiet=1.0)
    before, mask = steps(), chosen(page, "Mask")
    page.get_by_role("combobox", name="Mask").first.click()
    page.get_by_role("option", name="Sliding window").click()
    settled(page, quiet=2.5)  # an address that changes at once counts as a late one
    assert "mask=window" in page.url and steps() == before + 1
    page.go_back()
    box = page.get_by_test_id("stSelectbox").filter(has=page.get_by_text("Mask", exact=True))
    expect(box.locator("input")).to_have_value(mask)


def test_no_key_is_lost_however_quickly_a_slider_moves(watched_page: Page, server: Server) -> None:
    watched_page.goto(f"{server.url}/scaling")
    settled(watched_page, quiet=2.5)
    slider = watched_page.get_by_role("slider").first
    expect(slider).to_have_attribute("aria-valuetext", "64")
    slider.focus()
    for _ in range(6):  # 96, 128, 192, 256, 384, 512
        watched_page.keyboard.press("ArrowRight")
        watched_page.wait_for_timeout(60)
    settled(watched_page, quiet=1.0)
    expect(slider).to_have_attribute("aria-valuetext", "512")
    assert "scaling_d_k=512" in watched_page.url
