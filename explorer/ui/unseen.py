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


def component(name: str, js: str) -> Callable[..., Any]:
    """A component of a script alone, which calls hide(parentElement) when it begins."""
    return st.components.v2.component(name, js=js + _HIDE)


def chart_component(name: str, js: str) -> Callable[..., Any]:
    """The same for a script that calls follow(state, listeners, found) on state.target's chart."""
    return st.components.v2.component(name, js=js + _HIDE + _FOLLOW)


def css_key(key: str) -> str:
    """An element's key as Streamlit writes it into a class name."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key.strip())
