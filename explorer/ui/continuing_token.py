"""One added token on the page Continue: what chose it looked at, and the ten likeliest; the table.

Both sides are drawn alike, over one range of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from explorer.continuing_steps import Row, Step, copying, pieces
from explorer.figures.named_bars import named_bars, named_bars_alt
from explorer.models import LoadedModel
from explorer.outcomes import entry_text, raw_entry
from explorer.tokens import Tokens
from explorer.ui import address, changes, continuing, controls, frame, width
from explorer.ui import continuing_words as say
from explorer.ui.chart import chart
from explorer.ui.continuing_run import PICKED, named, picked
from explorer.ui.continuing_writing import Both
from explorer.ui.row_of_weights import WORTH_NAMING, telling, weight_bars, worth_naming
from explorer.ui.what_if_words import probability
from explorer.ui.words import plain, share, short

TITLES = ("As the model is", "With the change")
LABELS = 150  # pixels beside the bars
SMALLEST, WIDEST = 160, 360  # pixels of the bars' plot
MOST_BARS, FEWER_BARS = 40, 32
"""Past so many keys not every bar has room for its name; so many are drawn then."""
TALLEST = 620  # pixels of the bars' plot
WORTH_OPENING = 0.1
"""Of its weight: with less no head is said to look there."""
SLIDER = "token_by_token"


class Seen(NamedTuple):
    """One side's token, and what was looked at to write it."""

    title: str
    name: str
    step: Step


