"""The pages Models and Images in a browser: links, memory, clicks on patches, phones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from scripts.browser import Server, settled
from tests.browser.checks import on_a_phone, overflow, serious_violations, serve_models
from tests.browser.plots import click_cell
from tests.page_models import KINDS, byte_tokenizer
from tests.small_models import SMALL_VIT, small_model


@pytest.fixture(scope="module")
def with_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that lists T5 and a model of images."""
    folder: Path = tmp_path_factory.mktemp("models")
    small_model(*KINDS["two-stacks"]).save_pretrained(folder / "two-stacks")
    byte_tokenizer().save_pretrained(folder / "two-stacks")
    small_model("vit", SMALL_VIT).save_pretrained(folder / "patches")
    with serve_models(folder) as running:
        yield running


def visit(page: Page, url: str) -> Page:
    page.goto(url)
    return settled(page)


def test_a_model_is_opened_in_other_pages_and_its_memory_freed(
    watched_page: Page, with_models: Server
) -> None:
    page = visit(watched_page, f"{with_models.url}/models?model=local:two-stacks")
    expect(page.get_by_text("Decoder to encoder (cross):", exact=False).first).to_be_visible()
    page.get_by_role("button", name="Free the memory").click()
    expect(page.get_by_text("No model is in memory.")).to_be_visible()
    page.get_by_role("button", name="Load the model again").click()
    expect(page.get_by_text("229 kB", exact=False).first).to_be_visible()
    main = page.get_by_test_id("stMain")
    main.get_by_role("link", name="All heads").click()
    expect(page.get_by_role("heading", name="All heads", level=1)).to_be_visible()
    settled(page)
    assert "model=local%3Atwo-stacks" in page.url or "model=local:two-stacks" in page.url


@pytest.mark.parametrize(
    "watched_page", [{"viewport": {"width": 1440, "height": 1100}}], indirect=True
)
def test_a_click_on_a_patch_makes_it_the_query(watched_page: Page, with_models: Server) -> None:
    page = visit(watched_page, f"{with_models.url}/vision?layer=1&head=2")
    expect(page.get_by_text("row 3, column 3", exact=True).first).to_be_visible()
    click_cell(page, "picture", 0, 3)
    expect(page.locator("p strong", has_text="row 1, column 4")).to_be_visible()
    settled(page)
    assert re.search(r"patch=4\b", page.url) and "head=2" in page.url
    assert not serious_violations(page)


@on_a_phone
@pytest.mark.parametrize("address", ["models?model=local:two-stacks", "vision"])
def test_on_a_phone_nothing_runs_over_the_edge(
    address: str, watched_page: Page, with_models: Server
) -> None:
    page = visit(watched_page, f"{with_models.url}/{address}")
    assert overflow(page) <= 0
    assert not serious_violations(page)
