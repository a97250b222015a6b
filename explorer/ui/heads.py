"""The Heads page around one head: the grid of all of them, numbers, the proof, the facts."""

from __future__ import annotations

import numpy as np
import streamlit as st

from explorer.attention import Attention
from explorer.capture import Capture, Stack
from explorer.figures.grid import grid_alt, heads_grid
from explorer.metrics import METRICS, layer_metrics
from explorer.models import DeviceMemoryError, LoadedModel
from explorer.ui import address, cached, frame, width
from explorer.ui.chart import chart
from explorer.ui.outline import outline
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.words import plain, share, tiny

NUMBERS = ("entropy", "entropy_share", "distance", "first", "self", "previous")
LABELS = 72  # pixels beside the grid
WHY_COMPARE = "Runs the text again through the model's original code and compares every weight."


def grid(key: tuple[object, ...], capture: Capture, stack: Stack, layer: int, head: int) -> bool:
    """All heads as one picture; a click chooses one. True in the run that the click causes."""
    small = cached.grid(capture, stack.name, *key)
    figure = heads_grid(
        small.maps,
        layer_numbers=range(stack.n_layers),
        theme=frame.theme(),
        forbidden=small.forbidden if small.forbidden.any() else None,
        present=None if small.present.all() else small.present,
        width_px=width.column() - LABELS,
    )
    lengths = len(stack.query_tokens), len(stack.key_tokens)
    alt = grid_alt(stack.n_layers, stack.n_heads, *lengths)
    chart(figure, "all_heads", alt)
    outline("all_heads", x=(head, head), y=(layer, layer))
    click = cell_clicks("all_heads", "all_heads_click", lambda click: _choose_head(click, stack))
    return click is not None


def _choose_head(click: Click, stack: Stack) -> None:
    if click.y in stack.layer_numbers and 0 <= click.x < stack.layer(click.y).n_heads:
        address.put(layer=click.y, head=click.x)


def numbers(stack: Stack, layer: int, head: int) -> None:
    """This head's numbers, the mean over its queries."""
    has_sink = getattr(stack.layer(layer), "sinks", None) is not None
    names = (*NUMBERS, "sink") if has_sink else NUMBERS
    wanted = [metric for metric in METRICS if metric.name in names]
    found = layer_metrics(
        stack.layer(layer),
        stack.padded_queries,
        heads=[head],
        same_sequence=not stack.name.startswith("cross"),
        names=names,
    )
    lines = ["| This head | Mean over queries |", "| --- | ---: |"]
    for metric in wanted:
        value = float(found[metric.name][0])
        written = f"{value:.2f} {metric.unit}" if metric.unit != "share of 1" else share(value)
        lines.append(f"| {metric.title} | {'–' if np.isnan(value) else written} |")
    st.markdown("\n".join(lines))
    with st.popover("What these numbers mean", icon=":material/help:", type="tertiary"):
        for metric in wanted:
            st.markdown(f"**{metric.title}.** {metric.meaning}")
            st.caption(f"Source: {metric.source}")


def proof(chosen_key: tuple[object, ...], capture: Capture, stack: Stack) -> None:
    """One line that says it is true, measured over all heads of the stack."""
    found = cached.checked(capture, stack.name, *chosen_key)
    parts = [
        f"rows sum to 1 within {tiny(found.row_sum_deviation)}",
        f"weight on forbidden keys {tiny(found.forbidden_weight)}",
    ]
    if found.sink_weight:
        parts.append(f"{share(found.sink_weight)} of each row goes to the model's sink")
    if found.masked_rows:
        parts.append(f"{found.masked_rows} queries have no key, so their rows are zeros")
    if found.not_finite:
        parts.append(f"{found.not_finite} weights are not numbers (NaN), drawn hatched")
    st.caption(f"**Checked in all heads:** {' · '.join(parts)}")
    _difference(capture)


def _difference(capture: Capture) -> None:
    if any(stack.read_only for stack in capture.stacks.values()):
        return
    if "difference" not in vars(capture):
        label = "Compare with the model's own attention"
        if not st.button(label, icon=":material/fact_check:", help=WHY_COMPARE):
            return
    try:
        difference = capture.difference
    except DeviceMemoryError as error:
        st.warning(plain(str(error)))
        return
    if difference is not None:
        st.caption(
            f"Largest difference from the model's own attention: {tiny(difference.weights)} in a "
            f"weight, {tiny(difference.output)} in its output"
        )


def facts(loaded: LoadedModel, stack: Stack, layer: int) -> None:
    """What runs where, and the chosen layer's sizes and scale."""
    record = stack.layer(layer)
    words = [f"{loaded.title} on {loaded.device.type}, {str(loaded.dtype).removeprefix('torch.')}"]
    if isinstance(record, Attention):
        words.append(f"d_k = {record.d_k}")
        words.append(f"scale = {record.effective_scale:.4g}")
        if record.prescale != 1:
            words.append("(already in the query)")
        if record.n_kv_heads != record.n_heads:
            words.append(f"{record.n_heads} heads share {record.n_kv_heads} key/value heads")
        if record.softcap is not None:
            words.append(f"scores capped at ±{record.softcap:g}")
        if record.bias is not None and bool(record.bias.any()):
            words.append("with a position bias")
        words.append(f"mask: {record.mask.name if record.mask else 'none'}")
    st.caption(plain(" · ".join(words)))
