"""Where a model runs and in which precision, and what happens when memory runs out."""

import gc
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from explorer.model_folder import ModelError

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
# PyTorch has a class of its own for a full GPU only; these are its words for other memory.
_FULL = ("not enough memory", "DefaultCPUAllocator", "out of memory")


class DeviceMemoryError(ModelError):
    """The device has no memory left for this; what was held has been freed."""


def pick_device(device: str = "auto") -> torch.device:
    """The device by name, or the best there is: cuda, else mps, else cpu. Raises ModelError."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ModelError(
            f"There is no device {device!r}. Choose auto, cuda, mps or cpu."
        ) from error
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (chosen.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(chosen.type, False):
        raise ModelError(f"This computer has no device {device!r}. Choose auto or cpu.")
    return chosen


def pick_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """The number format by name; "auto" is bfloat16 on a GPU that has it, else float32.

    Raises ModelError.
    """
    if dtype == "auto":
        half = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if half else torch.float32
    if dtype not in _DTYPES:
        raise ModelError(f"There is no number format {dtype!r}. Choose auto, {', '.join(_DTYPES)}.")
    return _DTYPES[dtype]


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turns running out of memory, in the block, into DeviceMemoryError, with the memory freed."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        out_of_memory = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        if not out_of_memory and not any(words in str(error) for words in _FULL):
            raise
        # The error's traceback still holds the tensors of the frames that it left.
        traceback.clear_frames(error.__traceback__)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if torch.backends.mps.is_available():
            torch.mps.empty_cache()
        raise DeviceMemoryError(
            "The device ran out of memory, so this was stopped and its memory freed. Try a shorter "
            "text, a smaller model, or the CPU."
        ) from None
