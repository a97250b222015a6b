"""Models larger than one device: when a model is spread over several, and where it then reads.

accelerate puts layers where there is room: on the GPUs one after the other, then in the computer's
memory, then on disk, from where each is fetched when its turn comes. Each layer's record stays on
the device that computed it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

import torch
from safetensors import safe_open
from torch import nn
from transformers import PreTrainedModel

ROOM = 1.1
"""What must be free, as a multiple of the weights: a text's own tensors need some too."""


def weight_bytes(folder: Path, dtype: torch.dtype) -> int:
    """What a folder's weights take up once loaded in this format, read from the files' headers."""
    numbers = 0
    for path in folder.glob("*.safetensors"):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():
                numbers += math.prod(file.get_slice(name).get_shape())
    return numbers * dtype.itemsize


def free_bytes(device: torch.device) -> int | None:
    """The free memory of a GPU; None for other devices, over which nothing is spread."""
    if device.type != "cuda":
        return None
    torch.cuda.empty_cache()  # what torch keeps for later use counts as free
    return int(torch.cuda.mem_get_info(device)[0])


def device_map(folder: Path, dtype: torch.dtype, device: torch.device) -> str | None:
    """What from_pretrained is told: "auto" where the device has no room for it, else None."""
    free = free_bytes(device)
    if free is None or weight_bytes(folder, dtype) * ROOM <= free:
        return None
    return "auto"


def is_spread(model: PreTrainedModel) -> bool:
    """Whether the model lies on several devices, or partly in slower memory."""
    return getattr(model, "hf_device_map", None) is not None


_turns: WeakKeyDictionary[PreTrainedModel, threading.RLock] = WeakKeyDictionary()
_adding = threading.Lock()


@contextmanager
def turn(model: PreTrainedModel) -> Iterator[None]:
    """One forward pass at a time where a model is spread; others are shared as they are.

    Parts in slower memory are fetched into the model and given back while it runs, so that a second
    run would meet them half fetched.
    """
    if not is_spread(model):
        yield
        return
    with _adding:
        lock = _turns.setdefault(model, threading.RLock())
    with lock:
        yield


def input_device(model: PreTrainedModel) -> torch.device:
    """Where a model's inputs go. A spread model brings them from the CPU to each part itself."""
    device: torch.device = model.device
    return torch.device("cpu") if device.type == "meta" else device


def place_of(model: nn.Module, parameter: str) -> str | None:
    """Where a part of a spread model lies: "cuda:1", "cpu", "disk"; None where it is not spread."""
    spread = getattr(model, "hf_device_map", None)
    if spread is None:
        return None
    fitting = [path for path in spread if not path or f"{parameter}.".startswith(f"{path}.")]
    if not fitting:
        return None
    where = spread[max(fitting, key=len)]
    return f"cuda:{where}" if isinstance(where, int) else str(where)
