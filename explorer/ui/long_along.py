"""How far the queries of one head look, along the text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import streamlit as st

from explorer.figures.lines import Line, lines
from explorer.maps import edges
from explorer.ui import frame, width
from explorer.ui.chart import chart
from explorer.ui.long_run import Seen

BINS = 160


def show(seen: Seen, head: int) -> None:
    """A line over the text: each query's mean distance, averaged in bins where there are many."""
    found = seen.overview.per_query.get("distance")
    if found is None or int(found[head].isfinite().sum()) < 2:
        return
    values: npt.NDArray[np.float64] = found[head].double().cpu().numpy()
    borders = np.array(edges(len(values), BINS))
    figure = lines(
        [Line("distance", (borders[:-1] + borders[1:] - 1) / 2, means(values, borders))],
        x_title="Query, by its position in the text",
        y_title="tokens away",
        theme=frame.theme(),
        width=width.column(),
        height=190,
        hover="%{y:,.1f} tokens away",
    )
    figure.update_xaxes(tickformat=",").update_yaxes(tickformat=",")
    st.markdown("**How far its queries look**, by position")
    alt = f"The mean distance of head {head}'s queries, along the text."
    chart(figure, "long_along", alt, width="stretch")


def means(
    values: npt.NDArray[np.float64], borders: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Each bin's mean over the queries that have a value; NaN where none has."""
    there = np.isfinite(values)
    sums = np.add.reduceat(np.where(there, values, 0.0), borders[:-1])
    counts = np.add.reduceat(there, borders[:-1], dtype=np.int64)
    with np.errstate(invalid="ignore"):
        found: npt.NDArray[np.float64] = sums / counts
    return found
