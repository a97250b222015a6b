"""The pictures of each station."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st
from torch import Tensor

from explorer.arithmetic import concatenated, joined
from explorer.figures.before_after import before_after
from explorer.figures.domain import Kind, head_map_alt, value_domain
from explorer.figures.frame import SLANT
from explorer.figures.heatmap import head_map
from explorer.figures.labels import label_pixels
from explorer.figures.matrix import matrix, matrix_alt
from explorer.ui import frame, width
from explorer.ui.chart import chart
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.scene import Scene
from explorer.ui.station_words import spread
from explorer.ui.words import plain

SIDE_BY_SIDE_UP_TO = 12  # tokens: past this one map takes the whole width
HALF = 300  # pixels a picture has where two stand side by side
WIDE = 500  # pixels of cells where one stands alone
Numbers = npt.NDArray[np.float32]


class Place(NamedTuple):
    """What is chosen in the pictures."""

    row: int
    key: int
    dimension: int


class Picture(NamedTuple):
    """A figure, its name for keys, itself in words, and what a click on it chooses."""

    name: str
    figure: go.Figure
    alt: str
    chooses: tuple[str, str]
    """What a click's row and column are: "query", "key" or "dimension"; "" for nothing."""
    letter: str = ""
    """Of which vector a click asks for a number: Q, K or V."""


def array(tensor: Tensor) -> Numbers:
    """A tensor as float32 numbers."""
    found: Numbers = tensor.detach().float().cpu().numpy()
    return found


def pictures(scene: Scene, station: str, place: Place) -> None:
    """The station's matrices; a click on a cell chooses it."""
    found = PICTURES[station](scene, place)
    with st.container(horizontal=True, gap="small"):
        for picture in found:
            chart(picture.figure, f"{station}_{picture.name}", picture.alt)
    for picture in found:
        name = f"{station}_{picture.name}"
        cell_clicks(name, f"{name}_click", _chooser(picture))


def _chooser(picture: Picture) -> Callable[[Click], None]:
    def choose(click: Click) -> None:
        for name, at in zip(picture.chooses, (click.y, click.x), strict=True):
            if name and at >= 0:  # one beyond the end is put right where the choice is drawn
                st.session_state[name] = at
        if picture.letter:
            st.session_state["vector"] = picture.letter

    return choose


def _qkv(scene: Scene, place: Place) -> list[Picture]:
    attention, kv = scene.attention, scene.kv_head
    letter = st.session_state.get("vector", "Q") if scene.layer is not None else ""
    found = []
    if scene.x is not None:
        row = place.row if letter == "Q" else place.key
        found.append(_vectors("X", "X: the vectors", scene.x, scene, row=row))
    for name, title, values, row in (
        ("Q", "Q: queries", attention.query[scene.head], place.row),
        ("K", "K: keys", attention.key[kv], place.key),
        ("V", "V: values", attention.value[kv], place.key),
    ):
        cell = (row, place.dimension) if name == letter else None
        chooses = "query" if name == "Q" else "key"
        picture = _vectors(name, title, values, scene, row=row, cell=cell, chooses=chooses)
        found.append(picture._replace(letter=name))
    return found


def _dots(scene: Scene, place: Place) -> list[Picture]:
    return [_map(scene, place, "dots", "dots", "QKᵀ: every query with every key", True)]


def room(labels: Sequence[str], slanted: bool = False) -> int:
    """Pixels that are left for the cells of one of two pictures, beside their labels."""
    longest = max(map(label_pixels, labels))
    beyond = max(14, SLANT * longest - 10) if slanted else 12
    return int(min(max(HALF - longest - 42 - beyond, 120), 240))


def _scale(scene: Scene, place: Place) -> list[Picture]:
    title = f"Scores: dots × {scene.attention.scale:.4g}"
    before = [_map(scene, place, "before", "dots", "Dots", True)] if _two_fit(scene) else []
    return [*before, _map(scene, place, "after", "scores", title, True)]


def _mask(scene: Scene, place: Place) -> list[Picture]:
    scores = array(scene.attention.scores([scene.head]))
    span = value_domain(scores, "scores")  # one range, so that the pictures can be compared
    after = _map(scene, place, "after", "scores", "Masked scores", span=span)
    if not _two_fit(scene):
        return [after]
    return [_map(scene, place, "before", "scores", "Scores", True, span), after]


def _softmax(scene: Scene, place: Place) -> list[Picture]:
    before = [_map(scene, place, "before", "scores", "Masked scores")] if _two_fit(scene) else []
    return [*before, _map(scene, place, "after", "weights", "Weights: rows sum to 1")]


