"""The chosen d_k in the curves, as an upright drawn over a chart: moving it redraws no chart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from explorer.figures.colors import ink
from explorer.figures.frame import FONT
from explorer.ui import unseen
from explorer.ui.frame import theme

_JS = """
export default function ({ data, parentElement }) {
  // Called again on every change of data or theme; one state per component, kept on its element.
  const state = (parentElement.__upright ??= {});
  state.data = data;
  state.target = data.target;
  if (state.stop) { state.attach(); return state.stop; }

  const line = document.createElement("div");
  line.className = "chart-upright";
  line.setAttribute("aria-hidden", "true");
  line.style.cssText = "position:absolute;pointer-events:none;z-index:1;width:0";
  const note = line.appendChild(document.createElement("span"));
  note.style.cssText = "position:absolute;top:0;padding:0 5px;white-space:nowrap;font-size:12px";

  state.place = () => {
    const plot = state.plot;
    const area = plot && plot.querySelector(".nsewdrag");
    const over = plot && plot.querySelector(".svg-container");
    if (!area || !over || !plot.layout.xaxis) { line.remove(); return; }
    const { place, text, color, ink, font } = state.data;
    const [low, high] = plot.layout.xaxis.range;
    const share = (place - low) / (high - low);
    const pixels = (name) => parseFloat(area.getAttribute(name));
    line.style.left = `${pixels("x") + share * pixels("width") - 1}px`;
    line.style.top = `${pixels("y")}px`;
    line.style.height = `${pixels("height")}px`;
    line.style.borderLeft = `2px dotted ${color}`;
    note.style.color = ink;
    note.style.fontFamily = font;
    note.style[share > 0.5 ? "right" : "left"] = "0";
    note.style[share > 0.5 ? "left" : "right"] = "";
    // Only where it changes: follow() watches the page, this line included.
    if (note.textContent !== text) note.textContent = text;
    if (line.parentElement !== over) over.append(line);
  };
  hide(parentElement);
  const unfollow = follow(state, { plotly_afterplot: state.place }, state.place);
  state.stop = () => {
    unfollow();
    line.remove();
    delete parentElement.__upright;
  };
  return state.stop;
}
"""


def upright(chart_key: str, at: int) -> None:
    """A dotted line at this d_k, with its name beside it, over a logarithmic axis."""
    colors = ink(theme())
    _line()(
        key=f"{chart_key}_upright",
        data={
            "target": unseen.css_key(chart_key),
            "place": math.log10(at),
            "text": f"d_k = {at:,}",
            "color": colors.accent,
            "ink": colors.text,
            "font": FONT,
        },
        height=1,
    )


@st.cache_resource
def _line() -> Callable[..., Any]:
    return unseen.chart_component("upright", _JS)
