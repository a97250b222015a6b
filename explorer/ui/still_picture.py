"""A still picture of cells on the page, with its tooltip, and clicks where they are wanted.

It stands in for a Plotly chart where nothing is zoomed: where a change draws many small matrices,
mounting a chart for each takes most of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from explorer.figures.still import Still
from explorer.ui import unseen
from explorer.ui.plotly_click import Click, handled, tell

HERE = Path(__file__).parent
HTML = '<div class="still"><div class="still-picture" role="img"></div></div>'
CSS = """
.still { position: relative; line-height: 1.35; }
.still-picture svg { display: block; overflow: visible; }
.still-gaps, .still-ticks { stroke-width: 1; fill: none; }
.still-tip {
  position: absolute; z-index: 10; pointer-events: none; width: max-content; max-width: 260px;
  padding: 4px 8px; font-size: 13px; color: var(--st-text-color); overflow-wrap: anywhere;
  background: var(--st-background-color); border: 1px solid var(--st-border-color);
}
.still-tip[hidden] { display: none; }
"""


def still_picture(
    still: Still, *, key: str, alt: str, on_click: Callable[[Click], None] | None = None
) -> None:
    """Shows the picture; `on_click` is called with each click as that of `cell_clicks` is."""
    _component()(
        key=key,
        data={
            "svg": still.svg,
            "width": still.width,
            "height": still.height,
            "area": list(still.area),
            "rows": still.shape[0],
            "columns": still.shape[1],
            "x": still.x,
            "y": still.y,
            "answers": [answer._asdict() for answer in still.answers],
            "alt": alt,
            "clicks": on_click is not None,
            "handled": handled(key),
        },
        on_cell_change=lambda: tell(key, on_click or (lambda _: None)),
        width=still.width,
        height=still.height,
    )


@st.cache_resource
def _component() -> Callable[..., Any]:
    return st.components.v2.component(
        "still_picture",
        html=HTML,
        css=CSS,
        js=(HERE / "still_picture.js").read_text("utf-8") + unseen.CLICKS,
        isolate_styles=False,
    )
