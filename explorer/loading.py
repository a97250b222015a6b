"""A model loaded from its files: the weights, the tokenizer, and what they can do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from torch import nn
from transformers import (
    MODEL_MAPPING,
    AutoModel,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from explorer.catalogue import CATALOGUE, find_folder
from explorer.devices import memory_errors, pick_device, pick_dtype
from explorer.model_folder import ModelError, first_line, read_config, text_config
from explorer.spreading import device_map, input_device, is_spread
from explorer.text import TextReader

# Without one of these a folder has no tokenizer; the library would make up an empty one.
_TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.json",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "source.spm",
    "sentencepiece.bpe.model",
    "tokenizer_config.json",
)
# A tokenizer without a limit of its own gives a huge number.
_NO_LIMIT = 10**9


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to run, in eval mode on its device, and its tokenizer if it reads text."""

    name: str
    title: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase | None
    device: torch.device
    dtype: torch.dtype

    @cached_property
    def reader(self) -> TextReader | None:
        """The tokenizer made safe for many threads; None if the model reads no text."""
        return None if self.tokenizer is None else TextReader(self.tokenizer)

    @cached_property
    def max_tokens(self) -> int | None:
        """The most tokens the model reads at once; None if its positions have no end."""
        # XLNet gives -1, T5 and BLOOM nothing: their positions are relative.
        positions = getattr(text_config(self.model.config), "max_position_embeddings", None) or 0
        for name, module in self.model.named_modules():
            # As in RoBERTa: positions count from padding_idx + 1, so the first rows go unused.
            own = name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
            if own and module.padding_idx is not None:
                positions = module.num_embeddings - module.padding_idx - 1
        if positions <= 0:
            return None
        limit = getattr(self.tokenizer, "model_max_length", None) or _NO_LIMIT
        return min(int(positions), int(limit))

    @property
    def takes_pairs(self) -> bool:
        """Whether the model reads two texts as a pair, parted by a special token."""
        return self.reader is not None and self.reader.takes_pairs

    @property
    def is_encoder_decoder(self) -> bool:
        return bool(self.model.config.is_encoder_decoder)

    @property
    def n_layers(self) -> int | None:
        """The number of layers; of the encoder, where there is a decoder too."""
        return _count(self.model.config, "num_hidden_layers")

    @property
    def n_heads(self) -> int | None:
        """The number of query heads of a layer; None if unknown or not the same in all layers."""
        return _count(self.model.config, "num_attention_heads")


def load(name: str, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """A model from the catalogue, a folder or the hub, in eval mode: `load("minilm")`.

    Safetensors only, and never with code of the model's own. A model larger than the free memory
    of the device is spread over all there are. Raises ModelError.
    """
    chosen_device = pick_device(device)
    chosen_dtype = pick_dtype(dtype, chosen_device)
    folder = find_folder(name)
    config = read_config(folder, name)
    tokenizer = _load_tokenizer(folder, name)
    with memory_errors():
        model = _load_weights(folder, name, config, chosen_device, chosen_dtype)
    if is_spread(model):
        chosen_device = input_device(model)
    title = CATALOGUE[name].title if name in CATALOGUE else os.path.basename(name.rstrip("/\\"))
    return LoadedModel(name, title or name, model, tokenizer, chosen_device, chosen_dtype)


def _load_tokenizer(folder: Path, name: str) -> PreTrainedTokenizerBase | None:
    if not any((folder / file).is_file() for file in _TOKENIZER_FILES):
        return None
    with _as_model_error(f"The tokenizer of {name!r} cannot be loaded"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    return tokenizer


def _load_weights(
    folder: Path,
    name: str,
    config: PreTrainedConfig,
    device: torch.device,
    dtype: torch.dtype,
) -> PreTrainedModel:
    architecture = (config.architectures or [""])[0]
    own_class = getattr(transformers, architecture, None) if architecture else None
    is_model = isinstance(own_class, type) and issubclass(own_class, PreTrainedModel)
    model_class: Any = own_class if is_model else AutoModel
    base = model_class if is_model else MODEL_MAPPING.get(type(config), PreTrainedModel)
    # Our own attention is put in later; until then this is the fastest that the class supports.
    attention = "sdpa" if getattr(base, "_supports_sdpa", False) else "eager"
    spread = device_map(folder, dtype, device)
    parts = {} if spread is None else {"device_map": spread}
    with _as_model_error(f"The model {name!r} cannot be loaded"):
        model, report = model_class.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            attn_implementation=attention,
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
            **parts,
        )
    # A head or pooler may be missing; a layer made up at random would show made-up attention.
    missing = [key for key in report["missing_keys"] if any(map(str.isdigit, key.split(".")))]
    if missing:
        raise ModelError(
            f"The weights of {name!r} do not fit its config.json: {len(missing)} are missing, such "
            f"as {sorted(missing)[0]}. Save the model again, or choose another."
        )
    ready: PreTrainedModel = (model if is_spread(model) else model.to(device)).eval()
    return ready


@contextmanager
def _as_model_error(what: str) -> Iterator[None]:
    """Turns the errors that loading is known to raise into a ModelError in one sentence."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError):
        raise  # for memory_errors, which frees the memory
    except (
        OSError,
        ValueError,
        RuntimeError,
        ImportError,
        LookupError,
        TypeError,
        AttributeError,
        SafetensorError,
    ) as error:
        raise ModelError(f"{what}: {first_line(error)}") from error


def _count(config: PreTrainedConfig, name: str) -> int | None:
    value = getattr(text_config(config), name, None)
    return value if isinstance(value, int) else None
