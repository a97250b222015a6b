"""The page Compare: two sides chosen, three pictures, what differs, tables and links."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from explorer.divergence import compare
from explorer.paired import Map, Paired, paired
from explorer.ui import address, compare_fields, compare_maps, compare_place, controls, frame, width
from explorer.ui.compare_fields import Fields
from explorer.ui.compare_sides import Chosen, choose_side
from explorer.ui.words import plain, share, tiny

MOST_CELLS = 2000
LARGEST_TABLE = 256
LACKING = 1e-3
"""A share of a row beyond rounding."""
SHARED = ("device", "dtype", "specials")
ABOUT = (
    "The difference says where the two give different weight on this text: orange where the right "
    "gives more, blue where the left does. It does not say which of the two matters more to the "
    "model, nor that they differ as much on another text."
)


def choose() -> tuple[Chosen, Chosen, bool]:
    """Both sides, and whether words are compared. Ends the page with sentences where it can't."""
    compare_fields.come_from_another_page()
    compare_fields.bring_in()
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        linked = compare_fields.choose_link()
        by_words = controls.choose_yes(
            "words",
            "By words",
            help="Weights summed over a key word's pieces and averaged over a query word's. "
            "Different tokenizers are always compared by words.",
        )
        st.button(
            "Swap sides",
            icon=":material/swap_horiz:",
            on_click=compare_fields.swap,
        )
        options = controls.choose_options()
    sides = []
    for name, place in zip(("left", "right"), width.side_by_side(), strict=True):
        with place:
            st.subheader(name.capitalize(), anchor=False)
            sides.append(choose_side(Fields(name, linked), *options))  # type: ignore[arg-type]
    compare_fields.arrived()
    left, right = sides
    if left is None or right is None:
        address.stop()
    return left, right, by_words


def bring_together(left: Chosen, right: Chosen, by_words: bool) -> Paired:
    """The two maps over the same places, where they can be."""
    same = [ours == theirs for ours, theirs in zip(left.texts, right.texts, strict=True)]
    return paired(left.side, right.side, same_queries=same[0], same_keys=same[1], by_words=by_words)


def show(left: Chosen, right: Chosen, pair: Paired) -> None:
    """The pictures, the numbers, and one query or key of both sides."""
    sides = (left, right)
    pictures = compare_maps.pictures_of(pair, sides)
    found = pair.compared
    if found is None:
        st.info(plain(pair.note), icon=":material/info:")
    elif math.isnan(found.divergence):
        st.info("No query has numbers on both sides, so nothing can be compared.")
    elif not found.largest_difference:
        st.info("Both sides are the same map: nothing differs.", icon=":material/info:")
    after = st.container()  # the place is chosen below the first pictures, and framed in them
    lower = st.container()
    place = None
    if found is not None:
        with lower:
            first, second = width.side_by_side()
            with second:
                st.markdown(compare_place.compared_words(found))
                st.caption(plain(pair.note))
                st.caption(ABOUT)
                compare_place.most_different(pair)
                place = compare_place.choose_place(pair)
            with first:
                st.markdown("**Right − left**")
                compare_maps.show_map(pictures, 2, place)
    with after:
        for at, column in enumerate(width.side_by_side()):
            with column:
                side = sides[at]
                st.markdown(f"**{('Left', 'Right')[at]}: {plain(_named(side))}**")
                compare_maps.show_map(pictures, at, place)
                _open_in_heads(side)
    if found is not None and place is not None:
        st.subheader("One query or key, on both sides", anchor=False)
        compare_place.show_place(pair, place, sides)
    else:
        st.caption(
            "Without a difference only the pictures can be read side by side, in one range of "
            "colours."
        )


def _named(side: Chosen) -> str:
    return " · ".join([side.title, side.loaded.title, *side.look.changes])


def _open_in_heads(side: Chosen) -> None:
    """A link to this head on the Heads page, with the same model and text."""
    name, _, _, text, pair, _, cut = side.key
    target: dict[str, Any] = {"model": name, "text": text, "pair": pair, "stack": side.stack.name}
    target |= {"layer": side.look.layer, "head": side.look.head, "cut": "yes" if cut else None}
    target |= {shared: st.query_params.get(shared) for shared in SHARED}
    label = f"Open L{side.look.layer}H{side.look.head} in Heads"
    choices = {key: str(value) for key, value in target.items() if value is not None}
    frame.link_to("pages/heads.py", label, ":material/open_in_new:", choices, "content")


