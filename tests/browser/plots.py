"""Charts in a browser: a real click on a cell or a marker, and what a chart shows.

A run replaces charts: for a moment there is none, an empty one, or the old beside the new. What
is read here waits for the one painted chart and is read in one step.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import FloatRect, Locator, Page

from scripts.browser import PATIENCE

TRIES = 5

_AIM = """([key, row, column, marker]) => {
  const found = document.querySelectorAll(`.st-key-${key} .js-plotly-plot`);
  const [plot] = found, { xaxis, yaxis } = plot?._fullLayout ?? {};
  if (found.length !== 1 || !xaxis || !yaxis) return false;
  let place = [column, row];
  if (marker) {
    const same = ([first, second]) => first === row && second === column;
    const named = (trace) => (trace.customdata ?? []).findIndex(same);
    const trace = plot._fullData.find((each) => named(each) >= 0);
    if (!trace) return false;
    place = [trace.x[named(trace)], trace.y[named(trace)]];
  }
  const box = plot.getBoundingClientRect();
  const x = box.x + xaxis._offset + xaxis.d2p(place[0]);
  const y = box.y + yaxis._offset + yaxis.d2p(place[1]);
  const before = window.__aim ?? {};
  window.__aim = { plot, x, y };
  if (!plot.contains(document.elementFromPoint(x, y))) {
    plot.scrollIntoView({ block: "center" });
    return false;
  }
  // The same as a frame ago: it stands still, and what listens to it has had its turn.
  if (before.plot !== plot || before.x !== x || before.y !== y) return false;
  if (!window.__watching) {
    window.__watching = true;
    const on = (type, note) => addEventListener(type, note, true);
    on("mousedown", (event) => { __aim.pressed = __aim.plot.contains(event.target); });
    on("mouseup", () => { __aim.reached = __aim.pressed && __aim.plot.isConnected; });
  }
  return [x, y];
}"""
_REACHED = "() => window.__aim.reached === true"
_WORDS = """(all) => all
  .filter((each) => each.checkVisibility())
  .map((each) => each.innerText ?? each.textContent)
  .join("\\n")
"""
_BOX = """(selector) => {
  const found = document.querySelectorAll(selector);
  const { x, y, width, height } = found[0]?.getBoundingClientRect() ?? {};
  return found.length === 1 && width > 0 && height > 0 && { x, y, width, height };
}"""


def plot(page: Page, key: str) -> Locator:
    """The chart with this key."""
    return page.locator(f".st-key-{key}")


def over(
    page: Page, key: str, row: float, column: float, *, marker: bool = False
) -> tuple[float, float]:
    """Where the middle of a cell is in the window, once the chart is scrolled into it.

    With `marker` it is that of the marker whose customdata are these two numbers.
    """
    found = page.wait_for_function(_AIM, arg=[key, row, column, marker], polling="raf")
    x, y = found.json_value()
    return x, y


def click_cell(page: Page, key: str, row: float, column: float, *, marker: bool = False) -> None:
    """A real click there. Where a run took the chart away under the pointer, it is made again.

    A click that reached a chart is never repeated: to lose it is the app's fault.
    """
    for _ in range(TRIES):
        page.mouse.click(*over(page, key, row, column, marker=marker))
        if page.evaluate(_REACHED):
            return
    raise AssertionError(f"{TRIES} clicks found no chart {key}")


def tooltip(page: Page, aim: Callable[[], tuple[float, float]], tip: Locator) -> str:
    """What the pointer reads there; it points anew where a run's drawing took the words away."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        x, y = aim()
        page.mouse.move(x - 3, y)
        page.mouse.move(x, y)
        page.wait_for_timeout(200)
        found = str(tip.evaluate_all(_WORDS))
        if found.strip():
            return found
    raise AssertionError("the pointer reads nothing there")


def box_of(page: Page, selector: str) -> FloatRect:
    """The rectangle of the one element that this finds, once it is there and has a size."""
    found: FloatRect = page.wait_for_function(_BOX, arg=selector, polling="raf").json_value()
    return found


def area(page: Page, key: str) -> FloatRect:
    """The chart's inner rectangle, between its axes."""
    return box_of(page, f".st-key-{key} .nsewdrag")


def tick_texts(page: Page, key: str, axis: str) -> list[str]:
    """The labels that stand along the axis "x" or "y" of a chart."""
    return plot(page, key).locator(f".{axis}tick text").all_text_contents()
