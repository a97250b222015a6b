"""A picture into a model of images: read safely, cut into patches, each patch a token."""

from __future__ import annotations

import dataclasses
import io
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageOps, UnidentifiedImageError
from torch import Tensor
from transformers import AutoImageProcessor, PreTrainedConfig

from explorer.capture import Capture, capture_inputs
from explorer.models import LoadedModel, ModelError
from explorer.tokens import Tokens

MOST_BYTES = 5_000_000
MOST_PIXELS = 20_000_000
Pixels = npt.NDArray[np.uint8]
"""(height, width, 3)."""


class ImageError(ValueError):
    """A picture can't be read; the message says what, why, and what to do."""


class Seen(NamedTuple):
    """A picture as a model takes it in."""

    values: Float[Tensor, "1 channels height width"]
    picture: Pixels
    """The same to look at: resized and cut as the model has it."""


class Grid(NamedTuple):
    """How a picture is cut: patches by rows, after some tokens that stand for no patch."""

    rows: int
    columns: int
    n_special: int

    def place(self, position: int) -> tuple[int, int] | None:
        """Row and column of a token, from 0; None where it is no patch."""
        patch = position - self.n_special
        return divmod(patch, self.columns) if patch >= 0 else None

    def position(self, row: int, column: int) -> int:
        """The token of a patch."""
        return self.n_special + row * self.columns + column


def read_image(data: bytes) -> Image.Image:
    """A PNG or JPEG as RGB, turned as its camera says. Raises ImageError."""
    if len(data) > MOST_BYTES:
        raise ImageError(
            f"The picture has {len(data) / 1e6:.1f} MB; at most {MOST_BYTES / 1e6:.0f} MB are "
            "read. Save it smaller."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a huge one is refused below, in a sentence
            opened = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
        width, height = opened.size
        if width * height > MOST_PIXELS:
            raise ImageError(
                f"The picture has {width:,} × {height:,} pixels; at most "
                f"{MOST_PIXELS / 1e6:.0f} million are read. Save it smaller."
            )
        return ImageOps.exif_transpose(opened).convert("RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise ImageError("This is no PNG or JPEG that can be read. Choose another file.") from error


def example() -> Image.Image:
    """A picture drawn here: a house and a tree under the sun."""
    image = Image.new("RGB", (448, 448), "#9fd3f5")
    draw = ImageDraw.Draw(image)
    draw.ellipse((310, 40, 400, 130), fill="#ffd43b")
    draw.rectangle((0, 320, 448, 448), fill="#69b34c")
    draw.rectangle((70, 210, 230, 350), fill="#f1e3c6")
    draw.polygon(((50, 210), (150, 120), (250, 210)), fill="#b5432a")
    draw.rectangle((130, 270, 175, 350), fill="#6b4226")
    draw.rectangle((85, 235, 118, 268), fill="#5b8db8")
    draw.rectangle((185, 235, 218, 268), fill="#5b8db8")
    draw.rectangle((335, 260, 355, 360), fill="#7a5230")
    draw.ellipse((285, 160, 405, 290), fill="#2f7d32")
    return image


def sees_images(config: PreTrainedConfig) -> bool:
    """Whether a configuration is of a model that cuts pictures into patches of one size."""
    sizes = (getattr(config, "image_size", None), getattr(config, "patch_size", None))
    return all(isinstance(size, int) for size in sizes) and not config.is_encoder_decoder


def prepared(loaded: LoadedModel, image: Image.Image) -> Seen:
    """The picture as the model was made for it: its own size, cut and normalisation.

    Raises ModelError for a model that reads no pictures.
    """
    config = loaded.model.config
    if loaded.model.main_input_name != "pixel_values" or not sees_images(config):
        raise ModelError(
            f"{loaded.title} does not read pictures in patches. Choose a model such as ViT or "
            "DINOv2."
        )
    mean, std = 0.5, 0.5
    folder = Path(loaded.model.name_or_path or "")
    if (folder / "preprocessor_config.json").is_file():
        try:
            processor: Any = AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
                folder, local_files_only=True, trust_remote_code=False
            )
            values = processor(image, return_tensors="pt")["pixel_values"]
        except (OSError, ValueError, ImportError, TypeError, KeyError) as error:
            raise ModelError(
                f"The preprocessor_config.json of {loaded.title} can't be used: {error}"
            ) from error
        if getattr(processor, "do_normalize", False):
            mean, std = processor.image_mean, processor.image_std
        else:
            mean, std = 0.0, 1.0
    else:
        side = config.image_size
        array = np.asarray(image.resize((side, side)), np.float32) / 255
        values = torch.from_numpy(array).permute(2, 0, 1)[None] * 2 - 1
    back = values[0].permute(1, 2, 0).numpy() * np.asarray(std) + np.asarray(mean)
    picture: Pixels = (back.clip(0, 1) * 255).round().astype(np.uint8)
    return Seen(values.to(loaded.dtype), picture)


def capture_image(loaded: LoadedModel, seen: Seen) -> tuple[Capture, Grid]:
    """The attention of one picture in every layer, each patch a token.

    Raises ModelError where there is not one token for each patch.
    """
    size = int(loaded.model.config.patch_size)
    rows, columns = seen.values.shape[2] // size, seen.values.shape[3] // size
    plain = Tokens.plain([""] * (rows * columns))
    found = capture_inputs(loaded.model, {"pixel_values": seen.values}, [plain])[0]
    lengths = {layer.key_length for stack in found.stacks.values() for layer in stack.layers}
    n_special = min(lengths) - rows * columns
    if len(lengths) > 1 or n_special < 0:
        raise ModelError(
            f"{loaded.title} does not keep one token for each of its {rows} × {columns} patches, "
            "so its attention can't be laid over the picture. Choose a model such as ViT."
        )
    grid = Grid(rows, columns, n_special)
    tokens = patch_tokens(grid)
    stacks = {
        name: dataclasses.replace(stack, query_tokens=tokens, key_tokens=tokens)
        for name, stack in found.stacks.items()
    }
    return dataclasses.replace(found, stacks=stacks, tokens=tokens), grid


def patch_tokens(grid: Grid) -> Tokens:
    """A name for each token: "[CLS]", "special 2", "row 2, column 3", counted from 1."""
    special = ["[CLS]", *(f"special {n + 2}" for n in range(grid.n_special - 1))]
    patches = [
        f"row {row + 1}, column {column + 1}"
        for row in range(grid.rows)
        for column in range(grid.columns)
    ]
    added = special[: grid.n_special]
    return Tokens.added(range(len(added)), added) + Tokens.plain(patches)