def proof(pair: Paired) -> None:
    """One line that says it is true, measured on the two maps shown."""
    parts = [
        f"{name}: {_sums(each)}" for name, each in (("left", pair.left), ("right", pair.right))
    ]
    if pair.compared is not None:
        swapped = compare(pair.right.weights, pair.left.weights, pair.left_out)
        gap = (swapped.per_query - pair.compared.per_query).abs().nan_to_num()
        parts.append(
            f"the divergence of right and left is that of left and right within "
            f"{tiny(float(gap.max()))}"
        )
    st.caption(f"**Checked:** {' · '.join(parts)}")


def _sums(each: Map) -> str:
    """What must hold for a map's rows, measured."""
    unknown = int((~each.weights[~each.left_out].isfinite()).sum())
    if unknown:
        return f"{unknown:,} weights are not numbers (NaN), drawn hatched"
    sums = each.weights[~each.left_out].double().sum(-1)
    over = sums - 1
    lacking = float(-over.clamp(max=0).mean()) if len(over) else 0.0
    barred = each.weights[~each.allowed].nan_to_num()
    forbidden = f"weight on forbidden keys {tiny(float(barred.max()) if len(barred) else 0.0)}"
    if lacking > LACKING:
        most = tiny(max(float(over.max()), 0.0))
        return (
            f"{share(lacking)} of a row is elsewhere (a sink, or tokens without a partner), "
            f"no row exceeds 1 by more than {most}, {forbidden}"
        )
    largest = float(over.abs().max()) if len(over) else 0.0
    return f"rows sum to 1 within {tiny(largest)}, {forbidden}"


def show_tables(left: Chosen, right: Chosen, pair: Paired) -> None:
    """The same numbers as tables, for those who can't see the pictures."""
    with st.expander(
        "This comparison as tables", icon=":material/table:", key="compare_table", on_change="rerun"
    ) as box:
        if not box.open:
            return
        found = pair.compared
        if found is None:
            for name, each in (("Left", pair.left), ("Right", pair.right)):
                st.markdown(f"**{name}**")
                st.dataframe(_whole(each))
            return
        queries, keys = pair.left.query_labels, pair.left.key_labels
        st.markdown("**Each query**")
        st.dataframe(
            pd.DataFrame(
                {
                    "query": [f"{at} {text}" for at, text in enumerate(queries)],
                    "divergence (nats)": found.per_query.numpy(),
                    "left looks most at": _most(pair.left),
                    "right looks most at": _most(pair.right),
                }
            ),
            hide_index=True,
        )
        measures = f"left {left.measure}, right {right.measure}, as shares of 1"
        st.markdown(f"**Each cell** ({measures}), the largest differences first")
        ours, theirs = pair.left.weights.numpy(), pair.right.weights.numpy()
        order = np.argsort(-np.nan_to_num(np.abs(theirs - ours)), axis=None, kind="stable")
        rows, columns = np.unravel_index(order[:MOST_CELLS], ours.shape)
        if len(order) > MOST_CELLS:
            st.caption(f"The first {MOST_CELLS:,} of {len(order):,}.")
        st.dataframe(
            pd.DataFrame(
                {
                    "query": [f"{at} {queries[at]}" for at in rows],
                    "key": [f"{at} {keys[at]}" for at in columns],
                    "left": ours[rows, columns],
                    "right": theirs[rows, columns],
                    "right − left": (theirs - ours)[rows, columns],
                }
            ),
            hide_index=True,
        )


def _most(each: Map) -> list[str]:
    found = each.weights.nan_to_num().argmax(-1).tolist()
    return [
        "–" if out else f"{at} {each.key_labels[at]}"
        for at, out in zip(found, each.left_out.tolist(), strict=True)
    ]


def _whole(each: Map) -> pd.DataFrame:
    return pd.DataFrame(
        each.weights.numpy()[:LARGEST_TABLE, :LARGEST_TABLE],
        index=[f"{at} {text}" for at, text in enumerate(each.query_labels)][:LARGEST_TABLE],
        columns=[f"{at} {text}" for at, text in enumerate(each.key_labels)][:LARGEST_TABLE],
    )
