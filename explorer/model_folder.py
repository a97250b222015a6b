"""A folder with a model's files: what it must hold, checked before anything of it is loaded."""

import json
from pathlib import Path
from typing import NoReturn

from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


class ModelError(ValueError):
    """A model cannot be used; the message says what, why, and what to do."""


def read_config(folder: Path, name: str) -> PreTrainedConfig:
    """A model's configuration, if it is of a kind that has attention. Raises ModelError."""
    _check_config(folder, name)
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"The config.json of {name!r} cannot be read: {first_line(error)}"
        ) from error
    if not getattr(text_config(config), "num_attention_heads", None):
        if len(config.sub_configs) > 1:
            raise ModelError(
                f"The model {name!r} ({config.model_type}) is made of several models, one of text "
                "and one of something else, and none can be shown alone here. Choose a model of "
                "text, or one of images."
            )
        raise ModelError(
            f"The model {name!r} ({config.model_type}) has no attention heads, so there is nothing "
            "to show. Choose a Transformer such as BERT, GPT-2 or T5."
        )
    return config


def text_config(config: PreTrainedConfig) -> PreTrainedConfig:
    """The part of a configuration that describes the model of text; the encoder's if it has two."""
    try:
        part: PreTrainedConfig = config.get_text_config(decoder=False)
    except ValueError:  # several parts fit
        part = config
    return part


def _check_config(folder: Path, name: str) -> None:
    path = folder / "config.json"
    if not path.is_file():
        raise ModelError(f"{name!r} is not a model folder: {_what_is_missing(folder)}")
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"The config.json of {name!r} cannot be read: {error}") from error
    kind = settings.get("model_type") if isinstance(settings, dict) else None
    if kind in CONFIG_MAPPING:
        return
    if isinstance(settings, dict) and "auto_map" in settings:
        raise ModelError(
            f"The model {name!r} needs Python code of its own, which is never run here. "
            "Choose a model that the transformers library knows by itself."
        )
    raise ModelError(
        f"The config.json of {name!r} gives model_type {kind!r}, which the installed transformers "
        "library does not know. Choose another model, or a newer version of the library."
    )


def _what_is_missing(folder: Path) -> str:
    if (folder / "adapter_config.json").is_file():
        return "it holds an adapter only. Merge it with its base model first."
    if (folder / "model_index.json").is_file():
        return "it holds a pipeline that makes images. Choose a model of text."
    return "it has no config.json. Choose the folder that save_pretrained wrote."


def check_folder(folder: Path, name: str) -> None:
    """Raises ModelError where a folder is not a model that can be read."""
    _check_config(folder, name)
    if not has_weights(folder):
        refuse_weights(name, [path.name for path in folder.iterdir()])


def has_weights(folder: Path) -> bool:
    """Whether there are safetensors."""
    return any((folder / weights).is_file() for weights in WEIGHTS)


def refuse_weights(name: str, files: list[str]) -> NoReturn:
    """Raises ModelError for a model with these files, none of them safetensors."""
    if any(file.endswith(_PICKLES) for file in files):
        raise ModelError(
            f"The weights of {name!r} are Python pickles, which can run code when opened. Only "
            "safetensors are read: save the model again with save_pretrained."
        )
    raise ModelError(
        f"The model {name!r} has no weights that can be read: there is no model.safetensors. "
        "Choose a model that comes with safetensors."
    )


def first_line(error: BaseException) -> str:
    """What an error says, or its kind."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
