"""The page What it costs in a browser: it measures, says how far it is, and can be stopped."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from scripts.browser import Server, settled


def test_a_long_measurement_shows_its_progress_and_stops_when_asked(
    watched_page: Page, server: Server
) -> None:
    page = watched_page
    page.goto(f"{server.url}/what_it_costs?longest=16384&cost_heads=16")
    progress = page.get_by_test_id("stProgress")
    expect(progress).to_contain_text("tokens")  # the first is measured
    # Streamlit has a button of that name in its own bar while a page runs.
    stop = page.get_by_test_id("stMain").get_by_role("button", name="Stop")
    stop.click()
    expect(progress).to_be_hidden()
    settled(page)
    expect(stop).to_be_hidden()
    expect(page.get_by_role("button", name="Measure again")).to_be_visible()
    # What was measured by then is shown.
    expect(page.get_by_role("heading", name="Time", exact=True)).to_be_visible()
