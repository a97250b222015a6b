"""All numbers of all heads as a table, on the page All heads: sorted, filtered, saved, clicked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from explorer.head_table import as_csv, filtered, header, named
from explorer.ui import address, controls
from explorer.ui.all_heads import choose
from explorer.ui.all_heads_numbers import Numbers

EVERY_LAYER = ""
CHOSEN = ("layer", "head")


def show(numbers: Numbers, layer: int, head: int, metric: str) -> None:
    """The table with its filters; a click on a row chooses that head.

    What is filtered by, and the metric that the heatmap shows, stand first.
    """
    st.subheader("All numbers", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layers = _choose_layers(list(numbers.stack.layer_numbers))
        name = _choose_filter(numbers)
        low = high = None
        if name is not None:
            low, high = _choose_end("at_least", "At least"), _choose_end("at_most", "At most")
        costly = controls.choose_yes(
            "costly",
            "Also the costly numbers",
            help="The variance of the scores and the effective rank: seconds for a long text.",
        )
    shown = [n for n, each in numbers.metrics.items() if costly or not each.costly]
    names = list(dict.fromkeys([*filter(None, [name, metric]), *shown]))
    table = named(
        filtered(numbers.table(names), layers=layers, name=name, at_least=low, at_most=high)
    )
    total = len(numbers.places)
    if table.empty:
        st.info(f"None of the {total} heads fits. Widen the range or choose more layers.")
        return
    st.caption(
        f"{len(table)} of {total} heads. A click on a column's name sorts, one on the box at the "
        "left of a row chooses that head."
    )
    _rows(table.reset_index(drop=True), names, numbers, layer, head)
    st.download_button(
        "Save as CSV",
        as_csv(table),
        file_name="heads.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        help="The heads of the table, their numbers and units; nothing of your text.",
    )


def _rows(
    table: pd.DataFrame, names: Sequence[str], numbers: Numbers, layer: int, head: int
) -> None:
    """The heads that are left, the chosen one marked."""
    chosen = table.index[(table["layer"] == layer) & (table["head"] == head)].tolist()
    configs: dict[str, Any] = {
        "name": st.column_config.TextColumn("Head", pinned=True),
        "layer": st.column_config.NumberColumn("Layer", format="%d"),
        "head": st.column_config.NumberColumn("Number in layer", format="%d"),
    }
    for name in names:
        metric = numbers.metrics[name]
        configs[name] = st.column_config.NumberColumn(
            header(name), format="%.3f", help=f"{metric.meaning} Source: {metric.source}"
        )

    def clicked() -> None:
        rows = st.session_state["numbers_table"].selection.rows
        if rows and 0 <= rows[0] < len(table):
            choose(*(int(table[each].iloc[rows[0]]) for each in CHOSEN))

    # The marked row is the chosen head, whichever picture it was chosen in.
    st.session_state["numbers_table"] = {
        "selection": {"rows": chosen[:1], "columns": [], "cells": []}
    }
    st.dataframe(
        table,
        column_config=configs,
        column_order=["name", *names, *CHOSEN],  # on a phone the numbers come first
        hide_index=True,
        height=min(36 * len(table) + 38, 420),
        key="numbers_table",
        on_select=clicked,
        selection_mode="single-row",
        placeholder="–",
        alt="The numbers of each head, a row a head and a column a number.",
    )


def _choose_layers(there: list[int]) -> list[int] | None:
    """Some of the layers; None for all."""
    if len(there) < 2:
        return None
    address.start("layers", EVERY_LAYER, _layers_parser(there))
    state = st.session_state
    kept = [n for n in _numbers(state["layers"]) if n in there]
    state["layers_shown"] = kept

    def keep() -> None:
        state["layers"] = ",".join(map(str, sorted(state["layers_shown"])))

    st.multiselect(
        "Layers", there, key="layers_shown", on_change=keep, placeholder="all", width=220
    )
    state["layers"] = ",".join(map(str, kept))
    address.finish("layers", EVERY_LAYER)
    return kept or None


def _numbers(written: str) -> list[int]:
    return [int(number) for number in written.split(",") if number]


def _layers_parser(there: list[int]) -> Callable[[str], str]:
    def parse(given: str) -> str:
        parts = given.split(",")
        if not all(p.isascii() and p.isdigit() and int(p[:9]) in there for p in parts):
            raise ValueError(
                f"The link asks for layers “{given[:60]}”. There are {there[0]} to {there[-1]}, "
                "written as 0,3,5. Showing all layers."
            )
        return ",".join(map(str, sorted({int(p[:9]) for p in parts})))

    return parse


def _choose_filter(numbers: Numbers) -> str | None:
    """The metric whose range is filtered by; None for no such filter."""
    titles = {"none": "no number"} | {n: each.title for n, each in numbers.metrics.items()}
    name = controls.choose_one("by", titles, label="Only heads by")
    return None if name == "none" else name


def _choose_end(name: str, label: str) -> float | None:
    """An end of the range; None for none."""
    address.start(name, None, _end_parser(name))
    st.number_input(label, key=name, value=None, format="%.4g", placeholder="any", width=140)
    address.finish(name, None)
    found = st.session_state[name]
    return None if found is None else float(found)


def _end_parser(name: str) -> Callable[[str], float | None]:
    def parse(given: str) -> float | None:
        if not re.fullmatch(r"-?\d{0,9}\.?\d{1,9}(e-?\d{1,2})?", given) or not math.isfinite(
            float(given)
        ):
            raise ValueError(
                f"The link asks for {name} “{given[:60]}”. It is a number. Showing all."
            )
        return float(given)

    return parse
