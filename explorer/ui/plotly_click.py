"""Clicks on any Plotly chart, heatmap cells and images included, which Streamlit does not deliver.

An unseen component finds the chart by its key and listens to ``plotly_click``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import streamlit as st

from explorer.ui import unseen

_JS = """
export default function ({ data, parentElement, setTriggerValue }) {
  // Called again on every change of data or theme; one state per component, kept on its element.
  const state = (parentElement.__plotlyClick ??= {});
  state.target = data.target;
  state.send = setTriggerValue;
  if (state.stop) { state.attach(); return state.stop; }

  const onClick = (event) => {
    const point = event.points && event.points[0];
    if (!point) return;
    const plain = Array.isArray(point.customdata) ? point.customdata : null;
    state.send("cell", { x: point.x, y: point.y, customdata: plain });
  };
  hide(parentElement);
  const unfollow = follow(state, { plotly_click: onClick });
  state.stop = () => {
    unfollow();
    delete parentElement.__plotlyClick;
  };
  return state.stop;
}
"""


class Click(NamedTuple):
    """Where a chart was clicked: integer places on its axes, and the point's customdata if any."""

    x: int
    y: int
    customdata: tuple[Any, ...] | None = None

    @classmethod
    def from_browser(cls, value: object) -> Click | None:
        """The click that a browser reports, or None where it is not one: it is not trusted."""
        if not isinstance(value, dict):
            return None
        x, y = _place(value.get("x")), _place(value.get("y"))
        if x is None or y is None:
            return None
        data = value.get("customdata")
        return cls(x, y, tuple(data) if isinstance(data, list) else None)


def cell_clicks(
    chart_key: str, key: str, on_click: Callable[[Click], None] | None = None
) -> Click | None:
    """The click that caused this rerun on the chart with `chart_key`, else None.

    `on_click` is called with it before the page runs, as the callback of a widget is, so that
    it can set other widgets' state. The same cell can be clicked again.
    """

    def changed() -> None:
        click = Click.from_browser(st.session_state[key].cell)
        if click is not None and on_click is not None:
            on_click(click)

    result = _listener()(
        key=key,
        data={"target": unseen.css_key(chart_key)},
        on_cell_change=changed,
        height=1,
    )
    return Click.from_browser(result.cell)


@st.cache_resource
def _listener() -> Callable[..., Any]:
    return unseen.chart_component("plotly_click", _JS)


def _place(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value) if math.isfinite(value) and abs(value) < 2**31 else None
