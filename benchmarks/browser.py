"""Time until painted in a real Chromium: all heads as a picture, BertViz's pages, Heads itself."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, Page, Route, ViewportSize, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from benchmarks import peers
from benchmarks.capture import words
from benchmarks.grid import MINILM, Shape, random_weights
from benchmarks.painted import LOADED, LOADING, painted
from benchmarks.report import Column, Row, Table
from benchmarks.timing import Spread
from scripts.browser import ROOT, NoChromiumError, ServerError, launch, serve, settled

WINDOW: ViewportSize = {"width": 1280, "height": 900}
GRIDS: dict[tuple[Shape, int], float | None] = {
    (MINILM, 32): None,
    (MINILM, 128): None,
    ((12, 12), 32): 300,
    ((12, 12), 128): 600,
    ((12, 12), 256): None,
    ((24, 16), 32): 600,
    ((24, 16), 128): None,
}
"""Milliseconds that are the goal, by size."""
BERTVIZ = ((MINILM, 32), (MINILM, 128), ((12, 12), 32), ((12, 12), 128), (MINILM, 256))
PATIENCE = 120  # seconds for a page of BertViz
EDIT, CLICK = 1000, 300  # goals, ms
MILLISECONDS = (Column("until painted", "ms", 0),)
GRID_LABELS = ("layers × heads", "tokens", "tool")
GRID_NOTES = (
    "Ours: from a click on a button, through the server, to the last change of the plot plus two "
    "frames; server and browser share the machine. BertViz: from the opening of its HTML, a file "
    "that is there already, to the last change of the document plus two frames.",
    "head_view draws one layer at a time.",
)
PAGE_LABELS = ("action", "tokens", "until")
PAGE_NOTES = ("MiniLM. Each edit gives a text that the server has not seen before.",)
ODD = (PlaywrightError, ServerError, peers.NoScriptsError)


class NotThereError(RuntimeError):
    """A page lacks what is to be measured; the message says what."""


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    with sync_playwright() as playwright:
        try:
            browser = launch(playwright)
        except NoChromiumError as error:
            skipped.append(f"all that is painted: {error}")
            return []
        with browser:
            grids = _grids(browser, 3 if quick else 11, quick, skipped)
            grids += _bertviz(browser, 1 if quick else 3, quick, skipped)
            page = _heads(browser, 3 if quick else 11, quick, skipped)
    return [
        Table(title, labels, MILLISECONDS, rows, notes)
        for title, labels, rows, notes in (
            ("Picture of all heads: painted", GRID_LABELS, grids, GRID_NOTES),
            ("The Heads page: painted", PAGE_LABELS, page, PAGE_NOTES),
        )
        if rows
    ]


def _grids(browser: Browser, rounds: int, quick: bool, skipped: list[str]) -> list[Row]:
    rows = []
    try:
        with _grid_server() as url:
            for (shape, n_tokens), goal in list(GRIDS.items())[: 3 if quick else None]:
                page = browser.new_page(viewport=WINDOW)
                page.goto(f"{url}/?layers={shape[0]}&heads={shape[1]}&tokens={n_tokens}")
                settled(page)
                button = page.get_by_role("button", name="Others")
                times = [painted(page, button.click)["grid"] for _ in range(rounds + 2)][2:]
                page.close()
                rows.append(Row(_labels(shape, n_tokens, "ours"), (Spread.of(times),), (goal,)))
    except ODD as error:
        skipped.append(f"picture of all heads, painted: {first_line(error)}")
    return rows


@contextmanager
def _grid_server() -> Iterator[str]:
    """A server for grid_app.py with the app's own settings."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(Path(__file__).with_name("grid_app.py"), folder / "app.py")
        shutil.copytree(ROOT / ".streamlit", folder / ".streamlit")
        with serve(folder, env={"PYTHONPATH": str(ROOT)}) as server:
            yield server.url


def _bertviz(browser: Browser, rounds: int, quick: bool, skipped: list[str]) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            found = peers.scripts(folder)
        except peers.NoScriptsError as error:
            skipped.append(f"BertViz, painted: {error}")
            return []
        for shape, n_tokens in BERTVIZ[:1] if quick else BERTVIZ:
            for view in (peers.HEAD_VIEW, peers.MODEL_VIEW):
                file = folder / "page.html"
                file.write_text(peers.html(view, random_weights(*shape, n_tokens)), "utf-8")
                try:
                    times = [_opened(browser, file, found) for _ in range(rounds)]
                    figure: Spread | str = Spread.of(times)
                except PlaywrightTimeout:
                    figure = f"not drawn in {PATIENCE} s"
                except PlaywrightError as error:
                    figure = f"not drawn: {first_line(error)}"
                rows.append(Row(_labels(shape, n_tokens, view), (figure,)))
    return rows


