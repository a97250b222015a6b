"""Every page opens by its own link in a real Chromium, in both themes, wide and narrow."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from scripts.browser import Server, address_of, page_paths, settled
from tests.browser.checks import Watch, is_base_probe, overflow, serious_violations, tracebacks

PAGES = page_paths()
WIDTHS = {"wide": 1280, "narrow": 390}
LOOKS = [
    pytest.param(
        {"color_scheme": theme, "viewport": {"width": width, "height": 844}}, id=f"{theme}-{name}"
    )
    for theme in ("light", "dark")
    for name, width in WIDTHS.items()
]

each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


def check(page: Page, server: Server) -> None:
    """The page that is open shows its title, no error, and shuts nobody out."""
    log_before = len(server.log)
    settled(page)
    page.get_by_role("heading", level=1).first.wait_for()
    assert page.get_by_test_id("stException").count() == 0
    assert not tracebacks(server.log[log_before:])
    assert not (found := serious_violations(page)), "\n".join(found)
    assert overflow(page) <= 0


@each_page
@pytest.mark.parametrize("watched_page", LOOKS, indirect=True)
def test_a_page_opens_by_its_link(path: Path, watched_page: Page, server: Server) -> None:
    watched_page.goto(f"{server.url}/{address_of(path)}")
    check(watched_page, server)


@each_page
def test_a_page_opens_on_a_server_that_has_shown_no_other(
    path: Path, cold_server: Server, watched_page: Page
) -> None:
    watched_page.goto(f"{cold_server.url}/{address_of(path)}")
    check(watched_page, cold_server)


def test_the_watch_sees_what_goes_wrong(watched_page: Page, server: Server) -> None:
    watch = Watch()
    page = watch.on(watched_page.context.browser.new_page())  # type: ignore[union-attr]
    page.route("**/outside", lambda route: route.fulfill(status=500))
    page.goto("about:blank")
    page.evaluate("console.error('spoken')")
    page.evaluate("setTimeout(() => { throw new Error('thrown') })")
    page.evaluate("fetch('http://example.invalid/outside', {mode: 'no-cors'}).catch(() => 0)")
    page.set_content("<p style='color: #999; background: #aaa'>faint</p>")
    assert serious_violations(page)
    page.close()
    said = "\n".join(watch.faults)
    for fault in ("console error: spoken", "thrown", "leaves this machine", "answer 500"):
        assert fault in said


def test_only_streamlits_own_question_is_excused() -> None:
    assert is_base_probe("http://127.0.0.1:8501/heads/_stcore/health")
    for url in (
        "http://127.0.0.1:8501/_stcore/health",
        "http://127.0.0.1:8501/heads/_stcore/stream",
        "http://127.0.0.1:8501/heads/data.json",
        "http://example.invalid/heads/_stcore/health",
    ):
        assert not is_base_probe(url)