def _values(scene: Scene, place: Place) -> list[Picture]:
    attention, head = scene.attention, scene.head
    values = attention.value[scene.kv_head]
    cell = place.row, place.dimension
    shares = attention.weights([head], [place.row])[0, 0]  # (n_k,)
    parts = array(shares[:, None] * values.float())  # (n_k, d_v)
    output = attention.output()[head]
    labels = [*scene.key_tokens.texts, "sum"]
    query = scene.tokens.texts[place.row]
    title = "Weight × value, and the sum"
    summed = np.concatenate([parts, array(output[place.row])[None]])
    figure = matrix(
        summed,
        row_labels=labels,
        row_title="Key",
        theme=frame.theme(),
        title=title,
        selected=(len(parts), place.dimension),
        max_px=room(labels),
        max_height_px=WIDE,
    )
    alt = matrix_alt(f"{title}, of query {place.row} ({query})", labels, summed)
    return [
        _map(scene, place, "weights", "weights", "Weights"),
        _vectors("V", "V: values", values, scene, row=place.key, chooses="key"),
        Picture("parts", figure, alt, ("", "dimension")),
        _vectors("output", "Output of this head", output, scene, cell=cell, chooses="query"),
    ]


def _join(scene: Scene, place: Place) -> list[Picture]:
    side, d_v = concatenated(scene.attention), scene.attention.d_v
    blocks = list(range(d_v, side.shape[1], d_v))
    title = "Heads side by side"
    found = [_vectors("heads", title, side, scene, row=place.row, chooses="query", blocks=blocks)]
    W_O = scene.attention.output_weight
    if W_O is not None:
        output = joined(scene.attention)
        cell = place.row, place.dimension
        w_o = array(W_O.flatten(0, 1))  # (h·d_v, d_out)
        names = [f"h{n // d_v} d{n % d_v}" for n in range(len(w_o))]
        # A model's has a few numbers far larger than the rest, which would leave it pale.
        most = float(np.quantile(np.abs(w_o), 0.99)) if w_o.shape[1] > 64 else None
        figure = matrix(
            w_o,
            row_labels=names,
            row_title="Head, dimension",
            theme=frame.theme(),
            title="W_O" if most is None else "W_O (colours fit 99 % of it)",
            value_range=(-most, most) if most else None,
            max_px=room(names),
            max_height_px=WIDE,
        )
        found.append(Picture("w_o", figure, matrix_alt("W_O", names, w_o), ("", "dimension")))
        title = "Output of the layer"
        found.append(_vectors("joined", title, output, scene, cell=cell, chooses="query"))
    return found


PICTURES: dict[str, Callable[[Scene, Place], list[Picture]]] = {
    "qkv": _qkv,
    "dots": _dots,
    "scale": _scale,
    "mask": _mask,
    "softmax": _softmax,
    "values": _values,
    "join": _join,
}


def _two_fit(scene: Scene) -> bool:
    """Whether before and after can stand side by side and be read."""
    return max(len(scene.tokens), len(scene.key_tokens)) <= SIDE_BY_SIDE_UP_TO


def _map(
    scene: Scene,
    place: Place,
    name: str,
    kind: Kind,
    title: str,
    unmasked: bool = False,
    span: tuple[float, float] | None = None,
) -> Picture:
    """Queries by keys. Unmasked: as it is before the mask is put on."""
    attention, heads = scene.attention, [scene.head]
    found = {"dots": attention.dots, "scores": attention.scores, "weights": attention.weights}
    values = array(found[kind](heads)[0])
    labels = scene.tokens.texts, scene.key_tokens.texts
    barred = ~attention.allowed(heads)[0].cpu().numpy()
    figure = head_map(
        values,
        query_labels=labels[0],
        key_labels=labels[1],
        kind=kind,
        theme=frame.theme(),
        forbidden=None if unmasked else barred,
        selected=(place.row, place.key),
        title=title,
        value_range=span,
        max_px=room([*labels[0], *labels[1]], slanted=True) if _two_fit(scene) else WIDE,
    )
    return Picture(name, figure, head_map_alt(title, kind, *labels, values), ("query", "key"))


def _vectors(
    name: str,
    title: str,
    vectors: Tensor,
    scene: Scene,
    *,
    row: int | None = None,
    cell: tuple[int, int] | None = None,
    chooses: str = "",
    blocks: Sequence[int] = (),
) -> Picture:
    """A vector for each token, as rows."""
    values = array(vectors)
    labels = (scene.key_tokens if chooses == "key" else scene.tokens).texts
    figure = matrix(
        values,
        row_labels=labels,
        theme=frame.theme(),
        title=title,
        selected=cell,
        selected_row=row,
        blocks=blocks,
        max_px=room(labels),
        max_height_px=WIDE,
    )
    column = "dimension" if chooses and not blocks else ""
    return Picture(name, figure, matrix_alt(title, labels, values), (chooses, column))


def row_bars(scene: Scene, row: int, key: int) -> None:
    """The query's row before and after softmax."""
    attention, heads = scene.attention, [scene.head]
    scores = array(attention.scores(heads, [row])[0, 0])
    weights = array(attention.weights(heads, [row])[0, 0])
    barred = ~attention.allowed(heads, [row])[0, 0].cpu().numpy()
    query = scene.tokens.texts[row]
    st.markdown(f"**Query {row}, {plain(query)}:** its row before and after softmax")
    figure = before_after(
        scores,
        weights,
        scene.key_tokens.texts,
        theme=frame.theme(),
        forbidden=barred,
        selected=key,
        width_px=width.column(),
        max_px=WIDE,
    )
    alt = f"Query {row}: its scores and its weights, a bar for each key in the order of the text."
    chart(figure, "before_after", alt, width="stretch")
    st.caption(spread(weights, int((~barred).sum())))
