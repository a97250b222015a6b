"""Models and their input, in one place: load() gives a model, encode() its input from a text.

Errors, all of them ValueErrors:
    ModelError             a model cannot be used
      DeviceMemoryError    the device is full
    TextError              a text cannot be read
      TooLongError         it has more tokens than the model reads
"""

from explorer.catalogue import CATALOGUE, CatalogueEntry, hub_allowed, is_hub_id
from explorer.devices import DeviceMemoryError, memory_errors, pick_device, pick_dtype
from explorer.encoding import Encoded, EncodedBatch, count_tokens, encode, encode_batch
from explorer.loading import LoadedModel, load
from explorer.model_folder import ModelError
from explorer.text import TextError, TooLongError

__all__ = [
    "CATALOGUE",
    "CatalogueEntry",
    "DeviceMemoryError",
    "Encoded",
    "EncodedBatch",
    "LoadedModel",
    "ModelError",
    "TextError",
    "TooLongError",
    "count_tokens",
    "encode",
    "encode_batch",
    "hub_allowed",
    "is_hub_id",
    "load",
    "memory_errors",
    "pick_device",
    "pick_dtype",
]
