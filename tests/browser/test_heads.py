"""The Heads page by hand: clicks, keys, the address, going back, and two readers at once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from explorer.ui.address import LONGEST
from scripts.browser import Server, settled
from tests.browser.checks import Watch
from tests.browser.plots import area, box_of, click_cell

WIDE = pytest.mark.parametrize(
    "watched_page", [{"viewport": {"width": 1440, "height": 1000}}], indirect=True
)
pytestmark = WIDE


@pytest.fixture
def heads(watched_page: Page, with_models: Server) -> Page:
    """The Heads page as it opens first."""
    return visit(watched_page, f"{with_models.url}/heads")


def visit(page: Page, url: str) -> Page:
    page.goto(url)
    return settled(page)


def text_field(page: Page) -> Locator:
    return page.get_by_label("Text", exact=True)


def edit(page: Page, text: str) -> None:
    text_field(page).fill(text)
    text_field(page).press("Control+Enter")
    if len(text) < LONGEST:  # the page has run when the text stands in the address
        query = "text => new URL(location).searchParams.get('text') === text"
        page.wait_for_function(query, arg=text)
    settled(page)


def outlined(page: Page, key: str, rows: int, columns: int) -> tuple[float, float]:
    """Row and column of the middle of the outline, in cells."""
    box = box_of(page, f".st-key-{key} .cells-outline > div")
    inner = area(page, key)
    row = (box["y"] + box["height"] / 2 - inner["y"]) / inner["height"] * rows - 0.5
    column = (box["x"] + box["width"] / 2 - inner["x"]) / inner["width"] * columns - 0.5
    return round(row, 1), round(column, 1)


def map_values(page: Page) -> list[list[float]]:
    """The numbers that the large map draws."""
    found: list[list[float]] = page.evaluate(
        """() => {
          const plot = document.querySelector('.st-key-one_head .js-plotly-plot');
          return Array.from(plot._fullData[0].z, (row) => Array.from(row));
        }"""
    )
    return found


def heading(page: Page, layer: int, head: int) -> Locator:
    return page.get_by_role("heading", name=f"Layer {layer}, head {head}", exact=True)


def query(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Query")


def token_count(page: Page, count: int) -> Locator:
    return page.get_by_text(re.compile(rf"^{count} tokens? of at most"))


# Choosing


def test_a_click_on_a_head_selects_it_and_its_link_shows_the_same_elsewhere(
    heads: Page, chromium: Browser
) -> None:
    edit(heads, "A link that is opened elsewhere")
    click_cell(heads, "all_heads", 3, 7)
    expect(heading(heads, 3, 7)).to_be_visible()
    settled(heads)
    assert outlined(heads, "all_heads", 6, 12) == (3, 7)
    heads.get_by_text("Scaled scores", exact=True).click()
    heads.get_by_text("Hide special tokens").click()
    settled(heads)
    click_cell(heads, "one_head", 2, 0)
    expect(query(heads)).to_have_value("3  that")
    settled(heads)
    for part in ("layer=3", "head=7", "query=3", "show=scores", "hide_special=yes", "text=A+link"):
        assert part in heads.url
    context = chromium.new_context(viewport={"width": 1440, "height": 1000})
    other = visit(context.new_page(), heads.url)
    expect(heading(other, 3, 7)).to_be_visible()
    expect(query(other)).to_have_value("3  that")
    assert other.url == heads.url
    assert text_field(other).input_value() == "A link that is opened elsewhere"
    assert map_values(other) == map_values(heads)
    context.close()


def test_a_click_on_home_opens_the_head(watched_page: Page, with_models: Server) -> None:
    visit(watched_page, with_models.url)
    field = watched_page.get_by_label("Your sentence")
    field.fill("From home to the heads")
    field.press("Enter")
    settled(watched_page)
    click_cell(watched_page, "all_heads", 2, 4)
    expect(heading(watched_page, 2, 4)).to_be_visible()
    settled(watched_page)
    assert re.search(r"/heads\?.*layer=2.*head=4", watched_page.url)
    assert text_field(watched_page).input_value() == "From home to the heads"


def test_a_walk_to_another_page_and_back_loses_nothing(heads: Page) -> None:
    edit(heads, "Nothing is lost on the way")
    click_cell(heads, "all_heads", 4, 5)
    expect(heading(heads, 4, 5)).to_be_visible()
    settled(heads)
    heads.get_by_role("link", name="Home").click()
    heads.get_by_label("Your sentence").wait_for()
    settled(heads)  # Home has run to its end, and stays
    expect(heads.get_by_label("Your sentence")).to_have_value("Nothing is lost on the way")
    heads.get_by_test_id("stSidebar").get_by_role("link", name="Heads", exact=True).click()
    expect(heading(heads, 4, 5)).to_be_visible()
    settled(heads)
    assert text_field(heads).input_value() == "Nothing is lost on the way"
    assert "layer=4" in heads.url and "head=5" in heads.url


def test_a_link_clicked_straight_from_the_text_takes_the_text_along(heads: Page) -> None:
    text_field(heads).fill("Typed and left")
    heads.get_by_role("link", name="Home").click()
    heads.get_by_label("Your sentence").wait_for()
    settled(heads)
    expect(heads.get_by_label("Your sentence")).to_have_value("Typed and left")


def test_the_outline_follows_the_query(heads: Page) -> None:
    click_cell(heads, "one_head", 9, 3)
    expect(query(heads)).to_have_value("9  because")
    settled(heads)
    assert outlined(heads, "one_head", 16, 16) == (9, 7.5)
    edit(heads, "The animal didn't cross the street because of a car.")
    expect(query(heads)).to_have_value("9  because")


def test_layer_head_and_query_are_chosen_by_keys_alone(heads: Page) -> None:
    for name, steps in (("Layer", 1), ("Head", 2), ("Query", 1)):
        heads.get_by_role("combobox", name=name).focus()
        settled(heads)  # the page scrolls to what has the focus, and a list closes on scrolling
        heads.keyboard.press("ArrowDown")  # opens the list
        heads.get_by_role("listbox").wait_for()
        for _ in range(steps):
            heads.keyboard.press("ArrowDown")
        heads.keyboard.press("Enter")
        heads.wait_for_url(re.compile(name.lower()))
        settled(heads)
    expect(heading(heads, 2, 3)).to_be_visible()
    assert "layer=2" in heads.url and "head=3" in heads.url and "query=3" in heads.url


def test_going_back_shows_the_view_before(heads: Page) -> None:
    click_cell(heads, "all_heads", 1, 0)
    expect(heading(heads, 1, 0)).to_be_visible()
    settled(heads)
    click_cell(heads, "all_heads", 5, 0)
    expect(heading(heads, 5, 0)).to_be_visible()
    settled(heads)
    heads.wait_for_timeout(2100)  # an address that changes at once counts as a late one
    heads.go_back()
    expect(heading(heads, 1, 0)).to_be_visible()
    heads.go_back()
    expect(heading(heads, 0, 0)).to_be_visible()
    settled(heads)
    heads.go_forward()
    expect(heading(heads, 1, 0)).to_be_visible()


@pytest.mark.parametrize("width", [390, 1920])
def test_a_window_of_another_width_gets_fitting_pictures_and_the_same_choices(
    watched_page: Page, with_models: Server, width: int
) -> None:
    watched_page.set_viewport_size({"width": width, "height": 1000})
    page = visit(watched_page, f"{with_models.url}/heads?layer=2&head=3&query=4")
    assert text_field(page).input_value().startswith("The animal")
    expect(query(page)).to_have_value("4  '")
    expect(heading(page, 2, 3)).to_be_visible()
    inner = area(page, "one_head")
    assert inner["width"] == pytest.approx(inner["height"], rel=0.05)  # cells are square


# Texts


def test_tokens_are_counted_while_one_types(heads: Page) -> None:
    expect(token_count(heads, 16)).to_be_visible()
    field = text_field(heads)
    field.fill("one")
    expect(token_count(heads, 3)).to_be_visible()
    expect(heads.get_by_text("not applied yet")).to_be_visible()
    field.press_sequentially(" two three")
    expect(token_count(heads, 5)).to_be_visible()
    field.press("Control+Enter")
    settled(heads)
    expect(token_count(heads, 5)).to_be_visible()
    expect(heads.get_by_text("not applied yet")).to_have_count(0)
    field.fill("word " * 600)
    expect(heads.get_by_text("too long", exact=True)).to_be_visible()
    assert len(map_values(heads)) == 5  # nothing has run yet


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "</script><b>x</b> &lt;",
        "$119 … $30 #000001",
        "the cat the :red[x]",
    ],
)
def test_odd_text_is_drawn_as_typed_and_does_nothing(heads: Page, text: str) -> None:
    heads.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    edit(heads, text)
    first, *ticks, last = heads.locator(".st-key-one_head .ytick text").all_text_contents()
    assert (first, last) == ("[CLS]", "[SEP]")
    assert "".join(ticks) == text.replace(" ", "")


def test_a_text_too_long_is_cut_when_asked(heads: Page) -> None:
    edit(heads, "word " * 600)
    expect(heads.get_by_text("the last 90 be cut off")).to_be_visible()
    heads.get_by_text("Cut the text to fit").click()
    expect(heads.get_by_text("90 tokens at the end were cut off")).to_be_visible()
    settled(heads)


def test_quick_choices_while_the_page_runs_all_count(heads: Page) -> None:
    click_cell(heads, "all_heads", 1, 2)
    text_field(heads).fill("Typed at once")
    text_field(heads).press("Control+Enter")
    click_cell(heads, "all_heads", 4, 9)
    expect(heading(heads, 4, 9)).to_be_visible()
    settled(heads)
    assert text_field(heads).input_value() == "Typed at once"
    assert len(map_values(heads)) == 5
    for part in ("layer=4", "head=9", "text=Typed+at+once"):
        assert part in heads.url


def test_two_readers_see_their_own_texts(heads: Page, chromium: Browser) -> None:
    watch = Watch()
    context = chromium.new_context(viewport={"width": 1440, "height": 1000})
    other = visit(watch.on(context.new_page()), heads.url)
    text_field(heads).fill("mine")
    text_field(other).fill("yours and theirs")
    text_field(heads).press("Control+Enter")
    text_field(other).press("Control+Enter")
    settled(heads)
    settled(other)
    assert (len(map_values(heads)), len(map_values(other))) == (3, 5)
    context.close()
    assert not watch.faults


# Models


@pytest.mark.parametrize("typed", ["nobody/nothing-here", "no model at all!"])
def test_a_model_that_is_not_there_is_told_and_one_can_go_back(heads: Page, typed: str) -> None:
    model = heads.get_by_role("combobox", name="Model")
    model.fill(typed)
    model.press("Enter")
    message = heads.get_by_text(re.compile("is not on this computer|is no model id"))
    expect(message).to_be_visible()
    model.click()
    heads.get_by_role("option", name="MiniLM L6").click()
    expect(message).to_have_count(0)
    settled(heads)
    expect(heading(heads, 0, 0)).to_be_visible()


@pytest.mark.parametrize(
    ("name", "key"),
    [("causal", "forbidden by the mask"), ("no-numbers", "not a finite number")],
)
def test_cells_without_a_weight_are_told_apart(
    watched_page: Page, with_models: Server, name: str, key: str
) -> None:
    url = f"{with_models.url}/heads?model=local%3A{name}&text=short&layer=1"
    visit(watched_page, url)
    legend = watched_page.locator(".st-key-one_head .legend")
    expect(legend).to_contain_text(key)
    expect(watched_page.locator(".st-key-all_heads .legend")).to_contain_text(key)


# Reading


def test_the_comparison_and_the_table_open_on_demand(heads: Page) -> None:
    expect(heads.get_by_test_id("stDataFrame")).to_have_count(0)
    heads.get_by_text("This head as a table").click()
    expect(heads.get_by_test_id("stDataFrame")).to_be_visible()
    settled(heads)
    edit(heads, "Compare these words")
    heads.get_by_role("button", name="Compare with the model's own attention").click()
    expect(heads.get_by_text("Largest difference from the model's own")).to_be_visible()
    settled(heads)
