"""The Long texts page in a real Chromium: until painted and bytes sent, down to a word pair."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from playwright.sync_api import Page, WebSocket, sync_playwright

from benchmarks.browser import ODD, WINDOW, NotThereError, first_line
from benchmarks.painted import painted
from benchmarks.report import Column, Row, Table
from benchmarks.timing import Spread
from scripts.browser import ROOT, NoChromiumError, launch, serve, settled

SAMPLES = {"methods": "17k", "running": "2k"}  # the page's samples, and about how many tokens
PATIENCE = 300  # seconds for all weights, on a busy machine
STEPS = 3  # zooms, each to a quarter of the side: 17k tokens, 4k, 1k, 273
COLUMNS = (Column("until painted", "ms", 0), Column("sent to the browser", "kB", 0))


class Step(NamedTuple):
    """One thing that a reader does."""

    action: str
    milliseconds: float
    received: int  # bytes


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    sample, rounds = ("running", 1) if quick else ("methods", 3)
    if not (ROOT / "pages" / "long_texts.py").exists():
        skipped.append("the Long texts page: pages/long_texts.py is not there")
        return []
    found: list[list[Step]] = []
    try:
        with sync_playwright() as playwright, launch(playwright) as browser, serve() as server:
            for layer in range(rounds):  # a layer that the server has not seen
                page = browser.new_page(viewport=WINDOW)
                address = f"{server.url}/long_texts?from=sample&sample={sample}&layer={layer}"
                found.append(_visit(page, address))
                page.close()
    except (*ODD, NoChromiumError, NotThereError) as error:
        skipped.append(f"the Long texts page: {first_line(error)}")
        return []
    rows = []
    for same in zip(*found, strict=True):
        figures = (
            Spread.of([step.milliseconds for step in same]),
            Spread.of([step.received / 1000 for step in same]),
        )
        rows.append(Row((same[0].action, SAMPLES[sample]), figures))
    notes = (
        f"MiniLM's own layers, 12 heads, no mask; {rounds} rounds, each with a layer that the "
        "server has not seen. From the click or the drag's first move, through the server, to the "
        "last change of a plot plus two frames; server and browser share the machine. Sent: all "
        "that the page's connection brought meanwhile.",
    )
    return [Table("The Long texts page", ("action", "tokens"), COLUMNS, rows, notes)]


def _visit(page: Page, address: str) -> list[Step]:
    """From all weights to a pair of words."""
    received = [0]

    def listen(socket: WebSocket) -> None:
        def count(frame: str | bytes) -> None:
            received[0] += len(frame)

        socket.on("framereceived", count)

    page.on("websocket", listen)

    def step(action: str, act: Callable[[], object], chart: str) -> Step:
        before = received[0]
        times = painted(page, act, timeout=PATIENCE)
        if chart not in times:
            raise NotThereError(f"{action}: {chart} is not painted")
        return Step(action, times[chart], received[0] - before)

    page.goto(address)
    settled(page, timeout=90)
    compute = page.get_by_role("button", name="Compute")
    steps = []
    if compute.count():
        steps.append(step("all weights of 12 heads", compute.click, "long_map"))
    elif page.locator(CHART).count() == 0:
        raise NotThereError("it has no map and no button for one")
    steps += [
        step(f"zoom {number}", lambda: _drag(page), "long_map") for number in range(1, STEPS + 1)
    ]
    steps.append(step("a click on a cell", lambda: _click(page), "long_map"))
    return steps


CHART = ".st-key-long_map .js-plotly-plot"
_PLACES = """
(shares) => {
  const plot = document.querySelector('.st-key-long_map .js-plotly-plot');
  plot.scrollIntoView({ block: 'center' });
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  return shares.map((share) => [
    box.left + xaxis._offset + share * xaxis._length,
    box.top + yaxis._offset + share * yaxis._length,
  ]);
}
"""


def _drag(page: Page) -> None:
    """A box from a quarter to half of both sides."""
    places = page.evaluate(_PLACES, [0.25, 0.375, 0.5])
    page.mouse.move(*places[0])
    page.mouse.down()
    for _, place in pairwise(places):
        page.mouse.move(*place)
    page.mouse.up()


def _click(page: Page) -> None:
    (place,) = page.evaluate(_PLACES, [0.4])
    page.mouse.move(*place)
    page.mouse.click(*place)
