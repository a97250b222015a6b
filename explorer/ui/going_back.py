"""One press of Back undoes one step: opening a page, or one change on it.

A run of the page may write several choices into its address, and Streamlit makes an entry of the
browser's history of each. An unseen component lets a run add one, and none where the page has
just opened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from explorer.ui import unseen

_JS = """
export default function ({ parentElement }) {
  hide(parentElement);
  if (window.__oneStep) return;
  window.__oneStep = true;
  let running = scriptRuns();
  let opening = running; // a page: until its first run has ended
  let stepped = false; // in this run
  new MutationObserver(() => {
    if (scriptRuns() === running) return;
    running = !running;
    if (running) stepped = false;
    else opening = false;
  }).observe(document.body, {
    subtree: true, attributes: true, attributeFilter: ["data-test-script-state"],
  });
  const push = history.pushState.bind(history);
  history.pushState = (data, title, url) => {
    const path = new URL(url ?? location.href, location.href).pathname;
    if (path !== location.pathname) {
      opening = true;
      return push(data, title, url);
    }
    if (opening || stepped) return history.replaceState(data, title, url);
    stepped = true;
    return push(data, title, url);
  };
}
"""


def one_step() -> None:
    """Makes each run of the page at most one step of the browser's history; once on each page."""
    _stepper()(key="going_back", data={}, height=1)


@st.cache_resource
def _stepper() -> Callable[..., Any]:
    return unseen.component("going_back", _JS)
