"""The page Models: one model's facts, in words and layer by layer, and where to look at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from explorer.images import sees_images
from explorer.model_facts import LayerFacts, ModelFacts, model_facts
from explorer.models import LoadedModel, ModelError
from explorer.ui import cached, controls, frame, models_memory
from explorer.ui.models_words import facts_in_words, size, stack_title
from explorer.ui.words import plain

OPEN_IN = (
    ("pages/heads.py", "Heads", ":material/grid_view:"),
    ("pages/all_heads.py", "All heads", ":material/scatter_plot:"),
    ("pages/what_if.py", "What if", ":material/science:"),
)


class Shown(NamedTuple):
    """A model, its facts and the choices that it was opened with."""

    name: str
    loaded: LoadedModel
    facts: ModelFacts
    link: dict[str, str]


def choose() -> Shown | None:
    """The model to show; a sentence and None where it can't be opened."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = controls.choose_model()
        device, dtype, _ = controls.choose_options()
    if models_memory.just_freed():
        return None
    try:
        loaded = cached.model(name, device, dtype)
        facts = _facts(loaded, name, device, dtype)
    except ModelError as error:
        st.error(plain(str(error)), icon=":material/info:")
        return None
    link = {"model": name}
    link |= {n: value for n, value in (("device", device), ("dtype", dtype)) if value != "auto"}
    return Shown(name, loaded, facts, link)


@st.cache_resource(max_entries=16, show_spinner="Running a few tokens through it …")
def _facts(_loaded: LoadedModel, *key: str) -> ModelFacts:
    """The facts alone: they hold no part of the model."""
    return model_facts(_loaded)


def show(shown: Shown) -> None:
    """The facts in words, and the pages that show the model at work."""
    facts = shown.facts
    _numbers(facts)
    st.markdown("\n".join(f"- {line}" for line in facts_in_words(facts)))
    if sees_images(shown.loaded.model.config):
        link = {"image_model": shown.name}
        frame.link_to("pages/vision.py", "Open it in Images", ":material/image:", link, "content")
        return
    if shown.loaded.reader is None:
        st.caption("It comes without a tokenizer, so it reads no text on the other pages.")
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.markdown("Open it in", width="content")
        for file, label, icon in OPEN_IN:
            if file == "pages/what_if.py" and facts.read_only:
                continue
            frame.link_to(file, label, icon, shown.link, "content")


def _numbers(facts: ModelFacts) -> None:
    weights = facts.weights
    shown = {
        "Parameters": _short(weights.parameters),
        "Memory": size(weights.bytes),
        "Layers": _each(facts, lambda layers: str(len(layers))),
        "Heads a layer": _each(facts, lambda layers: _same([one.n_heads for one in layers])),
        "d_k": _each(facts, lambda layers: _same([one.d_k for one in layers])),
        "Most tokens": "no limit" if facts.max_tokens is None else f"{facts.max_tokens:,}",
    }
    with st.container(horizontal=True, gap="medium"):
        for label, value in shown.items():
            st.metric(label, value, width="content")


def _each(facts: ModelFacts, of: Callable[[Sequence[LayerFacts]], str]) -> str:
    """A number of each stack, once where it is the same in all."""
    values = [of(stack.layers) for stack in facts.stacks]
    return values[0] if len(set(values)) == 1 else " / ".join(values)


def _same(values: Sequence[int | None]) -> str:
    there = sorted({value for value in values if value is not None})
    if not there:
        return "–"
    return str(there[0]) if len(there) == 1 else f"{there[0]}–{there[-1]}"


def _short(count: int) -> str:
    """A count as people say it: "22.7 million"."""
    for above, name in ((10**9, "billion"), (10**6, "million")):
        if count >= above:
            return f"{count / above:.1f} {name}"
    return f"{count:,}"


def table(facts: ModelFacts) -> None:
    """A row for each stack and layer."""
    st.subheader("Layer by layer", anchor=False)
    rows = layer_table(facts)
    st.dataframe(
        rows,
        column_config=_columns(),
        hide_index=True,
        height=min(36 * len(rows) + 38, 440),
        key="layers_table",
        placeholder="–",
        alt="The attention of each layer, a row a layer.",
    )


def layer_table(facts: ModelFacts) -> pd.DataFrame:
    """The same as data; a layer without attention has a row that says so."""
    several = len(facts.stacks) > 1
    rows = []
    for stack in facts.stacks:
        there = {layer.layer: layer for layer in stack.layers}
        for number in range(stack.n_layers):
            row: dict[str, object] = {"stack": stack_title(stack.name)} if several else {}
            row["layer"] = number
            rows.append(row | (_row(there[number]) if number in there else _NO_ATTENTION))
    return pd.DataFrame(rows)


_NO_ATTENTION: dict[str, object] = {"mask": "no attention"}


def _row(layer: LayerFacts) -> dict[str, object]:
    terms = [
        f"soft cap ±{layer.softcap:g}" if layer.softcap is not None else "",
        "sinks" if layer.sinks else "",
        "bias" if layer.bias else "",
        "scale put into q" if layer.prescaled else "",
    ]
    return {
        "heads": layer.n_heads,
        "kv": layer.n_kv_heads,
        "d_k": layer.d_k,
        "d_v": layer.d_v,
        "scale": layer.scale,
        "rule": layer.rule,
        "mask": layer.mask,
        "terms": ", ".join(filter(None, terms)) or None,
        "device": layer.device,
    }


def _columns() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    words = st.column_config.TextColumn
    return {
        "stack": words("Stack"),
        "layer": number("Layer", width="small"),
        "heads": number("Heads", width="small", help="Query heads."),
        "kv": number(
            "K/V heads",
            width="small",
            help="Key/value heads. Fewer than heads: several heads share keys and values.",
        ),
        "d_k": number("d_k", width="small", help="Numbers in a query and in a key."),
        "d_v": number("d_v", width="small", help="Numbers in a value."),
        "scale": number("Scale", format="%.5g", width="small", help="The factor on q·k."),
        "rule": words("Scale as a rule"),
        "mask": words("Mask", help="Which keys a query may use."),
        "terms": words("Also"),
        "device": words("Device", width="small"),
    }
