"""The page Models: which models are in memory now, and which can be opened."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from explorer.model_facts import Weights, weights_of
from explorer.model_list import Listed, listed
from explorer.models import CATALOGUE, hub_allowed
from explorer.ui import cached
from explorer.ui.models_words import on_devices, size
from explorer.ui.words import plain


def just_freed() -> bool:
    """True in the run after memory was freed: loading the chosen model again would undo it."""
    freed = st.session_state.pop("freed", None)
    if freed is None:
        return False
    st.success(f"{freed} of weights let go.", icon=":material/delete_sweep:")
    st.button("Load the model again", icon=":material/refresh:")
    return True


def show() -> None:
    """What is loaded now, for everybody who uses this app, and the way to free it."""
    st.subheader("In memory now", anchor=False)
    kept = [(name, weights_of(model)) for name, model in cached.in_memory()]
    if not kept:
        st.markdown("No model is in memory.")
        return
    st.markdown("\n".join(f"- {_kept(name, weights)}" for name, weights in kept))
    st.caption(
        f"Together {size(sum(each.bytes for _, each in kept))} of weights, shared by all who use "
        "this app. The last two models opened stay, and those of texts that pages still show."
    )
    st.button(
        "Free the memory",
        icon=":material/delete_sweep:",
        on_click=_free,
        help="Lets go of all models and of the texts run through them. A page that needs one "
        "loads it again, for others who use this app now too.",
    )


def _free() -> None:
    before = sum(weights_of(model).bytes for _, model in cached.in_memory())
    cached.free()
    after = sum(weights_of(model).bytes for _, model in cached.in_memory())
    st.session_state["freed"] = size(before - after)


def _kept(name: str, weights: Weights) -> str:
    title = CATALOGUE[name].title if name in CATALOGUE else name
    return (
        f"**{plain(title)}**: {size(weights.bytes)}, {weights.dtypes[0]}, on {on_devices(weights)}"
    )


def choices() -> None:
    """What the list of models holds, and what else may be typed there."""
    st.subheader("Models to choose from", anchor=False)
    found = {name: _listed(name, name, 0.0) for name in CATALOGUE}
    for name, folder in cached.local_models().items():
        changed = max(file.stat().st_mtime for file in (folder, *folder.iterdir()))
        found[name] = _listed(str(folder), name, changed)
    st.dataframe(
        _table(found),
        hide_index=True,
        height=min(36 * len(found) + 38, 330),
        key="choices_table",
        placeholder="–",
        alt="The models in the list, a row a model.",
    )
    for name, entry in found.items():
        if entry.problem:
            st.caption(plain(f"{name}: {entry.problem}"))
    st.markdown("\n".join(f"- {line}" for line in _where_from()))


@st.cache_data(max_entries=256, show_spinner=False)
def _listed(folder: str, name: str, changed: float) -> Listed:
    """What a folder's files tell; `changed` is when they last did."""
    return listed(folder, name)


def _table(found: dict[str, Listed]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Name": CATALOGUE[name].title if name in CATALOGUE else name,
            "From": "bundled" if name in CATALOGUE else "folder",
            "Kind": "can't be opened" if one.problem else one.family,
            "Layers": one.n_layers,
            "Heads": one.n_heads,
            "Weights": None if one.bytes is None else size(one.bytes),
        }
        for name, one in found.items()
    )


def _where_from() -> Sequence[str]:
    lines = ["**Bundled:** comes with the app and needs no internet."]
    if cached.local_root() is None:
        lines.append(
            "**Local folders:** none. Whoever runs the app can set the environment variable "
            "`EXPLORER_MODELS` to a directory: each model folder in it is listed then."
        )
    else:
        lines.append("**Local folders:** those in the directory that `EXPLORER_MODELS` names.")
    if hub_allowed():
        lines.append(
            "**Hugging Face hub:** type a model's id into the list, as `openai-community/gpt2`. It "
            "is fetched once, must come as safetensors, and no code of its own is run."
        )
    else:
        lines.append(
            "**Hugging Face hub:** switched off by whoever runs this app (`EXPLORER_HUB`)."
        )
    return lines
