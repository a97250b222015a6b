"""One server for the session, one Chromium a module, one watched page a test."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from scripts.browser import PATIENCE, ROOT, NoChromiumError, Server, launch, serve
from tests.browser.checks import Watch, serve_models
from tests.page_models import save_page_models

PICTURES = ROOT / "test-results"
LOG_END = 6000  # characters


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A running app; opened before, so not cold."""
    with serve() as running:
        yield running


@pytest.fixture
def cold_server() -> Iterator[Server]:
    """An app that no one has opened yet. Ask for it before the page, so that it outlives it."""
    with serve() as running:
        yield running


@pytest.fixture(scope="module")
def with_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that lists the small models."""
    with serve_models(save_page_models(tmp_path_factory.mktemp("models"))) as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A real Chromium; without one the tests are skipped with the reason.

    Ended with the module: while Playwright runs, other tests cannot use asyncio.
    """
    with sync_playwright() as playwright:
        try:
            browser = launch(playwright)
        except NoChromiumError as error:
            pytest.skip(str(error))
        expect.set_options(timeout=1000 * PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def watched_page(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """An empty page that fails its test if anything goes wrong in it.

    Wrong are console and page errors, failed answers and requests that leave this machine.
    Indirect parameters are those of `Browser.new_context`, such as `color_scheme`.
    """
    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
    options |= getattr(request, "param", {})
    context = chromium.new_context(**options)
    context.set_default_timeout(1000 * PATIENCE)
    watch = Watch()
    yield watch.on(context.new_page())
    context.close()
    assert not watch.faults, "\n".join(watch.faults)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows the server's log and leaves a picture of the page."""
    report = yield
    if report.failed and report.when == "call":
        values: dict[str, Any] = getattr(item, "funcargs", {})
        for value in values.values():
            if isinstance(value, Server):
                report.sections.append(("streamlit", value.log[-LOG_END:]))
            if isinstance(value, Page) and not value.is_closed():
                PICTURES.mkdir(exist_ok=True)
                picture = PICTURES / (re.sub(r"[^\w.-]+", "_", item.name) + ".png")
                value.screenshot(path=picture)
                report.sections.append(("picture", str(picture.relative_to(ROOT))))
    return report
