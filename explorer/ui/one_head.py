"""One head on the Heads page: its map, one query's row in words and bars, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st
from torch import Tensor

from explorer.capture import AnyAttention, GivenWeights, Stack
from explorer.figures.domain import Kind, head_map_alt
from explorer.figures.heatmap import head_map
from explorer.tokens import Tokens
from explorer.ui import controls, frame, width
from explorer.ui.chart import chart
from explorer.ui.outline import outline
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.row_of_weights import WORTH_NAMING, telling, weight_bars, worth_naming
from explorer.ui.words import plain, share, short

LABELS = 110  # pixels that token labels take beside a map
SMALLEST, LARGEST = 200, 560  # pixels of a map's longer side
KINDS: dict[Kind, str] = {"weights": "Weights", "scores": "Scaled scores", "dots": "Dots"}
IN_TOOLTIP: dict[Kind, str] = {"weights": "weight", "scores": "scaled score", "dots": "dot"}
LARGEST_TABLE = 256
MOST_BARS, FEWER_BARS = 80, 40
"""Past so many keys bars would be hairlines; so many are drawn then."""


def show(stack: Stack, layer: int, head: int) -> Shown:
    """One head in full, and what of it is shown; a click on a cell chooses its query."""
    record = stack.layer(layer)
    kinds = ("weights",) if isinstance(record, GivenWeights) else tuple(KINDS)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        kind = controls.choose_one("show", {each: KINDS[each] for each in kinds}, buttons=True)
        hide = controls.choose_yes("hide_special", "Hide special tokens")
    rows, keys = controls.visible(stack, hide)
    shown = Shown.of(stack, record, head, rows, keys)
    others = {name: values for name, values in shown.values.items() if name != kind}
    figure = head_map(
        shown.values[kind],
        query_labels=shown.queries.texts,
        key_labels=shown.keys.texts,
        raw_query=shown.queries.raws,
        raw_key=shown.keys.raws,
        kind=kind,
        theme=frame.theme(),
        forbidden=shown.forbidden,
        padded_queries=np.array(shown.queries.padding),
        extra={IN_TOOLTIP[name]: values for name, values in others.items()},
        max_px=min(max(width.column() - LABELS, SMALLEST), LARGEST),
    )
    labels = shown.queries.texts, shown.keys.texts
    alt = head_map_alt(f"L{layer}H{head}", kind, *labels, shown.values[kind])
    chart(figure, "one_head", alt, tools=True)
    cell_clicks("one_head", "one_head_click", lambda click: _choose_query(click, rows))
    if hide:
        _say_hidden(record, head, shown)
    return shown


class Shown(NamedTuple):
    """The part of a head that is on the page."""

    rows: list[int]
    queries: Tokens
    keys: Tokens
    values: dict[Kind, npt.NDArray[np.float32]]
    """Weights, and scores and dots where they are known, each (rows, keys)."""
    forbidden: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        stack: Stack,
        record: AnyAttention,
        head: int,
        rows: list[int],
        keys: list[int],
    ) -> Shown:
        """Some rows and keys of one head, as arrays."""
        values: dict[Kind, npt.NDArray[np.float32]]
        values = {"weights": _array(record.weights([head], rows, keys))}
        if not isinstance(record, GivenWeights):
            values["scores"] = _array(record.scores([head], rows, keys))
            values["dots"] = _array(record.dots([head], rows, keys))
        forbidden = ~record.allowed([head], rows, keys)[0].cpu().numpy()
        queries, columns = stack.query_tokens.select(rows), stack.key_tokens.select(keys)
        return cls(rows, queries, columns, values, forbidden)


def _array(of_one_head: Tensor) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = of_one_head[0].float().cpu().numpy()
    return found


def _choose_query(click: Click, rows: list[int]) -> None:
    if 0 <= click.y < len(rows):
        st.session_state["query"] = rows[click.y]


def _say_hidden(record: AnyAttention, head: int, shown: Shown) -> None:
    whole = _array(record.weights([head], shown.rows)).sum(-1)
    hidden = float((whole - shown.values["weights"].sum(-1)).mean())
    st.caption(
        f"The hidden special tokens get {share(hidden)} of these queries' weight on average. "
        "What is left is shown as it is, not scaled up to 1."
    )


def show_query(shown: Shown) -> None:
    """One query's row: in words, and as bars over the keys."""
    names = dict(zip(shown.rows, map(short, shown.queries.texts), strict=True))
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("One query", anchor=False)
        position = controls.choose_query(shown.rows, names)
        at = shown.rows.index(position)
        weights, forbidden = shown.values["weights"][at], shown.forbidden[at]
        st.markdown(_in_words(names[position], weights, shown.keys.texts))
        st.caption(
            "A weight says how much of a key's value goes into this head's output for this query. "
            "It does not say how much the key matters for what the model predicts."
        )
        outline("one_head", x=(0, len(shown.keys) - 1), y=(at, at), width=2)
    with right:
        weight_bars(
            "one_row",
            "The weights of the chosen query, a bar for each key in the order of the text.",
            weights,
            forbidden,
            shown.keys,
            telling([weights], MOST_BARS, FEWER_BARS),
            what="keys",
            width_px=min(max(width.column() - LABELS - 40, SMALLEST), 360),
            max_px=LARGEST,
        )


def _in_words(name: str, weights: npt.NDArray[np.float32], keys: Sequence[str]) -> str:
    """The row's largest weights as a sentence."""
    if not np.isfinite(weights).any():
        return "This row holds no numbers."
    parts = [
        f"**{plain(short(keys[n]))}** ({share(float(weights[n]))})".replace(" %", "\u00a0%")
        for n in worth_naming(weights, 3)
    ]
    if not parts:
        return f"**{plain(name)}** gives none of these keys as much as {share(WORTH_NAMING)}."
    most = "weight goes" if len(parts) == 1 else "largest weights go"
    return f"The {most} from **{plain(name)}** to {', '.join(parts)}."


def show_table(stack: Stack, layer: int, head: int) -> None:
    """The same weights as a table, for those who can't see the picture."""
    with st.expander(
        "This head as a table", icon=":material/table:", key="table", on_change="rerun"
    ) as box:
        if not box.open:
            return
        n_q, n_k = len(stack.query_tokens), len(stack.key_tokens)
        if max(n_q, n_k) > LARGEST_TABLE:
            st.caption(f"The first {LARGEST_TABLE} queries and keys of {n_q} and {n_k}.")
        rows, keys = slice(0, LARGEST_TABLE), slice(0, LARGEST_TABLE)
        weights = _array(stack.layer(layer).weights([head], rows, keys))
        labels = [f"{n} {short(text)}" for n, text in enumerate(stack.query_tokens.texts[rows])]
        columns = [f"{n} {short(text)}" for n, text in enumerate(stack.key_tokens.texts[keys])]
        shown = pd.DataFrame(weights, index=labels, columns=columns).rename_axis("Query")
        four_digits = st.column_config.NumberColumn(format="%.4f")
        st.dataframe(shown, column_config=dict.fromkeys(columns, four_digits))
