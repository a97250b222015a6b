"""One head on the page What if: its weights before and after, in one range of colours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import streamlit as st

from explorer.capture import AnyAttention, Stack
from explorer.changed_attention import ChangedAttention
from explorer.ui import changes, controls
from explorer.ui.two_maps import OneOfTwo, two_maps
from explorer.ui.what_if import Runs
from explorer.ui.what_if_words import number, signed
from explorer.ui.words import plain, short

ROUNDING = 1e-6  # a single head's sums may be made in another order


def choose(runs: Runs, stack: Stack) -> tuple[int, int]:
    """The head that is shown: its layer and number."""
    st.subheader("One head before and after", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layer, head = controls.choose_head(stack)
        place = list(runs.before[0].stacks).index(stack.name)
        changes.switch_button(place, layer, head, "switch_head")
        controls.choose_yes("hide_special", "Hide special tokens")
    return layer, head


def maps(runs: Runs, stack: Stack, layer: int, head: int) -> None:
    """The head's weights without and with the changes, and the largest difference in words."""
    hide = bool(st.session_state["hide_special"])
    rows, keys = controls.visible(stack, hide)
    records = [each.layer(layer) for each in runs.stack(stack.name)]
    tables = [_weights(record, head, rows, keys) for record in records]
    barred = [~record.allowed([head], rows, keys)[0].cpu().numpy() for record in records]
    queries, columns = stack.query_tokens.select(rows), stack.key_tokens.select(keys)
    _say(records[1], head, tables, queries.texts, columns.texts)
    titles = ("Before", "After" if runs.is_changed else "After: nothing is changed")
    both = [
        OneOfTwo(f"head_{at}", f"**{title}**", f"L{layer}H{head} {title.lower()}", table, forbidden)
        for at, title, table, forbidden in zip(
            ("before", "after"), titles, tables, barred, strict=True
        )
    ]
    two_maps(both, queries, columns, tools=True)


def _weights(
    record: AnyAttention, head: int, rows: list[int], keys: list[int]
) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = record.weights([head], rows, keys)[0].float().cpu().numpy()
    return found


def _say(
    record: AnyAttention,
    head: int,
    tables: list[npt.NDArray[np.float32]],
    queries: tuple[str, ...],
    keys: tuple[str, ...],
) -> None:
    """The largest change of a weight, and what the maps don't show of a head that is replaced."""
    before, after = tables
    gap = np.nan_to_num(np.abs(after - before))
    query, key = divmod(int(gap.argmax()), gap.shape[1])
    words = "Both maps share one range of colours. "
    if gap.max() < ROUNDING:
        words += "This head's weights are the same in both."
    else:
        was, now = float(before[query, key]), float(after[query, key])
        words += (
            f"The largest change is {signed(now - was)}, of query "
            f"**{plain(short(queries[query]))}** on key **{plain(short(keys[key]))}**: "
            f"{number(was)} → {number(now)}."
        )
    st.markdown(words)
    if isinstance(record, ChangedAttention):
        here = [each for each in record.interventions if each.heads is None or head in each.heads]
        if any(each.output == "off" for each in here):
            st.caption("It is switched off: the weights are those it has, its output is zero.")
        elif any(each.output == "mean" or each.output_of is not None for each in here):
            st.caption("Its output is replaced, so these weights bring nothing into the model.")
