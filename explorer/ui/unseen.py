"""Components that only listen or measure: they take no room on the page.

Those that follow a chart find it by its key, in the class ``st-key-…`` that Streamlit gives its
element; tests/browser/test_plotly_click.py and test_heads.py hold that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import streamlit as st

_HIDE = """
function hide(parentElement) {
  // Out of the flow and a pixel wide: otherwise its gap would show, or the page would scroll.
  const root = parentElement.getRootNode();
  const shell = (root.host ?? parentElement).closest('[data-testid="stElementContainer"]');
  if (!shell) return;
  shell.style.position = "absolute";
  shell.style.width = "1px";
  shell.setAttribute("aria-hidden", "true");
}
"""

_RUNS = """
function scriptRuns() {
  const app = document.querySelector('[data-testid="stApp"]');
  return Boolean(app) && app.getAttribute("data-test-script-state") !== "notRunning";
}
"""

_FOLLOW = """
function follow(state, listeners, found = () => {}) {
  // Keeps `listeners` (by event) on the chart of the class state.target, whatever replaces it, and
  // calls `found` each time. Plotly.newPlot on the same node drops its listeners, so they are
  // taken off and put on, never just looked for.
  const each = (act) => Object.entries(listeners).forEach(([event, call]) => act(event, call));
  const detach = () => {
    const plot = state.plot;
    if (plot && plot.removeListener) each((event, call) => plot.removeListener(event, call));
    state.plot = null;
  };
  let waiting = 0;
  state.attach = () => {
    waiting = 0;
    const plot = document.querySelector(`.st-key-${CSS.escape(state.target)} .js-plotly-plot`);
    detach();
    if (!plot || !plot.on) return;
    each((event, call) => plot.on(event, call));
    state.plot = plot;
    found();
  };
  const observer = new MutationObserver(() => { waiting ||= requestAnimationFrame(state.attach); });
  observer.observe(document.body, { childList: true, subtree: true });
  state.attach();
  return () => {
    observer.disconnect();
    cancelAnimationFrame(waiting);
    detach();
  };
}
"""

CLICKS = """
// Until a run begins, Streamlit keeps a component's newest trigger only. So each one carries all
// clicks that Python has not told it has handled; their numbers grow while the document lives.
function keep(state, handled) {
  state.handled = handled;
  state.waiting = (state.waiting ?? []).filter(({ number }) => number > handled);
}
function sendClick(state, click) {
  const number = window.__clicks = Math.max(window.__clicks ?? 0, state.handled) + 1;
  state.waiting.push({ ...click, number });
  state.send("cell", state.waiting);
}
"""

_LISTEN = """
export default function ({ data, parentElement, setTriggerValue }) {
  // Called again on every change of data or theme; one state per component, kept on its element.
  const state = (parentElement.__listener ??= {});
  state.target = data.target;
  state.send = setTriggerValue;
  keep(state, data.handled);
  if (state.stop) { state.attach(); return state.stop; }
  hide(parentElement);
  const send = (name, value) => state.send(name, value);
  const unfollow = follow(state, listeners(send, (click) => sendClick(state, click)));
  state.stop = () => {
    unfollow();
    delete parentElement.__listener;
  };
  return state.stop;
}
"""


def component(name: str, js: str) -> Callable[..., Any]:
    """A component of a script alone, which calls hide(parentElement) when it begins.

    It may ask scriptRuns(): whether a run of the page goes on.
    """
    return st.components.v2.component(name, js=js + _HIDE + _RUNS)


def chart_component(name: str, js: str) -> Callable[..., Any]:
    """The same for a script that calls follow(state, listeners, found) on state.target's chart."""
    return st.components.v2.component(name, js=js + _HIDE + _FOLLOW)


def chart_listener(name: str, js: str) -> Callable[..., Any]:
    """The same for one that only listens to data.target's chart.

    `js` are the functions by event. They call send(name, value), of which the newest counts, or
    click(place), which all count: data.handled is the number of the last one that was handled.
    """
    listeners = f"const listeners = (send, click) => ({{{js}}});"
    return chart_component(name, CLICKS + _LISTEN + listeners)


def css_key(key: str) -> str:
    """An element's key as Streamlit writes it into a class name."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key.strip())
