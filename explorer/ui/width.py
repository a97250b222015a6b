"""How wide half the page is in the reader's browser, so that pictures fit and stay square.

An unseen component measures it; the page runs again only where the width is not the known one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.ui import unseen
from explorer.ui.address import SEND_AGAIN

STEP = 40
"""Pixels: widths are rounded down to a multiple of this."""
USUAL = 480
"""Half the page in a window 1440 pixels wide."""
LARGEST = 760
NARROW = 300
"""Pixels of half the page: with less, a table or a row of buttons is cut off."""
KEPT = "column pixels"
FIRST = "first width"

_JS = """
export default function ({ data, parentElement, setStateValue }) {
  const state = (parentElement.__width ??= {});
  state.data = data;
  state.send = setStateValue;
  if (state.observer) return state.stop;
  hide(parentElement);
  const block = document.querySelector('[data-testid="stMainBlockContainer"]');
  state.later = () => {
    clearTimeout(state.waiting);
    state.waiting = setTimeout(state.measure, 100);
  };
  state.measure = () => {
    if (!block) return;
    const style = getComputedStyle(block);
    const room = block.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    // Below 640 pixels of window Streamlit puts columns under one another.
    const column = window.innerWidth <= 640 ? room : (room - 64) / 2;
    const { step, largest, known } = state.data;
    const found = Math.min(Math.max(Math.floor(column / step), 6) * step, largest);
    if (found === (state.sent ?? known)) return;
    // Never while the page runs: what that run had not yet sent to its controls would be lost.
    const app = document.querySelector('[data-testid="stApp"]');
    if (app && app.getAttribute("data-test-script-state") !== "notRunning") return state.later();
    state.sent = found;
    state.send("column", found);
  };
  state.observer = new ResizeObserver(state.later);
  if (block) state.observer.observe(block);
  state.measure();
  state.stop = () => {
    state.observer.disconnect();
    clearTimeout(state.waiting);
    delete parentElement.__width;
  };
  return state.stop;
}
"""


def measure() -> None:
    """Measures the page from now on; called once, first on each page."""
    if st.session_state.pop(FIRST, False):
        st.session_state[SEND_AGAIN] = True
    result = _ruler()(
        key="page_width",
        data={"step": STEP, "largest": LARGEST, "known": column()},
        default={"column": None},
        on_column_change=_reported,
        height=1,
    )
    found = result.column
    if isinstance(found, int | float) and 0 < found <= LARGEST:
        st.session_state[KEPT] = int(found)


def _reported() -> None:
    if KEPT not in st.session_state:
        st.session_state[FIRST] = True


def column() -> int:
    """The pixels that one of two columns has; the whole width where a phone shows one."""
    return int(st.session_state.get(KEPT, USUAL))


def side_by_side(
    shares: tuple[float, float] = (1.0, 1.0), gap: Literal["small", "large"] = "large"
) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Two places side by side, or one above the other where half the page is too little."""
    if column() < NARROW:
        return st.container(), st.container()
    left, right = st.columns(shares, gap=gap)
    return left, right


@st.cache_resource
def _ruler() -> Callable[..., Any]:
    return unseen.component("page_width", _JS)
