"""The page Images: a picture, a model of images, and one head's attention over the picture."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from explorer.capture import Capture, Stack
from explorer.catalogue import find_folder
from explorer.figures.patches import over_picture, picture_alt
from explorer.images import (
    MOST_BYTES,
    Grid,
    ImageError,
    Pixels,
    capture_image,
    example,
    prepared,
    read_image,
    sees_images,
)
from explorer.model_folder import ModelError, read_config
from explorer.models import hub_allowed
from explorer.ui import address, cached, controls, frame, width
from explorer.ui.chart import chart
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.words import plain, share

EXAMPLE_SIDE, EXAMPLE_GRID = 448, 14  # as ViT cuts it: 14 × 14 patches
CHART = "picture"


class Shown(NamedTuple):
    """One picture through one model."""

    capture: Capture
    grid: Grid
    picture: Pixels


def choose() -> Shown | None:
    """Model and picture; None where there is no model yet, after saying what to do."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = _choose_model()
        device, dtype, _ = controls.choose_options()
    data = _choose_picture()
    if not name:
        _without_model(data)
        return None
    try:
        digest = "" if data is None else hashlib.sha256(data).hexdigest()
        return _captured(name, device, dtype, digest, data)
    except (ModelError, ImageError) as error:
        st.error(plain(str(error)), icon=":material/info:")
        return None


@st.cache_resource(max_entries=8, show_spinner="Running the model …")
def _captured(name: str, device: str, dtype: str, digest: str, _data: bytes | None) -> Shown:
    loaded = cached.model(name, device, dtype)
    seen = prepared(loaded, example() if _data is None else read_image(_data))
    capture, grid = capture_image(loaded, seen)
    return Shown(capture, grid, seen.picture)


def _choose_model() -> str:
    options = [name for name, folder in cached.local_models().items() if _sees(str(folder))]
    default = options[0] if options else ""
    parse = address.one_of(
        "image_model",
        cached.is_allowed,
        "A model is a name from the list or a hub id such as “google/vit-base-patch16-224”.",
    )
    address.start("image_model", default, parse)
    chosen = st.session_state["image_model"]
    if chosen and chosen not in options:
        options.append(chosen)
    if not chosen:
        st.session_state["image_model"] = None
    name = st.selectbox(
        "Model of images",
        options,
        key="image_model",
        accept_new_options=True,
        placeholder="Type a hub id, such as google/vit-base-patch16-224",
        help="A model that cuts a picture into patches: ViT, DINOv2, BEiT, DeiT.",
        width=420,
    )
    if name is not None:
        address.finish("image_model", default)
    if name and not cached.is_allowed(name):
        st.error(plain(f"“{name}” is no model id. Type an id as owner/name."))
        return ""
    return name or ""


@st.cache_data(max_entries=256, show_spinner=False)
def _sees(folder: str) -> bool:
    try:
        return sees_images(read_config(find_folder(folder), folder))
    except ModelError:
        return False


def _choose_picture() -> bytes | None:
    """The bytes of the reader's picture; None for the drawn one."""
    given = st.file_uploader(
        f"Your picture, PNG or JPEG up to {MOST_BYTES // 10**6} MB; without one a drawing is used",
        type=["png", "jpg", "jpeg"],
        key="image_file",
    )
    return None if given is None else given.getvalue()


def _without_model(data: bytes | None) -> None:
    """How a picture becomes tokens, which needs no model, and how to get one."""
    hub = (
        "type the id of one on the Hugging Face hub above, such as `google/vit-base-patch16-224` "
        "or `facebook/dinov2-small` (fetched once, needs the internet), or "
        if hub_allowed()
        else ""
    )
    st.info(
        f"No model of images is bundled. To see attention here, {hub}put a model's folder into the "
        "directory that `EXPLORER_MODELS` names."
    )
    try:
        image = example() if data is None else read_image(data)
    except ImageError as error:
        st.error(plain(str(error)), icon=":material/info:")
        return
    picture = np.asarray(image.resize((EXAMPLE_SIDE, EXAMPLE_SIDE)))
    figure = over_picture(
        picture,
        None,
        EXAMPLE_GRID,
        EXAMPLE_GRID,
        theme=frame.theme(),
        width_px=min(width.column(), 480),
    )
    alt = f"The picture cut into {EXAMPLE_GRID} by {EXAMPLE_GRID} patches."
    chart(figure, "cut", alt)
    st.caption(
        f"To a model each square is one token, as a piece of a word is in a text: here "
        f"{EXAMPLE_GRID} × {EXAMPLE_GRID} = {EXAMPLE_GRID**2} patches, as ViT cuts a picture."
    )


def show(shown: Shown) -> None:
    """One head's weights of a chosen patch over the picture, and in numbers."""
    stack = controls.choose_stack(shown.capture)
    names = list(stack.query_tokens.texts)
    left, right = st.columns(2, gap="large")
    with left:
        with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
            layer, head = controls.choose_head(stack)
            query = _choose_query(shown.grid, names)
        row = _weights(stack, layer, head, query)
        patches = row[shown.grid.n_special :].reshape(shown.grid.rows, shown.grid.columns)
        figure = over_picture(
            shown.picture,
            patches,
            shown.grid.rows,
            shown.grid.columns,
            theme=frame.theme(),
            chosen=shown.grid.place(query),
            width_px=min(width.column(), 560),
        )
        alt = picture_alt(names[shown.grid.n_special :], patches, names[query])
        chart(figure, CHART, alt)
        cell_clicks(CHART, "picture_click", lambda click: _clicked(click, shown.grid))
    with right:
        _in_words(shown.grid, names, row, query, layer, head)


def _weights(stack: Stack, layer: int, head: int, query: int) -> np.ndarray:
    found = stack.layer(layer).weights([head], [query])[0, 0].float().cpu().numpy()
    return np.asarray(found)


def _choose_query(grid: Grid, names: list[str]) -> int:
    options = list(range(len(names)))
    middle = grid.position(grid.rows // 2, grid.columns // 2)
    return controls.choose_place("patch", "Query", options, names.__getitem__, middle, width=180)


def _clicked(click: Click, grid: Grid) -> None:
    if 0 <= click.y < grid.rows and 0 <= click.x < grid.columns:
        address.put(patch=grid.position(click.y, click.x))


def _in_words(
    grid: Grid, names: list[str], row: np.ndarray, query: int, layer: int, head: int
) -> None:
    st.markdown(
        f"**Layer {layer}, head {head}.** The picture is cut into {grid.rows} × {grid.columns} "
        f"patches, each one token. The query is **{plain(names[query])}**: the more orange a "
        "patch, the more weight it has in what this head takes in there. Click a patch to make it "
        "the query."
    )
    special = float(row[: grid.n_special].sum())
    if grid.n_special:
        st.markdown(
            f"Apart from the patches: {share(special)} of the weight is on "
            f"{plain(', '.join(names[: grid.n_special]))}, which stands for no place in it."
        )
    order = np.argsort(-row)
    st.dataframe(
        pd.DataFrame({"Key": [names[n] for n in order], "Weight": row[order] * 100}),
        column_config={"Weight": st.column_config.NumberColumn(format="%.2f %%")},
        hide_index=True,
        height=330,
        alt="The weight of every key, the largest first.",
    )
    total = float(row.sum())
    st.caption(
        f"**Checked:** the {len(row)} weights of this query sum to {total:.6f}. A link to this "
        "view holds the model, layer, head and patch, not the picture."
    )
