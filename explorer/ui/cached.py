"""Models, captures and their numbers, kept between reruns and shared by all visitors.

Each cache is bounded, and every input is an argument: two people never see each other's model.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import streamlit as st
import torch
from transformers import PreTrainedModel
from transformers.utils import logging as transformers_logging

from explorer.capture import Capture, capture
from explorer.checks import Invariants, invariants
from explorer.maps import pooled, pooled_forbidden
from explorer.metrics import WeightedLayer
from explorer.models import (
    CATALOGUE,
    DeviceMemoryError,
    LoadedModel,
    ModelError,
    is_hub_id,
    load,
)

GRID_TOKENS = 64
"""Bins of a head's map in the grid of all heads: more than a thumbnail has pixels to show."""

transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def local_root() -> Path | None:
    """The directory that EXPLORER_MODELS names; None where there is none."""
    root = os.environ.get("EXPLORER_MODELS")
    return Path(root) if root and Path(root).is_dir() else None


def local_models() -> dict[str, Path]:
    """Model folders that visitors may open: those right under EXPLORER_MODELS, by name."""
    root = local_root()
    if root is None:
        return {}
    return {
        f"local:{folder.name}": folder
        for folder in sorted(root.iterdir())
        if (folder / "config.json").is_file()
    }


def is_allowed(name: str) -> bool:
    """Whether a name from a link or a text field may be opened: never a path."""
    return name in CATALOGUE or name in local_models() or is_hub_id(name)


@st.cache_resource(max_entries=2, show_spinner="Loading the model …")
def model(name: str, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """A loaded model; two at a time are kept for everybody. Raises ModelError."""
    folder = local_models().get(name)
    try:
        loaded = load(name if folder is None else str(folder), device, dtype)
    except DeviceMemoryError:
        raise
    except ModelError as error:  # visitors need not know where folders are
        raise ModelError(str(error).replace(str(folder or name), name)) from error
    _in_memory[loaded.model] = name
    return loaded


_in_memory: WeakKeyDictionary[PreTrainedModel, str] = WeakKeyDictionary()
"""Every model that something still holds, also one that the cache has given up."""


def in_memory() -> list[tuple[str, PreTrainedModel]]:
    """The models in memory now, by the names they were opened under."""
    return sorted(((name, kept) for kept, name in list(_in_memory.items())), key=lambda one: one[0])


def free() -> None:
    """Empties all that pages keep of models and texts; who needs one again has it loaded anew.

    What takes no arguments is a part of the app, such as the pool of running jobs, and stays.
    """
    for name, module in list(sys.modules.items()):
        if not name.startswith("explorer.ui."):
            continue
        for each in list(vars(module).values()):
            kept = hasattr(each, "clear") and hasattr(each, "__wrapped__")
            if kept and inspect.signature(each.__wrapped__).parameters:
                each.clear()
    gc.collect()  # a model's parts know each other: without this they wait for the next collection
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@st.cache_resource(max_entries=16, show_spinner="Running the model …")
def captured(
    name: str,
    device: str,
    dtype: str,
    text: str,
    text_pair: str | None,
    specials_as_text: bool,
    truncate: bool,
) -> Capture:
    """One text through one model. Raises TextError, ModelError."""
    loaded = model(name, device, dtype)
    writes = loaded.is_encoder_decoder
    return capture(
        loaded,
        text,
        None if writes else text_pair,
        target=text_pair if writes else None,
        specials_as_text=specials_as_text,
        truncate=truncate,
    )


class Grid(NamedTuple):
    """Each head's map as large as a thumbnail needs; a bin is its largest weight, so that a
    needle stays visible."""

    maps: npt.NDArray[np.float32]
    """(n_layers, n_heads, rows, keys), 0 in layers without attention."""
    forbidden: npt.NDArray[np.bool_]
    """(n_layers, n_heads or 1, rows, keys): bins in which the mask forbids every key."""
    present: npt.NDArray[np.bool_]
    """(n_layers,): layers that have attention."""


@st.cache_resource(max_entries=16, show_spinner=False)
def grid(_capture: Capture, stack: str, *key: object) -> Grid:
    """What the picture of all heads shows. `key` names the capture."""
    kept = _capture.stacks[stack]
    present = np.isin(np.arange(kept.n_layers), kept.layer_numbers)
    maps = [_map(layer, kept.n_heads) for layer in kept.layers]
    barred = [pooled_forbidden(layer, GRID_TOKENS).cpu().numpy() for layer in kept.layers]
    found = Grid(
        np.zeros((kept.n_layers, *maps[0].shape), dtype=np.float32),
        np.zeros((kept.n_layers, max(map(len, barred)), *barred[0].shape[1:]), dtype=bool),
        present,
    )
    for number, own_maps, own_barred in zip(kept.layer_numbers, maps, barred, strict=True):
        found.maps[number], found.forbidden[number] = own_maps, own_barred
    return found


def _map(layer: WeightedLayer, n_heads: int) -> npt.NDArray[np.float32]:
    """A layer's thumbnails; a layer with fewer heads than others has NaN for those it lacks."""
    maps: npt.NDArray[np.float32] = pooled(layer, GRID_TOKENS, "max").float().cpu().numpy()
    return np.pad(maps, ((0, n_heads - len(maps)), (0, 0), (0, 0)), constant_values=np.nan)


@st.cache_resource(max_entries=64, show_spinner=False)
def checked(_capture: Capture, stack: str, *key: object) -> Invariants:
    """What was measured over all weights of a stack."""
    return invariants(_capture.stacks[stack])
