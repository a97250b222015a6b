"""A picture on a page, as all of them stand there: in its own colours, and with words for it."""

from __future__ import annotations

from typing import Literal

import plotly.graph_objects as go
import streamlit as st

QUIET = {"displayModeBar": False}
TOOLS = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}


def chart(
    figure: go.Figure,
    key: str,
    alt: str,
    *,
    tools: bool = False,
    width: Literal["content", "stretch"] = "content",
) -> None:
    """The figure, with Plotly's own tools where it is worth zooming; `alt` is what it shows."""
    config = TOOLS if tools else QUIET
    st.plotly_chart(figure, key=key, theme=None, config=config, alt=alt, width=width)
