"""What can be said of a model's folder without loading its weights."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.catalogue import find_folder
from explorer.model_folder import ModelError, read_config, text_config


@dataclass(frozen=True)
class Listed:
    """A model as a list shows it. Sizes are None where its files do not tell."""

    family: str | None
    n_layers: int | None
    n_heads: int | None
    bytes: int | None
    """Of its weights on disk."""
    problem: str | None
    """Why it can't be opened, in a sentence."""


def listed(folder: str, name: str) -> Listed:
    """What the files in a folder (or of a bundled model) tell; `name` is what readers call it."""
    try:
        found = find_folder(folder)
        config = read_config(found, name)
    except ModelError as error:
        return Listed(None, None, None, None, str(error).replace(folder, name))
    text = text_config(config)
    return Listed(
        str(config.model_type),
        _number(getattr(text, "num_hidden_layers", None)),
        _number(getattr(text, "num_attention_heads", None)),
        sum(file.stat().st_size for file in found.glob("*.safetensors")),
        None,
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
