"""Further on the page What if: every position's divergence, and the drift layer by layer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from explorer import effects
from explorer.figures.drift import drift_alt, drift_map
from explorer.figures.named_bars import named_bars, named_bars_alt
from explorer.outcomes import positions_of
from explorer.ui import frame, width
from explorer.ui import what_if_words as say
from explorer.ui.chart import chart
from explorer.ui.what_if import Runs
from explorer.ui.words import short

LABELS = 90  # pixels beside the drift's cells
MOST_BARS = 60


def show(runs: Runs) -> None:
    """Layer by layer and position by position; worked out when it is opened."""
    if not runs.is_changed:
        return
    label = "Layer by layer: how far the hidden states move"
    only = runs.setting.kind == "drift"
    icon = ":material/layers:"
    with st.expander(label, icon=icon, expanded=only, key="drift", on_change="rerun") as box:
        for at in range(len(runs.before) if box.open else 0):
            if len(runs.before) > 1:
                st.markdown(f"**{('First', 'Second')[at]} text**")
            _drift(runs, at)
    if runs.setting.kind in ("next", "masked", "labels"):
        label = "Position by position: how far the predictions move (KL divergence)"
        icon = ":material/bar_chart:"
        with st.expander(label, icon=icon, key="divergence", on_change="rerun") as box:
            if box.open:
                _divergence(runs)


def _drift(runs: Runs, at: int) -> None:
    table: npt.NDArray[np.float32] = effects.drift(runs.before[at], runs.after[at]).numpy()
    tokens = positions_of(runs.before[at])
    if runs.setting.kind != "drift":  # said above
        st.markdown(say.drifted(table, tokens.texts))
    figure = drift_map(
        table,
        tokens.texts,
        theme=frame.theme(),
        padded=np.array(tokens.padding),
        raw=tokens.raws,
        width_px=_page() - LABELS,
    )
    alt = drift_alt(table, tokens.texts)
    chart(figure, f"drift_{at}", alt)
    names = [f"{place} {short(text)}" for place, text in enumerate(tokens.texts)]
    rows = ["input", *(f"layer {number}" for number in range(len(table) - 1))]
    shown = pd.DataFrame(table, index=rows, columns=names).rename_axis("After")
    four = st.column_config.NumberColumn(format="%.4f")
    st.dataframe(shown, column_config=dict.fromkeys(names, four))
    st.caption("‖changed − original‖ / ‖original‖ of each token's vector; 0 is unmoved.")


def _page() -> int:
    """The pixels of the whole page: two columns and the gap where they stand side by side."""
    return 2 * width.column() if width.column() > width.NARROW + 60 else width.column()


def _divergence(runs: Runs) -> None:
    found = effects.divergence_by_position(runs.before[0], runs.after[0]).tolist()
    tokens = positions_of(runs.before[0])
    most = max(range(len(found)), key=found.__getitem__)
    st.markdown(
        f"The predictions move the most at {say.quoted(tokens.texts[most])} (position {most}): "
        f"**{say.number(found[most])}** nats. Mean over all positions: "
        f"**{say.number(sum(found) / len(found))}** nats."
    )
    some = list(range(len(found)))
    if len(found) > MOST_BARS:
        some = sorted(sorted(some, key=lambda at: -found[at])[:MOST_BARS])
        st.caption(f"The {MOST_BARS} positions of {len(found)} that move the most.")
    labels = [tokens.texts[at] for at in some]
    series = {"KL divergence": [found[at] for at in some]}
    figure = named_bars(
        labels,
        series,
        theme=frame.theme(),
        title="KL divergence, nats",
        name="Position",
        raw=[tokens.raws[at] for at in some],
        width_px=width.column() - 10,
    )
    alt = named_bars_alt("KL divergence at each position, nats", labels, series)
    chart(figure, "kl", alt)
    st.caption(
        "KL divergence from the original's prediction to the changed one, over the whole "
        "vocabulary (Kullback and Leibler 1951); 0 where they agree."
    )
