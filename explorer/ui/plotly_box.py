"""Boxes that a reader drags on a Plotly chart, and clicks on its cells.

An unseen component finds the chart by its key and listens: Streamlit's own box selection draws the
chart's box again after each run, and takes part in the chart's identity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import streamlit as st

from explorer.ui import plotly_click, unseen
from explorer.ui.plotly_click import Click

_JS = """
  plotly_selected: (event) => {
    const range = event && event.range;
    const x = range && (range.x ?? range.x2), y = range && (range.y ?? range.y2);
    if (x && y) send("box", { x: x.map(Number), y: y.map(Number) });
  },
"""


class Box(NamedTuple):
    """A box in a chart's own coordinates, each side from the smaller to the larger."""

    x: tuple[float, float]
    y: tuple[float, float]

    @classmethod
    def from_browser(cls, value: object) -> Box | None:
        """The box that a browser reports, or None where it is not one: it is not trusted."""
        if not isinstance(value, dict):
            return None
        x, y = _side(value.get("x")), _side(value.get("y"))
        return None if x is None or y is None else cls(x, y)


def boxes(
    chart_key: str,
    key: str,
    on_box: Callable[[Box], None],
    on_click: Callable[[Click], None],
) -> None:
    """Listens to the chart with `chart_key`; the callbacks run before the page does."""

    def dragged() -> None:
        box = Box.from_browser(st.session_state[key].box)
        if box is not None:
            on_box(box)

    _listener()(
        key=key,
        data={"target": unseen.css_key(chart_key), "handled": plotly_click.handled(key)},
        on_box_change=dragged,
        on_cell_change=lambda: plotly_click.tell(key, on_click),
        height=1,
    )


@st.cache_resource
def _listener() -> Callable[..., Any]:
    return unseen.chart_listener("plotly_box", _JS + plotly_click.JS)


def _side(value: object) -> tuple[float, float] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    numbers = [float(each) for each in value if isinstance(each, int | float)]
    if len(numbers) != 2 or not all(map(math.isfinite, numbers)):
        return None
    return min(numbers), max(numbers)
