"""A link to another page, clicked straight from a text field that was changed.

Streamlit sends a field's text when the field is left, but after a quick click: the text then names
the page it stands on, and the link would do nothing. An unseen component holds such a click back
until the text has been taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from explorer.ui import unseen

_JS = """
export default function ({ parentElement }) {
  const state = (parentElement.__leaving ??= {});
  if (state.stop) return state.stop;
  state.changed = (event) => { if (event.target.matches("input, textarea")) state.typed = true; };
  state.key = (event) => {
    const applies = event.ctrlKey || event.metaKey || event.target.tagName === "INPUT";
    if (event.key === "Enter" && applies) state.typed = false;
  };
  state.left = () => {
    if (state.typed) state.at = performance.now();
    state.typed = false;
  };
  state.click = (event) => {
    const link = event.target.closest('[data-testid="stPageLink-NavLink"]');
    if (!link || state.held || !(performance.now() - state.at < 300)) return;
    event.preventDefault();
    event.stopPropagation();
    clearTimeout(state.waiting);
    const begun = state.at;
    let ran = false;
    const go = () => {
      const passed = performance.now() - begun;
      ran ||= scriptRuns();
      // The text's run has ended; or the text was the old one and none began; or it takes too long.
      if (ran ? scriptRuns() && passed < 4000 : passed < 1500) {
        state.waiting = setTimeout(go, 20);
        return;
      }
      state.held = true;
      link.click();
      state.held = false;
    };
    go();
  };
  const events = {
    input: state.changed, keydown: state.key, focusout: state.left, click: state.click,
  };
  for (const [event, call] of Object.entries(events)) document.addEventListener(event, call, true);
  hide(parentElement);
  state.stop = () => {
    for (const [event, call] of Object.entries(events))
      document.removeEventListener(event, call, true);
    clearTimeout(state.waiting);
    delete parentElement.__leaving;
  };
  return state.stop;
}
"""


def hold_links() -> None:
    """Holds links back until a text left by clicking them is sent; called once on each page."""
    _holder()(key="leaving", data={}, height=1)


@st.cache_resource
def _holder() -> Callable[..., Any]:
    return unseen.component("leaving", _JS)
