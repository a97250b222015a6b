"""A Streamlit server and a Chromium for the browser tests, the benchmarks and the screenshots.

`python -m scripts.browser` looks for a Chromium that starts and installs one where it can.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright, sync_playwright
from playwright.sync_api import Error as PlaywrightError

ROOT = Path(__file__).resolve().parent.parent

FLAGS = (
    "--no-sandbox",  # needed as root in a container; only our own pages are opened
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_APPS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
DOWNLOAD_SECONDS = 300
PATIENCE = 120.0
"""Seconds that a page may take: its first view loads a model, and cores may be shared."""


class NoChromiumError(RuntimeError):
    """No Chromium starts here; the message says what was tried."""


class ServerError(RuntimeError):
    """The Streamlit server did not come up; the message holds its log."""


# Pages


def page_paths(root: Path = ROOT) -> list[Path]:
    """The home page, then every file in `pages/` by name; those that exist."""
    pages = sorted(path for path in (root / "pages").glob("*.py") if path.stem != "__init__")
    return [path for path in (root / "app.py", *pages) if path.exists()]


def address_of(page: Path) -> str:
    """The path of a page in the browser's address: empty for the home page."""
    return "" if page.name == "app.py" else page.stem


# The server


@dataclass(frozen=True)
class Server:
    """A running Streamlit server."""

    url: str
    log_path: Path

    @property
    def log(self) -> str:
        """Everything the server has printed."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serve(
    root: Path = ROOT, *, env: Mapping[str, str] | None = None, timeout: float = 60
) -> Iterator[Server]:
    """A server of its own for `app.py` in `root`, on a free port, offline, ended on leaving."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", **(env or {})}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(f"http://127.0.0.1:{port}", Path(folder) / "streamlit.log")
        with server.log_path.open("w") as log:
            process = subprocess.Popen(
                command,
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            _wait_until_healthy(server, process, timeout)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_healthy(server: Server, process: subprocess.Popen[bytes], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerError(f"streamlit ended with code {process.returncode}:\n{server.log}")
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2):
                return
        except OSError:  # not listening yet; URLError is one of these
            time.sleep(0.1)
    raise ServerError(f"streamlit did not answer within {timeout:.0f} s:\n{server.log}")


# Chromium


def chromium_paths() -> list[str | None]:
    """Where to look, best first. None stands for Playwright's own download."""
    named = os.environ.get("CHROMIUM")
    if named:
        return [named]
    on_path = [path for name in NAMES if (path := shutil.which(name))]
    return [*on_path, *(path for path in MAC_APPS if Path(path).exists()), None]


def launch(playwright: Playwright) -> Browser:
    """The first Chromium that starts; NoChromiumError with each reason where none does."""
    reasons = []
    for path in chromium_paths():
        try:
            return playwright.chromium.launch(
                executable_path=path, args=list(FLAGS), headless=True, timeout=30_000
            )
        except PlaywrightError as error:
            first_line = next((line for line in error.message.splitlines() if line.strip()), "")
            reasons.append(f"{path or 'a download by Playwright'}: {first_line}")
    raise NoChromiumError("no Chromium starts here (" + "; ".join(reasons) + ")")


def why_no_chromium() -> str | None:
    """Why none starts, or None where one does."""
    with sync_playwright() as playwright:
        try:
            launch(playwright).close()
        except NoChromiumError as error:
            return str(error)
    return None


def install_chromium() -> str | None:
    """Make a Chromium start: one that is here, Playwright's, else the system's. None is success.

    Each step is tried only where the one before left none that starts.
    """
    if os.environ.get("CHROMIUM"):
        return why_no_chromium()
    steps = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get") and os.geteuid() == 0:
        steps += [
            [sys.executable, "-m", "playwright", "install-deps", "chromium"],
            ["apt-get", "update"],
            ["apt-get", "install", "-y", "--no-install-recommends", "chromium"],
        ]
    reason = why_no_chromium()
    for step in steps:
        if reason is None:
            return None
        print("$", *step[1:] if step[0] == sys.executable else step, flush=True)
        _attempt(step)
        reason = why_no_chromium()
    return reason


def _attempt(command: list[str]) -> None:
    """Run it for its effect; a failure or a time-out is only reported."""
    environment = {
        **os.environ,
        "PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "10000",  # ms, for each of its tries
        "DEBIAN_FRONTEND": "noninteractive",
    }
    try:
        done = subprocess.run(command, env=environment, timeout=DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        print(f"stopped after {DOWNLOAD_SECONDS} s", flush=True)
    else:
        if done.returncode:
            print(f"failed with code {done.returncode}", flush=True)


# What the page is doing

_QUIET = """
(quietFor) => {
  const app = document.querySelector('[data-testid="stApp"]');
  const running =
    !app ||
    app.getAttribute('data-test-script-state') !== 'notRunning' ||
    app.getAttribute('data-test-connection-state') !== 'CONNECTED' ||
    document.querySelector('[data-testid="stStatusWidgetRunningIcon"]') ||
    document.querySelector('[data-stale="true"]') ||
    document.querySelector('[data-testid="stSkeleton"], [data-testid="stAppSkeleton"]') ||
    !document.querySelector('[data-testid="stMain"] [data-testid="stElementContainer"]');
  const unpainted = [...document.querySelectorAll('[data-testid="stPlotlyChart"]')].some(
    (chart) => !chart.querySelector('.js-plotly-plot .main-svg')
  );
  const now = performance.now();
  if (running || unpainted) { window.__quietSince = undefined; return false; }
  window.__quietSince ??= now;
  return now - window.__quietSince >= quietFor;
}
"""
_TWO_FRAMES = "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"


def settled(page: Page, *, timeout: float = PATIENCE, quiet: float = 0.3) -> Page:
    """The same page, once the script has finished, nothing is stale and the plots are painted.

    It must stay so for `quiet` seconds: a click takes a moment to start a run.
    """
    page.evaluate("() => { window.__quietSince = undefined; }")
    page.wait_for_function(_QUIET, arg=quiet * 1000, timeout=timeout * 1000, polling=50)
    page.evaluate(_TWO_FRAMES)
    return page


def main() -> None:
    reason = install_chromium()
    if reason:
        print(f"The browser tests will be skipped: {reason}.")


if __name__ == "__main__":
    main()