def _opened(browser: Browser, file: Path, scripts: dict[str, str]) -> float:
    """Milliseconds from the opening of a page of BertViz to its drawing."""

    def answer(route: Route) -> None:
        name = next((name for name in scripts if name in route.request.url), None)
        if name is None:
            route.abort()
        else:
            route.fulfill(body=scripts[name], content_type="text/javascript")

    page = browser.new_page(viewport=WINDOW)
    try:
        page.set_default_timeout(PATIENCE * 1000)
        page.route(re.compile("^https?://"), answer)
        page.add_init_script(LOADING)
        page.goto(file.as_uri(), wait_until="commit")
        page.wait_for_function(LOADED, polling=100)
        return float(page.evaluate("() => window.__load.painted"))
    finally:
        page.close()


def _heads(browser: Browser, rounds: int, quick: bool, skipped: list[str]) -> list[Row]:
    rows: list[Row] = []
    if not (ROOT / "pages" / "heads.py").exists():
        skipped.append("the Heads page: pages/heads.py is not there")
        return rows
    try:
        with serve() as server:
            for n_tokens in (32,) if quick else (32, 128):
                page = browser.new_page(viewport=WINDOW)
                page.goto(f"{server.url}/heads?text={quote(words(n_tokens))}&layer=0&head=0")
                settled(page, timeout=90)
                if page.get_by_test_id("stException").count():
                    raise NotThereError("it shows an error")
                rows += _heads_rows(page, n_tokens, rounds)
                page.close()
    except (*ODD, NotThereError) as error:
        skipped.append(f"the Heads page: {first_line(error)}")
    return rows


def _heads_rows(page: Page, n_tokens: int, rounds: int) -> list[Row]:
    """An edit of the text and a click on a head, each many times."""
    edits, clicks = [], []
    for number in range(1, rounds + 2):
        edits.append(_edit(page, words(n_tokens, number)))
        clicks.append(_click(page, layer=number % 5 + 1, head=(5 * number) % 11 + 1))
    goals = (EDIT, CLICK) if n_tokens == 32 else (None, None)
    rows = []
    for action, times, judged, goal in (
        ("edit of the text", edits, "", goals[0]),
        ("edit of the text", edits, "all_heads", None),
        ("click on a head", clicks, "one_head", goals[1]),
        ("click on a head", clicks, "", None),
    ):
        # The first round warms up.
        values = [max(found.values()) if not judged else found[judged] for found in times[1:]]
        until = {"": "the whole page", "all_heads": "all heads", "one_head": "the head"}[judged]
        rows.append(Row((action, str(n_tokens), until), (Spread.of(values),), (goal,)))
    return rows


def _edit(page: Page, text: str) -> dict[str, float]:
    box = page.get_by_role("textbox", name="Text", exact=True)
    box.fill(text)
    found = painted(page, lambda: box.press("Control+Enter"))
    return _with(found, "all_heads", "an edit of the text does not repaint the picture")


_PLACE = """
([row, head]) => {
  const plot = document.querySelector('.st-key-all_heads .js-plotly-plot');
  if (!plot) return null;
  plot.scrollIntoView({ block: 'center' });
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.d2p(head), box.top + yaxis._offset + yaxis.d2p(row)];
}
"""


def _click(page: Page, layer: int, head: int) -> dict[str, float]:
    place = page.evaluate(_PLACE, [layer, head])
    if place is None:
        raise NotThereError("it has no picture of all heads")
    page.mouse.move(*place)
    found = painted(page, lambda: page.mouse.click(*place))
    if f"layer={layer}" not in page.url or f"head={head}" not in page.url:
        raise NotThereError(f"a click on L{layer}H{head} does not choose it")
    return _with(found, "one_head", "a click on a head does not repaint it")


def _with(found: dict[str, float], key: str, otherwise: str) -> dict[str, float]:
    if key not in found:
        raise NotThereError(otherwise)
    return found


def _labels(shape: Shape, n_tokens: int, tool: str) -> tuple[str, str, str]:
    return f"{shape[0]}×{shape[1]}", str(n_tokens), tool


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
