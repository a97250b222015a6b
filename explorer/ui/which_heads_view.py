"""What came of switching each head off: the effects as a heatmap, in words, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.capture import Stack
from explorer.effects import HeadEffect
from explorer.figures.heads_heatmap import heads_heatmap, heads_heatmap_alt
from explorer.outcomes import Question, entry_text
from explorer.ui import address, changes, frame, width
from explorer.ui import what_if_words as say
from explorer.ui.chart import chart
from explorer.ui.outline import outline
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.what_if import Runs

LABELS = 68  # pixels beside the heatmap's cells
SMALL = 0.05
"""Effects that are all below it are shown in thousandths."""


@runtime_checkable
class Tried(Protocol):
    """Heads that were tried, all or some."""

    @property
    def found(self) -> Sequence[HeadEffect]: ...
    @property
    def total(self) -> int: ...
    @property
    def stopped(self) -> bool: ...


def effects(
    runs: Runs,
    stack: Stack,
    question: Question,
    tried: Tried,
    layer: int,
    head: int,
    beside: DeltaGenerator,
) -> None:
    """The effects by layer and head; a click chooses a head."""
    if tried.stopped:
        st.info(
            f"Stopped after {len(tried.found)} of {tried.total} heads; the others are hatched.",
            icon=":material/info:",
        )
    if not any(np.isfinite(each.change) for each in tried.found):
        if tried.found:
            st.info("No head has an effect that is a number here.", icon=":material/info:")
        return
    table, absent = _laid_out(stack, tried.found)
    title, unit = _named(runs, question)
    small = float(np.nanmax(np.abs(table))) < SMALL
    if small:
        table, unit = table * 1000, f"thousandths of {_of(unit)}" if unit else "thousandths"
    figure = heads_heatmap(
        table,
        title=title,
        unit=unit,
        theme=frame.theme(),
        absent=absent,
        centred=True,
        width_px=width.column() - LABELS,
    )
    alt = heads_heatmap_alt(table, title, unit)
    chart(figure, "effects", alt)
    outline("effects", x=(head, head), y=(layer, layer))
    cell_clicks("effects", "effects_click", lambda click: _clicked(click, stack))
    st.caption("A click on a cell opens that head below.")
    with beside:
        _say_strongest(runs, stack, question, tried.found)
        _table(tried, title, _named(runs, question)[1])


def _table(tried: Tried, title: str, unit: str) -> None:
    with st.expander("These effects as a table", icon=":material/table:"):
        rows = [(f"L{n}H{h}", n, h, change) for n, h, change in tried.found]
        names = ["name", "layer", "head", f"{title}, {unit}" if unit else title]
        shown = pd.DataFrame(rows, columns=names).sort_values(names[3], key=abs, ascending=False)
        column = st.column_config.NumberColumn(format="%.5f")
        st.dataframe(shown, hide_index=True, column_config={names[3]: column})


def _of(unit: str) -> str:
    return "a nat" if unit == "nats" else "its length"


def _laid_out(
    stack: Stack, found: Sequence[HeadEffect]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    table = np.full((stack.n_layers, stack.n_heads), np.nan)
    absent = np.ones(table.shape, dtype=bool)
    for number in stack.layer_numbers:
        absent[number, : stack.layer(number).n_heads] = False
    for each in found:
        table[each.layer, each.head] = each.change
    return table, absent


def _named(runs: Runs, question: Question) -> tuple[str, str]:
    """What is measured, and its unit; a cosine has none."""
    if question.kind == "similarity":
        return "Change of the two texts' cosine", ""
    if question.kind == "drift":
        return "How far the last hidden states move", "share of their length"
    name = entry_text(runs.setting.loaded, question.kind, question.entry)
    return f"Change of the log-probability of “{name}”", "nats"


def _say_strongest(
    runs: Runs, stack: Stack, question: Question, found: Sequence[HeadEffect]
) -> None:
    """The heads whose loss hurts and helps the most, to open and to switch off."""
    known = [each for each in found if np.isfinite(each.change)]
    worst, best = min(known, key=lambda e: e.change), max(known, key=lambda e: e.change)
    if worst.change == best.change == 0:
        st.markdown("No head has any effect on it.")
        return
    named = [("hurts", worst)] if question.kind != "drift" else [("moves", best)]
    words = {
        "similarity": f"Without **L{worst.layer}H{worst.head}** the two texts become the least "
        f"alike: {say.signed(worst.change, 4)}. No other head's loss costs them as much.",
        "drift": f"Without **L{best.layer}H{best.head}** the hidden states move the most: "
        f"{say.number(100 * best.change, 1)} % of their length.",
    }.get(
        question.kind,
        f"The loss of **L{worst.layer}H{worst.head}** hurts the most: "
        f"{say.signed(worst.change, 2)} nats.",
    )
    if question.kind != "drift" and worst.change >= 0:
        words = "The loss of no head hurts here."
        named = []
    if question.kind != "drift" and best.change > 0:
        what = "their cosine" if question.kind == "similarity" else "it"
        words += (
            f" Without **L{best.layer}H{best.head}** {what} rises the most: "
            f"{say.signed(best.change, 4 if question.kind == 'similarity' else 2)}."
        )
        named.append(("helps", best))
    st.markdown(words)
    place = list(runs.before[0].stacks).index(stack.name)
    with st.container(horizontal=True, gap="small"):
        for name, each in named:
            st.button(
                f"Open L{each.layer}H{each.head}",
                key=f"open_{name}",
                icon=":material/search:",
                on_click=_choose,
                args=(each.layer, each.head),
            )
            changes.switch_button(place, each.layer, each.head, f"switch_{name}")


def _clicked(click: Click, stack: Stack) -> None:
    if click.y in stack.layer_numbers and 0 <= click.x < stack.layer(click.y).n_heads:
        _choose(click.y, click.x)


def _choose(layer: int, head: int) -> None:
    address.put(layer=layer, head=head)
