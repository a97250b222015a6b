"""Components that only listen or measure: they take no room on the page."""

from __future__ import annotations

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


def component(name: str, js: str) -> Callable[..., Any]:
    """A component of a script alone, which calls hide(parentElement) when it begins."""
    return st.components.v2.component(name, js=js + _HIDE)
