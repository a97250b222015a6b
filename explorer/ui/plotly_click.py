"""Clicks on any Plotly chart, heatmap cells and images included, which Streamlit does not deliver.

An unseen component finds the chart by its key and listens to ``plotly_click``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import streamlit as st

from explorer.ui import unseen

JS = """
  plotly_click: (event) => {
    const point = event.points && event.points[0];
    if (!point) return;
    const plain = Array.isArray(point.customdata) ? point.customdata : null;
    click({ x: point.x, y: point.y, customdata: plain });
  },
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


def cell_clicks(chart_key: str, key: str, on_click: Callable[[Click], None]) -> Click | None:
    """The click that caused this rerun on the chart with `chart_key`, else None.

    `on_click` is called with it before the page runs, as the callback of a widget is, so that
    it can set other widgets' state. The same cell can be clicked again. Where several clicks
    cause one rerun it is called with each in order, and perhaps as an earlier run made it: what
    a click changes is to be read from the state.
    """
    result = _listener()(
        key=key,
        data={"target": unseen.css_key(chart_key), "handled": handled(key)},
        on_cell_change=lambda: tell(key, on_click),
        height=1,
    )
    clicks = reported(result.cell)
    return clicks[-1][1] if clicks else None


def tell(key: str, on_click: Callable[[Click], None]) -> None:
    """Calls `on_click` with each new click that the component with this key reports."""
    for number, click in reported(st.session_state[key].cell):
        if number > handled(key):
            st.session_state[f"{key} handled"] = number
            on_click(click)


def handled(key: str) -> int:
    """The number of the last click of the component with this key that was handled."""
    return int(st.session_state.get(f"{key} handled", 0))


def reported(value: object) -> list[tuple[int, Click]]:
    """The numbered clicks that a browser reports, the oldest first, without what is none."""
    found = []
    for each in value if isinstance(value, list) else []:
        click = Click.from_browser(each)
        if click is not None and type(each.get("number")) is int:
            found.append((each["number"], click))
    return found


@st.cache_resource
def _listener() -> Callable[..., Any]:
    return unseen.chart_listener("plotly_click", JS)


def _place(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value) if math.isfinite(value) and abs(value) < 2**31 else None
