"""Pictures of the running app: `python -m scripts.screenshot --out docs --page heads`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, sync_playwright

from scripts.browser import launch, serve, settled

HEIGHT = 900
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the PNG files")
    parser.add_argument("--page", default="", help="file stem in pages/; the home page by default")
    parser.add_argument("--query", default="", help='the address after "?", as in "layer=3&head=1"')
    parser.add_argument("--theme", choices=(*THEMES, "both"), default="light")
    parser.add_argument("--width", type=int, action="append", help="pixels; may be repeated")
    parser.add_argument("--full", action="store_true", help="the whole page, not one screen")
    parser.add_argument("--scale", type=float, default=1, help="device pixels for each CSS pixel")
    parser.add_argument("--name", help="start of the file names; the page's name by default")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    themes = [theme for theme in THEMES if options.theme in (theme, "both")]
    name = options.name or options.page or "home"
    options.out.mkdir(parents=True, exist_ok=True)
    with serve() as server, sync_playwright() as playwright, launch(playwright) as browser:
        for theme in themes:
            for width in options.width or [1440]:
                page = browser.new_page(
                    viewport={"width": width, "height": HEIGHT},
                    color_scheme=theme,
                    device_scale_factor=options.scale,
                )
                page.goto(f"{server.url}/{options.page}?{options.query}".rstrip("?"))
                settled(page, timeout=60)
                if options.full:
                    page.set_viewport_size({"width": width, "height": content_height(page)})
                    settled(page)
                path = options.out / f"{name}-{theme}-{width}.png"
                page.screenshot(path=path)
                page.close()
                print(path)


def content_height(page: Page) -> int:
    """How tall the window must be to show all: Streamlit scrolls inside its main section."""
    script = "() => Math.max(...['stMain', 'stSidebarContent'].map(id =>"
    script += " document.querySelector(`[data-testid=${id}]`)?.scrollHeight ?? 0))"
    return max(HEIGHT, int(page.evaluate(script)))


if __name__ == "__main__":
    main()
