"""One head on the page "Real heads": its scores, and its weights with two scales."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from explorer.attention import Attention
from explorer.figures.score_histogram import score_histogram
from explorer.head_scaling import SCALES, Scale, rescaled
from explorer.score_histogram import score_histogram as histogram_of
from explorer.ui import frame, width
from explorer.ui.chart import chart
from explorer.ui.head_scaling import Heads, is_own, scale_named, softmax_with, titled
from explorer.ui.heads_scatter import ABOUT_ENTROPY
from explorer.ui.scaling_words import short_number
from explorer.ui.two_maps import OneOfTwo, two_maps
from explorer.ui.words import share


def spread(heads: Heads, layer: int, head: int) -> None:
    """How the head's scores are spread, beside what is assumed, and its numbers with each scale."""
    record = _record(heads, layer)
    row = _row(heads.table, layer, head)
    st.markdown(
        f"Variance of its scores: **{short_number(row['scores_row_variance'], 3)}**. "
        f"Assumed: **{short_number(row['scores_assumed'], 3)}**. "
        f"From the size of its q and k alone: **{short_number(row['scores_row_predicted'], 3)}**."
    )
    found = histogram_of(record, head, heads.stack.padded_queries)
    if found is None:
        st.caption("No query of this head has two keys with numbers: nothing to spread.")
    else:
        figure = score_histogram(
            found.edges,
            found.density,
            expected_variance=float(row["scores_assumed"]),
            x_title="score, less its row's mean",
            bars_name="measured",
            curve_name=f"assumed: normal, variance {row['scores_assumed']:.3g}",
            theme=frame.theme(),
            width_px=width.column(),
        )
        alt = (
            f"Scores of L{layer}H{head} about the mean of their row, from {found.edges[0]:.3g} to "
            f"{found.edges[-1]:.3g}, beside the normal curve that is assumed."
        )
        chart(figure, "head_scores", alt)
    _with_each_scale(heads, record, layer, head)


def _with_each_scale(heads: Heads, record: Attention, layer: int, head: int) -> None:
    """What softmax makes of this head, a row for each scale."""
    names = list(SCALES)
    if heads.against not in names:
        names.append(heads.against)
    lines = [
        "| Scale | Factor | Entropy | Largest weight | Keys |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        scale = scale_named(name)
        if name != "own" and is_own(heads.stack, scale):
            continue
        found = _row(softmax_with(heads, name), layer, head)
        cells = [
            titled(heads.stack, name),
            f"{scale.of(record):.4g}",
            f"{found['entropy_share']:.2f}",
            share(float(found["largest_weight"])),
            f"{found['effective_keys']:.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    st.markdown("\n".join(lines))
    st.caption(
        f"{ABOUT_ENTROPY} Keys: so many equal weights would spread as widely. "
        "The factor is that on q·k."
    )


def maps(heads: Heads, layer: int, head: int) -> None:
    """The head's weights with its own scale and with the compared one, in one range of colours."""
    record = _record(heads, layer)
    st.subheader(f"L{layer}H{head} with two scales", anchor=False)
    st.caption("The same q and k, the same mask. Both maps share one range of colours.")
    both = []
    for name, scale, against in (
        ("own", SCALES["own"], "own"),
        ("other", heads.other, heads.against),
    ):
        numbers = _row(softmax_with(heads, against), layer, head)
        heading = (
            f"**{scale.title[0].upper()}{scale.title[1:]}: factor {scale.of(record):.4g}**  \n"
            f"entropy {numbers['entropy_share']:.2f} of its maximum, largest weight "
            f"{share(float(numbers['largest_weight']))}"
        )
        weights = _weights(record, scale, head)
        title = f"L{layer}H{head} with {scale.title}"
        forbidden = ~record.allowed([head])[0].cpu().numpy()
        both.append(OneOfTwo(f"map_{name}", heading, title, weights, forbidden))
    two_maps(both, heads.stack.query_tokens, heads.stack.key_tokens)


def _weights(record: Attention, scale: Scale, head: int) -> npt.NDArray[np.float32]:
    layer = rescaled(record, scale).replace(on_masked_row="zero")
    found: npt.NDArray[np.float32] = layer.weights([head])[0].detach().float().cpu().numpy()
    return found


def _record(heads: Heads, layer: int) -> Attention:
    record = heads.stack.layer(layer)
    assert isinstance(record, Attention)  # read-only stacks have been answered before
    return record


def _row(table: pd.DataFrame, layer: int, head: int) -> pd.Series:
    return table[(table["layer"] == layer) & (table["head"] == head)].iloc[0]
