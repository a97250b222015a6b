"""The page All heads: one number of every head as a heatmap, and two against each other."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import streamlit as st

from explorer.figures.heads_heatmap import heads_heatmap, heads_heatmap_alt
from explorer.figures.scatter import heads_scatter, scatter_alt
from explorer.head_table import Extreme, extremes
from explorer.ui import address, controls, frame, width
from explorer.ui.all_heads_numbers import Numbers
from explorer.ui.chart import chart
from explorer.ui.outline import outline
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.words import share

LABELS = 68  # pixels beside the heatmap's cells
SCATTER = 400  # pixels of the scatter's height
FIRST, ACROSS, UP = "previous", "distance", "entropy_share"


def choose_metric(numbers: Numbers, key: str, first: str, label: str) -> str:
    """One of the metrics; it is measured when chosen."""
    names = [first, *(name for name in numbers.metrics if name != first)]
    titles = {name: numbers.metrics[name].title for name in names}
    return controls.choose_one(key, titles, label=label)


def one_number(numbers: Numbers, layer: int, head: int) -> str:
    """A metric of all heads as a heatmap, what it says, and its two extremes; gives its name."""
    st.subheader("One number, all heads", anchor=False)
    name = choose_metric(numbers, "metric", FIRST, "Number")
    metric, values = numbers.metrics[name], numbers.of(name)
    table, absent = _laid_out(numbers, values)
    figure = heads_heatmap(
        table,
        title=metric.title,
        unit=metric.unit,
        theme=frame.theme(),
        absent=absent,
        width_px=width.column() - LABELS,
    )
    alt = heads_heatmap_alt(table, metric.title, metric.unit)
    chart(figure, "heads_numbers", alt)
    outline("heads_numbers", x=(head, head), y=(layer, layer))
    cell_clicks("heads_numbers", "heads_numbers_click", lambda click: _cell(click, numbers))
    _say_extremes(numbers, name)
    st.markdown(f"**{metric.title}** ({metric.unit}). {metric.meaning}")
    st.caption(f"Source: {metric.source}. The mean over the queries; padding is left out.")
    if numbers.no_segment:
        st.caption(numbers.no_segment)
    return name


def _laid_out(
    numbers: Numbers, values: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The numbers by layer and head, and which of these places have no head."""
    stack = numbers.stack
    table = np.full((stack.n_layers, stack.n_heads), np.nan)
    absent = np.ones(table.shape, dtype=bool)
    table[numbers.layers, numbers.heads] = values
    absent[numbers.layers, numbers.heads] = False
    return table, absent


def _say_extremes(numbers: Numbers, name: str) -> None:
    """The heads with the highest and the lowest number, to choose."""
    unit = numbers.metrics[name].unit
    found = extremes(numbers.table([name]), name)
    if found is None:
        st.info(
            f"No head has this number here: {numbers.why_unknown(name)}", icon=":material/info:"
        )
        return
    low, high = found
    if low.value == high.value:
        st.markdown(f"All heads have **{written(low.value, unit)}**.")
        return
    st.markdown(
        f"Highest: **{high.name}** with {written(high.value, unit)}. "
        f"Lowest: **{low.name}** with {written(low.value, unit)}."
    )
    with st.container(horizontal=True, gap="small"):
        for what, extreme in (("highest", high), ("lowest", low)):
            choose_button(f"Choose the {what}, {extreme.name}", f"{what}_head", extreme)


def choose_button(label: str, key: str, head: Extreme | tuple[int, int]) -> None:
    """A button that chooses a head."""
    st.button(label, key=key, on_click=choose, args=(head[0], head[1]))


def two_numbers(numbers: Numbers, layer: int, head: int) -> None:
    """Two metrics against each other, a point a head."""
    st.subheader("Two numbers against each other", anchor=False)
    across_place, up_place = st.columns(2, gap="medium")
    with across_place:
        across = choose_metric(numbers, "x", ACROSS, "Across")
    with up_place:
        up = choose_metric(numbers, "y", UP, "Up")
    x, y = numbers.of(across), numbers.of(up)
    titles = [
        f"{numbers.metrics[each].title} ({numbers.metrics[each].unit})" for each in (across, up)
    ]
    figure = heads_scatter(
        x,
        y,
        layers=numbers.layers,
        heads=numbers.heads,
        x_title=titles[0],
        y_title=titles[1],
        theme=frame.theme(),
        selected=(layer, head),
        width_px=width.column(),
        height_px=SCATTER,
    )
    alt = scatter_alt(x, y, numbers.layers, numbers.heads, titles[0], titles[1])
    chart(figure, "two_numbers", alt)
    cell_clicks("two_numbers", "two_numbers_click", lambda click: point(click, numbers))
    missing = int((~np.isfinite(x) | ~np.isfinite(y)).sum())
    if missing:
        name = across if not np.isfinite(x).all() else up
        which = "No head has both numbers" if missing == len(x) else f"{missing} heads lack one"
        st.caption(f"{which}: {numbers.why_unknown(name)}")
    st.caption("A click on a point or on a cell chooses that head in all pictures.")


def _cell(click: Click, numbers: Numbers) -> None:
    if numbers.has(click.y, click.x):
        choose(click.y, click.x)


def point(click: Click, numbers: Numbers) -> None:
    """Chooses the head whose point was clicked."""
    data = click.customdata or ()
    if len(data) == 2 and all(type(each) is int for each in data) and numbers.has(*data):
        choose(*data)


def choose(layer: int, head: int) -> None:
    """Makes this the chosen head; for callbacks, before the page runs."""
    address.put(layer=layer, head=head)


def written(value: float, unit: str) -> str:
    """A number as a sentence has it."""
    if unit == "share of 1":
        return share(value)
    return f"{re.sub('^-', '−', f'{value:.3g}')} {unit}"
