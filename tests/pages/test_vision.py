"""The page Images without a browser: a picture's patches, and one patch's weights over it."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from explorer.images import capture_image, example, prepared
from explorer.models import load
from tests.pages import driven
from tests.pages.driven import chart
from tests.pages.driven import said_plainly as said
from tests.small_models import SMALL, SMALL_VIT, small_model

page = partial(driven.opened, "vision")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    small_model("vit", SMALL_VIT).save_pretrained(root / "patches")
    small_model("bert", SMALL).save_pretrained(root / "words")
    return root


@pytest.fixture
def local(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_MODELS", str(folder))


def row_of(folder: Path, layer: int, head: int, query: int) -> np.ndarray:
    loaded = load(str(folder / "patches"), "cpu")
    capture, _ = capture_image(loaded, prepared(loaded, example()))
    return capture.stacks["encoder"].layer(layer).weights([head], [query])[0, 0].numpy()


def test_without_a_model_it_says_so_and_shows_how_a_picture_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("EXPLORER_MODELS", raising=False)
    app = page()
    assert "No model of images is bundled." in said(app)
    assert "`google/vit-base-patch16-224`" in said(app)
    assert chart(app, "cut").shape == (14, 14)
    monkeypatch.setenv("EXPLORER_HUB", "off")
    assert "google/vit" not in said(page())


@pytest.mark.usefixtures("local")
def test_the_weights_of_the_middle_patch_lie_over_the_picture(folder: Path) -> None:
    app = page()
    row = row_of(folder, 0, 0, 1 + 2 * 4 + 2)
    np.testing.assert_allclose(chart(app, "picture"), row[1:].reshape(4, 4), atol=1e-6)
    words = said(app)
    assert "4 × 4 patches" in words and "The query is row 3, column 3" in words
    assert f"Apart from the patches: {100 * row[0]:.1f} % of the weight is on [CLS]" in words
    assert f"the 17 weights of this query sum to {row.sum():.6f}" in words
    best = int(np.argmax(row))
    names = ["[CLS]", *(f"row {r}, column {c}" for r in range(1, 5) for c in range(1, 5))]
    assert app.dataframe[0].value["Key"][0] == names[best]


@pytest.mark.usefixtures("local")
def test_a_link_chooses_layer_head_and_patch(folder: Path) -> None:
    app = page(layer="1", head="3", patch="1")
    row = row_of(folder, 1, 3, 1)
    np.testing.assert_allclose(chart(app, "picture"), row[1:].reshape(4, 4), atol=1e-6)
    assert "The query is row 1, column 1" in said(app)
    app = page(patch="0")
    assert "The query is [CLS]" in said(app)


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("wrong", ["17", "-1", "x"])
def test_a_wrong_patch_in_a_link_falls_back_and_says_so(wrong: str) -> None:
    assert f"The link asks for patch “{wrong}”." in said(page(patch=wrong))


@pytest.mark.usefixtures("local")
def test_a_model_of_text_or_none_is_told_in_a_sentence() -> None:
    assert "words does not read pictures in patches." in said(page(image_model="local:words"))
    assert "A model is a name from the list" in said(page(image_model="../etc"))
    assert app_options(page()) == ["local:patches"]


def app_options(app: AppTest) -> list[str]:
    return list(app.selectbox(key="image_model").options)


@pytest.mark.usefixtures("local")
def test_a_readers_own_picture_is_read_and_a_broken_one_refused() -> None:
    out = io.BytesIO()
    Image.new("RGB", (30, 20), "red").save(out, "PNG")
    app = page()
    before = chart(app, "picture")
    app.get("file_uploader")[0].upload("red.png", out.getvalue(), "image/png").run()
    assert not app.exception and not app.error
    assert np.abs(chart(app, "picture") - before).max() > 1e-4
    app.get("file_uploader")[0].upload("bad.png", b"no picture", "image/png").run()
    assert "This is no PNG or JPEG that can be read." in said(app)
