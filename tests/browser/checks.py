"""What a page may not do in a browser: print errors, leave this machine, shut people out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, Request, Response

from scripts.browser import Server, serve

PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
DESK = {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"}
on_a_phone = pytest.mark.parametrize("watched_page", [PHONE], indirect=True)
on_a_phone_and_a_desk = pytest.mark.parametrize("watched_page", [PHONE, DESK], indirect=True)

OWN_HOSTS = {"127.0.0.1", "localhost"}
OWN_SCHEMES = {"data", "blob", "about"}

# Opened at /heads, Streamlit's own script asks whether the server lives under /heads/, is told 404
# and goes on to /. It does so on every deep link, with every app; nothing here can prevent it.
BASE_PROBE = re.compile(r"/[^/]+/_stcore/(health|host-config)")


def is_base_probe(url: str) -> bool:
    """Whether an address is Streamlit's question where its server lives, below a page's name."""
    parts = urlsplit(url)
    return parts.hostname in OWN_HOSTS and BASE_PROBE.fullmatch(parts.path) is not None


@dataclass
class Watch:
    """Everything a page did that it should not have done, in plain sentences."""

    faults: list[str] = field(default_factory=list)

    def on(self, page: Page) -> Page:
        """The same page, watched from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        page.on("request", self._request)
        page.on("websocket", lambda socket: self._address(socket.url))
        page.on("response", self._response)
        return page

    def _console(self, message: ConsoleMessage) -> None:
        missing = message.text.startswith("Failed to load resource") and "404" in message.text
        if missing and is_base_probe(message.location["url"]):
            return
        if message.type == "error":
            self.faults.append(f"console error: {message.text}")

    def _request(self, request: Request) -> None:
        self._address(request.url)

    def _address(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in OWN_SCHEMES and parts.hostname not in OWN_HOSTS:
            self.faults.append(f"request that leaves this machine: {url}")

    def _response(self, response: Response) -> None:
        if response.status == 404 and is_base_probe(response.url):
            return
        if response.status >= 400:
            self.faults.append(f"answer {response.status}: {response.url}")


@contextmanager
def serve_models(folder: Path) -> Iterator[Server]:
    """A server that lists a folder's models, checked for tracebacks at the end."""
    with serve(env={"EXPLORER_MODELS": str(folder)}) as running:
        yield running
        assert not tracebacks(running.log), running.log[-4000:]


def serious_violations(page: Page) -> list[str]:
    """axe-core's findings of impact serious or critical on the page as it stands, a line each."""
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def overflow(page: Page) -> int:
    """How many pixels the widest part of the page reaches past the window's right edge."""
    script = """() => {
      const main = document.querySelector('[data-testid="stMain"]');
      const root = document.scrollingElement;
      return Math.max(root.scrollWidth - root.clientWidth, main.scrollWidth - main.clientWidth);
    }"""
    return int(page.evaluate(script))


def tracebacks(log: str) -> list[str]:
    """Lines of a server's log that begin a traceback."""
    return [line for line in log.splitlines() if "Traceback (most recent call last)" in line]
