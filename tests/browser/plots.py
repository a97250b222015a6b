"""Charts in a browser: a real click on a cell, and what a chart shows."""

from __future__ import annotations

from playwright.sync_api import Locator, Page

_CELL = """(chart, [row, column]) => {
  chart.scrollIntoView({ block: "center" });
  const plot = chart.querySelector(".js-plotly-plot");
  const box = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout;
  return [box.x + xaxis._offset + xaxis.c2p(column), box.y + yaxis._offset + yaxis.c2p(row)];
}"""


def plot(page: Page, key: str) -> Locator:
    """The chart with this key."""
    return page.locator(f".st-key-{key}")


def over(page: Page, key: str, row: int, column: int) -> tuple[float, float]:
    """Where the middle of a cell is in the window, once the chart is scrolled into it."""
    x, y = plot(page, key).evaluate(_CELL, [row, column])
    return x, y


def tick_texts(page: Page, key: str, axis: str) -> list[str]:
    """The labels that stand along the axis "x" or "y" of a chart."""
    return plot(page, key).locator(f".{axis}tick text").all_text_contents()