def show(both: Both) -> None:
    """The chosen token of each side: its row of weights, and what else could have come."""
    most = max(len(each) for each in both.steps)
    if most == 0:
        address.finish(PICKED, 0)
        return
    st.subheader("Token by token", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        at = _choose(both, most)
        stack = continuing.choose_stack(both.setting)
        layer, head = controls.choose_head(stack)
        place = list(both.setting.capture.stacks).index(stack.name)
        changes.switch_button(place, layer, head, "switch_head")
    seen = _seen(both, at)
    rows = [each.step.rows[stack.name][layer] for each in seen]
    keys = [each.step.keys[stack.name] for each in seen]
    st.markdown(
        f"**What it looked at, in L{layer}H{head}.** The last query chooses the token, by what its "
        "heads have gathered: these are its weights on everything before."
    )
    if stack.name == "decoder":
        _copying(seen[0], place, layer, head)
    _side_by_side(both, seen, rows, keys, head, f"L{layer}H{head}")
    _all_heads(seen, stack.name)


def _copying(seen: Seen, place: int, layer: int, head: int) -> None:
    """The head that looks at where the token stands already, to open or switch off."""
    found = copying(seen.step)
    if found is None or found.weight < WORTH_OPENING:
        return
    name = f"L{found.layer}H{found.head}"
    sentence = (
        f"{seen.title}: {say.quoted(seen.name)} stands in the text before. Of all heads "
        f"**{name}** looks there the most, with **{share(found.weight)}** of its weight."
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(sentence, width="content")
        if (found.layer, found.head) != (layer, head):
            st.button(
                f"Open {name}",
                key="open_copying",
                icon=":material/search:",
                on_click=address.put,
                kwargs={"layer": found.layer, "head": found.head},
            )
            changes.switch_button(place, found.layer, found.head, "switch_copying")


def _choose(both: Both, most: int) -> int:
    """The added token that is looked at, from 1."""
    now = picked(both)
    if most > 1:
        st.session_state[SLIDER] = now
        st.slider(
            "Added token",
            1,
            most,
            key=SLIDER,
            on_change=_slid,
            help="A click on a token above chooses it too.",
            width=300,
        )
    address.finish(PICKED, 0)
    return now


def _slid() -> None:
    st.session_state[PICKED] = st.session_state[SLIDER]


def _seen(both: Both, at: int) -> list[Seen]:
    """Each side's token; a side that has ended before has none."""
    found = []
    for title, steps in zip(TITLES, both.steps, strict=False):
        if len(steps) >= at:
            ids = [step.id for step in steps[:at]]
            written = pieces(both.setting.loaded, both.setting.before, ids)
            name = named(both.setting.loaded, written[-1:], steps[at - 1 : at])[0]
            found.append(Seen(title, name, steps[at - 1]))
        else:
            st.info(f"{title}: the text has ended before its {say.ordinal(at)} added token.")
    return found


def _side_by_side(
    both: Both,
    seen: Sequence[Seen],
    rows: Sequence[Row],
    keys: Sequence[Tokens],
    head: int,
    name: str,
) -> None:
    shown = telling([row.weights[head] for row in rows], MOST_BARS, FEWER_BARS)
    top = max(float(np.nan_to_num(row.weights[head]).max(initial=0.0)) for row in rows) or 1.0
    is_drawn = both.output.temperature > 0
    likeliest = max(
        100 * max(each.probability, each.chance if is_drawn else 0.0)
        for one in seen
        for each in one.step.likeliest
    )
    if len(seen) > 1 and seen[0].step.id == seen[1].step.id:
        st.caption("Both sides write this token; what they looked at may differ.")
    columns = st.columns(2, gap="large")
    for at, (each, row, tokens) in enumerate(zip(seen, rows, keys, strict=True)):
        weights = row.weights[head]
        with columns[at]:
            st.markdown(
                f"{each.title}: **{say.quoted(each.name)}**, {probability(each.step.probability)}."
                f" {_in_words(each.step.query, weights, tokens.texts)}"
            )
            weight_bars(
                f"looked_{at}",
                f"The weights of the last query in {name}, a bar for each token before, first on "
                "top.",
                weights,
                row.forbidden[head],
                tokens,
                shown,
                what="tokens",
                width_px=min(max(width.column() - LABELS, SMALLEST), WIDEST),
                max_px=TALLEST,
                top=top,
            )
        with columns[at if len(seen) > 1 else 1]:
            _likeliest(at, both.setting.loaded, each, likeliest, is_drawn)


def _in_words(query: str, weights: npt.NDArray[np.float32], keys: Sequence[str]) -> str:
    """Where the last query looks the most."""
    if not np.isfinite(weights).any():
        return "This row holds no numbers."
    if not np.nan_to_num(weights).any():
        return "The last query has no key left that it may use, so all its weights are 0."
    parts = [
        f"“{plain(short(keys[n]))}” at {n} ({share(float(weights[n]))})".replace(" %", "\u00a0%")
        for n in worth_naming(weights, 2)
    ]
    name = f"The last query, “{plain(short(query))}”,"
    if not parts:
        return f"{name} gives no token as much as {share(WORTH_NAMING)}."
    return f"{name} looks most at {' and '.join(parts)}."


def _likeliest(at: int, loaded: LoadedModel, seen: Seen, top: float, is_drawn: bool) -> None:
    """The ten tokens that the model found likeliest here."""
    likeliest = seen.step.likeliest
    how = ": by the model, and when drawn after temperature and top-k" if is_drawn else ""
    st.markdown(f"**The {len(likeliest)} likeliest here**{how}")
    names = [entry_text(loaded, "next", each.id) for each in likeliest]
    series = {"by the model": [100 * each.probability for each in likeliest]}
    if is_drawn:
        series["when drawn"] = [100 * each.chance for each in likeliest]
    title = "probability, %"
    figure = named_bars(
        names,
        series,
        theme=frame.theme(),
        title=title,
        raw=[raw_entry(loaded, each.id) for each in likeliest],
        top=top,
        digits=1,
        width_px=min(width.column() - 10, WIDEST + 120),
    )
    alt = named_bars_alt(title, names, series)
    if seen.step.id not in [each.id for each in likeliest]:
        st.caption(f"{say.quoted(seen.name)}, which was drawn, is less likely than all of them.")
    chart(figure, f"likeliest_{at}", alt)


def _all_heads(seen: Sequence[Seen], stack: str) -> None:
    """Where each head of each layer looks the most, at this token."""
    with st.expander(
        "Where all heads looked", icon=":material/table:", key="heads_looked", on_change="rerun"
    ) as box:
        if not box.open:
            return
        table: dict[str, list[object]] = {}
        rows = seen[0].step.rows[stack]
        names = [(number, h) for number, row in rows.items() for h in range(len(row.weights))]
        table["head"] = [f"L{number}H{h}" for number, h in names]
        for each in seen:
            found = [each.step.rows[stack][number].weights[h] for number, h in names]
            places = [int(np.nan_to_num(row).argmax()) for row in found]
            texts = each.step.keys[stack].texts
            table[f"{each.title}: most at"] = [f"{n}  {short(texts[n])}" for n in places]
            table[f"{each.title}: weight"] = [
                float(row[n]) for row, n in zip(found, places, strict=True)
            ]
        numbers = [name for name in table if name.endswith("weight")]
        four = st.column_config.NumberColumn(format="%.4f")
        st.dataframe(
            pd.DataFrame(table), hide_index=True, column_config=dict.fromkeys(numbers, four)
        )


def table(both: Both) -> None:
    """Both continuations as a table, for those who can't see the picture."""
    if not any(both.steps):
        return
    with st.expander("Both texts as a table", icon=":material/table:"):
        most = max(len(each) for each in both.steps)
        columns: dict[str, list[object]] = {"added token": list(range(1, most + 1))}
        loaded, before = both.setting.loaded, both.setting.before
        for title, steps in zip(TITLES, both.steps, strict=False):
            written = pieces(loaded, before, [step.id for step in steps])
            gap = [None] * (most - len(steps))
            columns[title] = [*named(loaded, written, steps), *gap]
            columns[f"{title}: as written"] = [*(raw_entry(loaded, s.id) for s in steps), *gap]
            columns[f"{title}: probability"] = [*(s.probability for s in steps), *gap]
        numbers = [name for name in columns if name.endswith("probability")]
        four = st.column_config.NumberColumn(format="%.4f")
        st.dataframe(
            pd.DataFrame(columns), hide_index=True, column_config=dict.fromkeys(numbers, four)
        )
