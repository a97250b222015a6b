"""All heads of the layer over the whole text, as small maps; and the chosen one's numbers."""

from __future__ import annotations

import math
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from explorer.figures.long_heads import columns_of, long_heads, long_heads_alt
from explorer.metrics import METRICS
from explorer.ui import address, frame
from explorer.ui.chart import chart
from explorer.ui.long_map import beside_pixels
from explorer.ui.long_picture import barred_name
from explorer.ui.long_run import Seen
from explorer.ui.outline import outline
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.words import small_share

NUMBERS = ("entropy_share", "distance", "reach_back", "first", "self", "previous", "induction")
IN_TOOLTIP = ("distance", "entropy_share")


def grid(seen: Seen, head: int) -> None:
    """All heads; a click chooses one."""
    picture = seen.overview.picture
    n_heads = len(picture.largest)
    wide = beside_pixels()
    figure = long_heads(
        picture.largest.float().cpu().numpy(),
        theme=frame.theme(),
        forbidden=picture.forbidden.cpu().numpy(),
        notes=_notes(seen, n_heads),
        barred_name=barred_name(seen),
        width_px=wide,
    )
    alt = long_heads_alt(n_heads, seen.whose.title)
    chart(figure, "long_heads", alt)
    row, column = divmod(head, columns_of(n_heads, wide))
    outline("long_heads", x=(column, column), y=(row, row))
    cell_clicks("long_heads", "long_heads_click", lambda click: _choose(click, n_heads))


def _choose(click: Click, n_heads: int) -> None:
    head = click.customdata[0] if click.customdata else None
    if isinstance(head, int) and 0 <= head < n_heads:
        address.put(head=head)


def _notes(seen: Seen, n_heads: int) -> list[str]:
    found = _numbers(seen)
    titles = {metric.name: metric for metric in METRICS}
    return [
        ", ".join(
            f"{titles[name].title.lower()} {_written(found[name][head], titles[name].unit)}"
            for name in IN_TOOLTIP
            if name in found
        )
        for head in range(n_heads)
    ]


def numbers(seen: Seen, head: int) -> None:
    """The chosen head's numbers, and the mean of all heads."""
    found = _numbers(seen)
    lines = [f"| Over the whole text | Head {head} | All heads |", "| --- | ---: | ---: |"]
    for metric in METRICS:
        if metric.name in NUMBERS and metric.name in found:
            values = found[metric.name]
            own, every = (_written(v, metric.unit) for v in (values[head], np.nanmean(values)))
            lines.append(f"| {metric.title} | {own} | {every} |")
    st.markdown("\n".join(lines))


def _numbers(seen: Seen) -> dict[str, np.ndarray]:
    return {
        name: values.double().cpu().numpy()
        for name, values in seen.overview.head_metrics().items()
        if bool(values.isfinite().any())
    }


def _written(value: float, unit: str) -> str:
    if math.isnan(value):
        return "–"
    return small_share(value) if unit == "share of 1" else f"{value:,.1f} {unit}"


def link() -> None:
    """The address of this view, to copy."""
    with st.popover("Link", icon=":material/link:"):
        base = (st.context.url or "").partition("?")[0]
        st.code(f"{base}?{urlencode(st.query_params.to_dict())}", language=None, wrap_lines=True)
        st.caption(
            "Opens this part, head and pair. A text of your own is found by its number as long as "
            "this app keeps it in memory."
        )
