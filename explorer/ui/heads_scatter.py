"""All heads on the page "Real heads": as points, over the layers, and as a table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from explorer.capture import Stack
from explorer.figures.lines import Line, lines
from explorer.figures.scatter import heads_scatter, scatter_alt
from explorer.head_columns import ASSUMED, AXES, COLUMNS
from explorer.head_scaling import SCALES
from explorer.ui import address, controls, frame, width
from explorer.ui.chart import chart
from explorer.ui.head_scaling import Heads, is_own, softmax_with, titled
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.scaling_words import only_value, short_number
from explorer.ui.words import share

ABOUT_ENTROPY = (
    "Entropy is a share of its maximum: 1 is equal weight on all keys, 0 all weight on one."
)
MODEL_CHOICES = ("model", "text", "pair", "stack", "device", "dtype", "specials", "cut")


def choose_axes() -> tuple[str, str]:
    """What the scatter shows across and up."""
    with st.container(horizontal=True, gap="medium"):
        return _axis("across", "scores_row_predicted"), _axis("up", "scores_row_variance")


def _axis(name: str, first: str) -> str:
    options = [first, *(option for option in AXES if option != first)]
    return controls.choose_one(name, {option: COLUMNS[option].title for option in options})


def scatter(heads: Heads, across: str, up: str, layer: int, head: int) -> None:
    """All heads as points; a click chooses one."""
    table = heads.table
    x, y = (_numbers(table[name]) for name in (across, up))
    x_column, y_column = COLUMNS[across], COLUMNS[up]
    layers, numbers = table["layer"].to_numpy(), table["head"].to_numpy()
    same = x_column.quantity == y_column.quantity and across != up
    assumed = (
        only_value(table[ASSUMED[y_column.quantity]]) if y_column.quantity in ASSUMED else None
    )
    level = None if assumed is None else (assumed, f"assumed by 1/√d_k: {short_number(assumed)}")
    if level is not None and not is_own(heads.stack, SCALES["root"]):
        level = (level[0], f"for independent numbers of variance 1: {short_number(level[0])}")
    line = "equal: size alone explains it" if up.replace("variance", "predicted") == across else ""
    titles = [f"{column.title} ({column.unit})" for column in (x_column, y_column)]
    figure = heads_scatter(
        x,
        y,
        layers=layers,
        heads=numbers,
        x_title=titles[0],
        y_title=titles[1],
        theme=frame.theme(),
        x_log=x_column.log,
        y_log=y_column.log,
        selected=(layer, head),
        identity=(line or "equal") if same else None,
        level=level,
        width_px=width.column(),
    )
    alt = scatter_alt(x, y, layers, numbers, *titles)
    chart(figure, "heads_scatter", alt)
    cell_clicks("heads_scatter", "heads_scatter_click", lambda click: _choose(click, heads.stack))
    st.caption("A click on a point opens that head.")
    drawn = np.isfinite(x) & np.isfinite(y)
    drawn &= (~np.array(x_column.log) | (x > 0)) & (~np.array(y_column.log) | (y > 0))
    if not drawn.all():
        st.caption(f"{int((~drawn).sum())} heads have no such number and are not drawn.")


def _choose(click: Click, stack: Stack) -> None:
    data = click.customdata or ()
    if len(data) != 2 or not all(type(number) is int for number in data):
        return
    layer, head = data
    if layer in stack.layer_numbers and 0 <= head < stack.layer(layer).n_heads:
        address.put(layer=layer, head=head)


def open_in_heads(layer: int, head: int) -> None:
    """A link to this head on the Heads page, with the same model and text."""
    chosen = {name: st.query_params[name] for name in MODEL_CHOICES if name in st.query_params}
    target = {**chosen, "layer": str(layer), "head": str(head)}
    label = f"Open L{layer}H{head} in Heads"
    frame.link_to("pages/heads.py", label, ":material/open_in_new:", target)


def over_layers(heads: Heads) -> None:
    """The heads' mean entropy in each layer, with several scales."""
    names = [name for name in SCALES if name == "own" or not is_own(heads.stack, SCALES[name])]
    if heads.against not in names:
        names.append(heads.against)
    tables = {titled(heads.stack, name): softmax_with(heads, name) for name in names}
    shares = {
        title: table.groupby("layer")["entropy_share"].mean() for title, table in tables.items()
    }
    layers = [int(number) for number in heads.table["layer"].unique()]
    figure = lines(
        [Line(title, layers, _numbers(means), markers=True) for title, means in shares.items()],
        x_title="Layer",
        y_title="entropy, share of its maximum",
        theme=frame.theme(),
        width=width.column(),
        height=250,
        x_ticks={number: str(number) for number in layers[:: -(-len(layers) // 16)]},
        y_range=(-0.03, 1.03),
        hover="%{y:.3f}",
    )
    st.subheader("What the scale does to softmax, layer by layer", anchor=False)
    left, right = st.columns(2, gap="large")
    alt = "Mean entropy of the heads in each layer, a line for each scale."
    with left:
        chart(figure, "over_layers", alt)
    rows = ["| Scale | Entropy | Largest weight |", "| --- | ---: | ---: |"]
    for title, table in tables.items():
        largest = share(float(table["largest_weight"].mean()))
        rows.append(f"| {title} | {table['entropy_share'].mean():.2f} | {largest} |")
    right.markdown("The mean over all heads. " + ABOUT_ENTROPY)
    right.markdown("\n".join(rows))


def show_table(heads: Heads) -> None:
    """Every head's numbers, to sort by any of them."""
    with st.expander(
        "All heads as a table", icon=":material/table:", key="heads_table", on_change="rerun"
    ) as box:
        if not box.open:
            return
        names = ["layer", *(name for name in COLUMNS if name != "layer")]
        sizes = heads.table[["d_k", "scale", "queries"]]
        shown = pd.concat([heads.table["head"], sizes, heads.table[names]], axis=1)
        shown.insert(0, "name", [f"L{n}H{h}" for n, h in heads.table[["layer", "head"]].to_numpy()])
        configs = {
            name: st.column_config.NumberColumn(
                f"{COLUMNS[name].title} ({COLUMNS[name].unit})",
                format=COLUMNS[name].format,
                help=COLUMNS[name].meaning,
            )
            for name in names
        }
        configs["scale"] = st.column_config.NumberColumn("Scale (factor)", format="%.4g")
        configs["queries"] = st.column_config.NumberColumn("Queries (count)", format="%d")
        order = ["name", *names[1:], "d_k", "scale", "queries"]
        st.dataframe(shown[order], column_config=configs, hide_index=True)
        st.caption(
            "Means over the queries that have at least two keys; padding is left out. "
            "Click a column's name to sort."
        )


def _numbers(column: pd.Series) -> npt.NDArray[np.float64]:
    return column.to_numpy(dtype=np.float64)
