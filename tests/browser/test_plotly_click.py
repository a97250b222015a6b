"""Clicks on charts in a real browser: the right cell, again and again, after every redraw."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from explorer.ui.plotly_click import Click, reported
from scripts.browser import ROOT, Server, serve

APP = """
import numpy as np
import streamlit as st
from explorer.figures.grid import heads_grid
from explorer.figures.heatmap import head_map
from explorer.ui.plotly_click import cell_clicks

n = st.radio("tokens", [8, 5, 520], horizontal=True)
state = st.session_state
state.setdefault("log", [])
at = state.log[-1][1:3] if state.log and state.log[-1][0] == "map" else None

def note(name):
    return lambda click: state.log.append((name, click.y, click.x, click.customdata))

labels = [f"t{i}" for i in range(n)]
values = np.eye(n)
head = head_map(
    values, query_labels=labels, key_labels=labels, kind="weights", theme="light", max_px=320,
    forbidden=np.triu(np.ones((n, n), bool), 1), selected=at if at and max(at) < n else None,
)
st.plotly_chart(head, key="a map", theme=None, width="content")
cell_clicks("a map", "map clicks", note("map"))
grid = heads_grid(np.ones((2, 3, n, n)), layer_numbers=[4, 9], theme="light", width_px=300)
st.plotly_chart(grid, key="grid", theme=None, width="content")
cell_clicks("grid", "grid clicks", note("grid"))
st.text(f"log {len(state.log)}: {state.log[-1] if state.log else None}")
"""

PLACE = """([key, row, column, rows, columns]) => {
  const plot = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  plot.scrollIntoView({ block: "center" });
  const size = plot._fullLayout._size, box = plot.getBoundingClientRect();
  return [box.x + size.l + (column + 0.5) / columns * size.w,
          box.y + size.t + (row + 0.5) / rows * size.h];
}"""


@pytest.fixture(scope="module")
def click_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root: Path = tmp_path_factory.mktemp("clicks")
    (root / "app.py").write_text(APP)
    (root / ".streamlit").mkdir()
    (root / ".streamlit/config.toml").write_text((ROOT / ".streamlit/config.toml").read_text())
    with serve(root, env={"PYTHONPATH": str(ROOT)}) as running:
        yield running


def click(page: Page, key: str, cell: tuple[int, int], shape: tuple[int, int]) -> None:
    page.wait_for_selector(f".st-key-{key} .js-plotly-plot .plot-container")
    x, y = page.evaluate(PLACE, [key, *cell, *shape])
    page.mouse.move(x, y)
    page.wait_for_selector(f".st-key-{key} .hoverlayer .hovertext")
    page.mouse.click(x, y)


def settled(page: Page, text: str) -> None:
    expect(page.get_by_text(text)).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_be_hidden()
    page.wait_for_timeout(300)


def test_every_click_reports_its_own_cell_also_after_a_redraw(
    watched_page: Page, click_server: Server
) -> None:
    page = watched_page
    page.goto(click_server.url)
    settled(page, "log 0: None")
    click(page, "a-map", (6, 2), (8, 8))
    settled(page, "log 1: ('map', 6, 2, None)")
    click(page, "a-map", (6, 2), (8, 8))  # the chart was redrawn with a frame; the same cell again
    settled(page, "log 2: ('map', 6, 2, None)")
    page.mouse.move(5, 5)
    click(page, "a-map", (1, 7), (8, 8))  # forbidden, still a cell
    settled(page, "log 3: ('map', 1, 7, None)")
    page.mouse.move(5, 5)
    click(page, "grid", (1, 2), (2, 3))
    settled(page, "log 4: ('grid', 1, 2, (9, 2))")
    page.get_by_text("5", exact=True).first.click()
    expect(page.locator(".st-key-a-map .ytick text")).to_have_count(5)
    click(page, "a-map", (4, 0), (5, 5))
    settled(page, "log 5: ('map', 4, 0, None)")


def test_clicks_that_follow_one_another_quickly_all_count(
    watched_page: Page, click_server: Server
) -> None:
    page = watched_page
    page.goto(click_server.url)
    settled(page, "log 0: None")
    click(page, "grid", (0, 0), (2, 3))
    for cell in ((0, 1), (0, 2), (1, 0), (1, 1), (1, 2)):
        page.wait_for_timeout(100)
        page.mouse.click(*page.evaluate(PLACE, ["grid", *cell, 2, 3]))
    settled(page, "log 6: ('grid', 1, 2, (9, 2))")


def test_a_large_map_drawn_as_a_picture_reports_cells_too(
    watched_page: Page, click_server: Server
) -> None:
    page = watched_page
    page.goto(click_server.url)
    settled(page, "log 0: None")
    page.get_by_text("520", exact=True).first.click()
    page.wait_for_selector(".st-key-a-map .im image")
    page.wait_for_timeout(500)
    click(page, "a-map", (400, 200), (520, 520))
    expect(page.get_by_text("log 1: ('map',")).to_be_visible()
    found = page.get_by_text("log 1: ('map',").inner_text().split(", ")
    assert abs(int(found[1]) - 400) <= 2 and abs(int(found[2]) - 200) <= 2  # 0.6 pixels a cell


def test_the_listener_takes_no_room(watched_page: Page, click_server: Server) -> None:
    watched_page.goto(click_server.url)
    settled(watched_page, "log 0: None")
    map_box = watched_page.locator(".st-key-a-map").bounding_box()
    grid_box = watched_page.locator(".st-key-grid").bounding_box()
    assert map_box and grid_box
    assert grid_box["y"] - (map_box["y"] + map_box["height"]) < 20  # one gap, not two


@pytest.mark.parametrize(
    ("value", "click"),
    [
        ({"x": 2, "y": 3.0, "customdata": [5, 1]}, Click(2, 3, (5, 1))),
        ({"x": 1.6, "y": 0}, Click(2, 0)),
        ({"x": "1", "y": 0}, None),
        ({"x": float("nan"), "y": 0}, None),
        ({"x": True, "y": 0}, None),
        ({"x": 1e300, "y": 0}, None),
        ({"y": 0}, None),
        ("click", None),
        (None, None),
    ],
)
def test_what_a_browser_sends_is_not_trusted(value: object, click: Click | None) -> None:
    assert Click.from_browser(value) == click


@pytest.mark.parametrize(
    "value", [None, "clicks", {"number": 1}, [None, "click", {"x": 2, "y": 3}]]
)
def test_what_is_no_list_of_numbered_clicks_is_none(value: object) -> None:
    assert reported(value) == []


def test_clicks_keep_their_order_and_numbers() -> None:
    sent = [{"x": 2, "y": 3, "number": 7}, {"x": 2, "number": 8}, {"x": 0, "y": 1, "number": 9}]
    assert reported(sent) == [(7, Click(2, 3)), (9, Click(0, 1))]
