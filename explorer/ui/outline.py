"""A frame around some cells of a chart, drawn over it: moving it does not redraw the chart.

An unseen component finds the chart by its key and lays a box over the plot area.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from explorer.figures.colors import ink
from explorer.ui import unseen
from explorer.ui.frame import theme

_JS = """
export default function ({ data, parentElement }) {
  // Called again on every change of data or theme; one state per component, kept on its element.
  const state = (parentElement.__outline ??= {});
  state.data = data;
  state.target = data.target;
  if (state.stop) { state.attach(); return state.stop; }

  const pane = document.createElement("div");
  pane.style.cssText = "position:absolute;overflow:visible;pointer-events:none;z-index:1";
  pane.className = "cells-outline";
  pane.setAttribute("aria-hidden", "true");
  const box = document.createElement("div");
  box.style.cssText = "position:absolute;box-sizing:border-box;border-style:solid";
  pane.append(box);

  state.place = () => {
    const area = state.plot && state.plot.querySelector(".nsewdrag");
    const layout = state.plot && state.plot.layout;
    const over = state.plot && state.plot.querySelector(".svg-container");
    if (!area || !over || !layout.xaxis || !layout.yaxis) { pane.remove(); return; }
    for (const [side, name] of [["left", "x"], ["top", "y"], ["width", 0], ["height", 0]])
      pane.style[side] = area.getAttribute(name || side) + "px";
    const { x, y, color, width } = state.data;
    const share = (value, range) => (100 * (value - range[0])) / (range[1] - range[0]);
    const [left, right] = x.map((value) => share(value, layout.xaxis.range));
    const [top, bottom] = y.map((value) => share(value, [...layout.yaxis.range].reverse()));
    const cut = (value) => Math.min(Math.max(value, 0), 100);
    box.style.display = cut(left) < cut(right) && cut(top) < cut(bottom) ? "" : "none";
    box.style.left = `calc(${cut(left)}% - 1px)`;
    box.style.top = `calc(${cut(top)}% - 1px)`;
    box.style.width = `calc(${cut(right) - cut(left)}% + 2px)`;
    box.style.height = `calc(${cut(bottom) - cut(top)}% + 2px)`;
    box.style.borderColor = color;
    box.style.borderWidth = `${width}px`;
    if (pane.parentElement !== over) over.append(pane);
  };
  hide(parentElement);
  const moves = ["plotly_afterplot", "plotly_relayout", "plotly_relayouting"];
  const listeners = Object.fromEntries(moves.map((event) => [event, state.place]));
  const unfollow = follow(state, listeners, state.place);
  state.stop = () => {
    unfollow();
    pane.remove();
    delete parentElement.__outline;
  };
  return state.stop;
}
"""


def outline(chart_key: str, *, x: tuple[int, int], y: tuple[int, int], width: int = 3) -> None:
    """A frame around the cells from x[0] to x[1] and y[0] to y[1], the last ones included."""
    _frame()(
        key=f"{chart_key}_outline",
        data={
            "target": unseen.css_key(chart_key),
            "x": [x[0] - 0.5, x[1] + 0.5],
            "y": [y[0] - 0.5, y[1] + 0.5],
            "color": ink(theme()).accent,
            "width": width,
        },
        height=1,
    )


@st.cache_resource
def _frame() -> Callable[..., Any]:
    return unseen.chart_component("outline", _JS)
