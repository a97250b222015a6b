"""The page Training in a browser: two at once, and a closed tab ends its own work alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from scripts.browser import PATIENCE, Server, settled
from tests.browser.checks import Watch, overflow, serious_violations

LONG = "train_d_k=4&train_heads=1&train_steps=1000&train_seeds=5"  # over a minute: none ends early


def workers(server: Server) -> set[int]:
    """The training processes of this server that have work: those made ready have none yet."""
    port = server.url.rsplit(":", 1)[1]
    apps = (one for one in psutil.process_iter() if {port, "streamlit"} <= set(command(one)))
    return {
        child.pid
        for app in apps
        for child in app.children()
        if "explorer.training_worker" in command(child)
    }


def command(process: psutil.Process) -> list[str]:
    """The words it was started with; none once it has ended, as others go on being listed."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true() and time.monotonic() < end:
        time.sleep(0.2)
    assert true()


def start(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/training?{LONG}")
    settled(page)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text(re.compile(r"^[1-9]\d* % done"))).to_be_visible()


def test_two_browsers_train_at_once_and_closing_one_ends_its_work_alone(
    chromium: Browser, cold_server: Server
) -> None:
    watch = Watch()
    first, second = (chromium.new_context() for _ in range(2))
    one, other = (watch.on(context.new_page()) for context in (first, second))
    start(one, cold_server)
    his = workers(cold_server)
    start(other, cold_server)
    both = workers(cold_server)
    assert his < both and len(both) >= 4
    first.close()
    until(lambda: not (his & workers(cold_server)))
    assert both - his <= workers(cold_server)  # the other's go on
    expect(other.get_by_text(re.compile(r"\d+ % done"))).to_be_visible()
    other.get_by_role("button", name="Stop").click()
    expect(other.get_by_text("Stopped.")).to_be_visible()
    assert not workers(cold_server) & both
    second.close()
    assert not watch.faults, "\n".join(watch.faults)


@pytest.mark.parametrize(
    "watched_page",
    [{"viewport": {"width": 390, "height": 2400}, "color_scheme": "dark"}],
    indirect=True,
)
def test_a_phone_shows_a_training_to_its_end(watched_page: Page, server: Server) -> None:
    watched_page.goto(f"{server.url}/training?train_d_k=4&train_heads=1&train_steps=50")
    settled(watched_page)
    watched_page.get_by_role("button", name="Start").click()
    again = watched_page.get_by_role("button", name="Start again")
    expect(again).to_be_enabled()
    settled(watched_page)
    expect(watched_page.get_by_text("The runs in numbers")).to_be_visible()
    assert overflow(watched_page) == 0
    assert serious_violations(watched_page) == []
