"""Pictures: read safely, cut into patches, and each patch a token with its attention."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from explorer.images import (
    MOST_BYTES,
    Grid,
    ImageError,
    capture_image,
    example,
    patch_tokens,
    prepared,
    read_image,
    sees_images,
)
from explorer.models import LoadedModel, ModelError, load
from tests.small_models import SMALL, SMALL_VIT, small_model


def saved(folder: Path, kind: str = "vit", **more: object) -> LoadedModel:
    small_model(kind, {**SMALL_VIT, **more}).save_pretrained(folder)
    return load(str(folder), "cpu")


def as_bytes(image: Image.Image, kind: str) -> bytes:
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_png_and_a_jpeg_are_read_as_rgb(kind: str) -> None:
    image = read_image(as_bytes(Image.new("L", (7, 5), 200), kind))
    assert (image.mode, image.size) == ("RGB", (7, 5))
    assert np.abs(np.asarray(image).astype(int) - 200).max() <= 2


@pytest.mark.parametrize("given", [b"", b"no picture", as_bytes(Image.new("L", (2, 2)), "GIF")])
def test_what_is_no_png_or_jpeg_is_refused_in_a_sentence(given: bytes) -> None:
    with pytest.raises(ImageError, match=r"no PNG or JPEG that can be read\. Choose another"):
        read_image(given)


def test_a_cut_off_picture_is_refused() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (60, 60, 3), np.uint8)
    with pytest.raises(ImageError, match="no PNG or JPEG"):
        read_image(as_bytes(Image.fromarray(noise), "PNG")[:3000])


def test_too_many_bytes_and_too_many_pixels_are_refused_before_decoding() -> None:
    with pytest.raises(ImageError, match="at most 5 MB are read"):
        read_image(b"x" * (MOST_BYTES + 1))

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    for side in (5_000, 12_000):  # from the second on, Pillow itself would warn
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
        bomb = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
        with pytest.raises(ImageError, match="at most 20 million are read"):
            read_image(bomb)


def test_each_patch_has_its_row_and_column_and_special_tokens_stand_apart() -> None:
    grid = Grid(2, 3, 2)
    assert [grid.place(n) for n in range(8)] == [
        None,
        None,
        *((row, column) for row in range(2) for column in range(3)),
    ]
    assert grid.position(1, 2) == 7
    tokens = patch_tokens(grid)
    assert tokens.texts[:4] == ("[CLS]", "special 2", "row 1, column 1", "row 1, column 2")
    assert tokens.special == (True, True, *([False] * 6))


def test_the_model_gets_what_its_own_processor_makes(tmp_path: Path) -> None:
    loaded = saved(tmp_path)
    processor = ViTImageProcessorPil(size={"height": 16, "width": 16}, image_mean=[0.4, 0.5, 0.6])
    processor.save_pretrained(tmp_path)
    seen = prepared(loaded, example())
    expected = processor(example(), return_tensors="pt")["pixel_values"]
    assert torch.equal(seen.values, expected)
    small = np.asarray(example().resize((16, 16), Image.Resampling.BILINEAR))
    assert np.abs(seen.picture.astype(int) - small).max() <= 2


def test_without_a_processor_the_picture_is_resized_to_the_models_size(tmp_path: Path) -> None:
    seen = prepared(saved(tmp_path), Image.new("RGB", (40, 30), (255, 0, 51)))
    assert seen.values.shape == (1, 3, 16, 16)
    np.testing.assert_allclose(seen.values[0, :, 3, 3], [1, -1, -0.6], atol=1e-6)
    assert tuple(seen.picture[5, 5]) == (255, 0, 51)


def test_the_attention_of_a_picture_equals_the_models_own(tmp_path: Path) -> None:
    loaded = saved(tmp_path)
    seen = prepared(loaded, example())
    found, grid = capture_image(loaded, seen)
    assert grid == Grid(4, 4, 1)
    stack = found.stacks["encoder"]
    assert len(stack.query_tokens) == 17 and stack.query_tokens.texts[-1] == "row 4, column 4"
    eager = small_model("vit", SMALL_VIT)
    with torch.no_grad():
        theirs = eager(pixel_values=seen.values, output_attentions=True).attentions
    for layer, expected in zip(stack.layers, theirs, strict=True):
        torch.testing.assert_close(layer.weights(), expected[0], atol=1e-6, rtol=0)
    assert found.max_difference is not None and found.max_difference < 1e-6


def test_registers_and_a_distillation_token_are_special_too(tmp_path: Path) -> None:
    loaded = saved(tmp_path, "deit")
    _, grid = capture_image(loaded, prepared(loaded, example()))
    assert grid == Grid(4, 4, 2)


def test_a_model_of_text_is_refused(tmp_path: Path) -> None:
    small_model("bert", SMALL).save_pretrained(tmp_path)
    loaded = load(str(tmp_path), "cpu")
    assert not sees_images(loaded.model.config)
    with pytest.raises(ModelError, match="does not read pictures in patches"):
        prepared(loaded, example())
