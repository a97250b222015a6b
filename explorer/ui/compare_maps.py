"""The three pictures of the page Compare: left, right, and right − left, in one colour range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from explorer.figures.domain import Kind, head_map_alt, value_domain
from explorer.figures.heatmap import head_map
from explorer.paired import Map, Paired
from explorer.ui import frame, width
from explorer.ui.chart import chart
from explorer.ui.compare_place import Place, choose_cell
from explorer.ui.compare_sides import Chosen
from explorer.ui.outline import outline
from explorer.ui.plotly_click import cell_clicks

LABELS = 118  # pixels that token labels take beside a map
SMALLEST, LARGEST = 200, 440  # pixels of a map's longer side
Values = npt.NDArray[np.float32]


class Picture(NamedTuple):
    """One of the three: its key, its values, and what it shows."""

    name: str
    """left, right or difference."""
    title: str
    values: Values
    of: Map
    forbidden: npt.NDArray[np.bool_]
    kind: Kind
    unit: str
    """What a cell holds, and its unit."""


def pictures_of(pair: Paired, sides: Sequence[Chosen]) -> list[Picture]:
    """Two maps, and their difference where they can be aligned."""
    found = [
        Picture(
            name,
            side.title,
            array(each.weights),
            each,
            ~array_of_flags(each.allowed),
            "weights",
            f"{side.measure}, share of 1",
        )
        for name, side, each in zip(("left", "right"), sides, (pair.left, pair.right), strict=True)
    ]
    if pair.compared is not None:
        both = ~array_of_flags(pair.left.allowed | pair.right.allowed)
        gap = found[1].values - found[0].values
        left, right = (side.measure for side in sides)
        what = f"difference in {left}" if left == right else f"{right} − {left}"
        found.append(
            Picture(
                "difference",
                "Right − left",
                gap,
                pair.left,
                both,
                "difference",
                f"{what}, share of 1",
            )
        )
    return found


def show_map(pictures: Sequence[Picture], at: int, place: Place | None) -> None:
    """One of the pictures, with the chosen query or key framed."""
    picture = pictures[at]
    top = max(
        value_domain(np.where(each.forbidden, np.nan, each.values), "weights")[1]
        for each in pictures[:2]
    )
    others = {
        {"left": "left", "right": "right", "difference": "right − left"}[each.name]: each.values
        for each in pictures
        if each.name != picture.name and len(pictures) == 3
    }
    signed = picture.kind == "difference"
    figure = head_map(
        picture.values,
        query_labels=picture.of.query_labels,
        key_labels=picture.of.key_labels,
        raw_query=picture.of.raw_queries,
        raw_key=picture.of.raw_keys,
        kind=picture.kind,
        theme=frame.theme(),
        forbidden=picture.forbidden,
        padded_queries=array_of_flags(picture.of.padded),
        extra=others,
        unit=picture.unit,
        value_range=(-top if signed else 0.0, top),
        max_px=min(max(width.column() - LABELS, SMALLEST), LARGEST),
    )
    labels = picture.of.query_labels, picture.of.key_labels
    alt = head_map_alt(picture.title, picture.kind, *labels, picture.values, picture.unit)
    key = f"compare_{picture.name}"
    chart(figure, key, alt, tools=True)
    if place is None:
        return
    n_q, n_k = picture.values.shape
    cell_clicks(key, f"{key}_click", lambda click: choose_cell(click, n_q))
    if place.axis == "q":
        outline(key, x=(0, n_k - 1), y=(place.at, place.at), width=2)
    else:
        outline(key, x=(place.at, place.at), y=(0, n_q - 1), width=2)


def array(values: Tensor) -> Values:
    """As a picture wants it."""
    found: Values = values.float().cpu().numpy()
    return found


def array_of_flags(values: Tensor) -> npt.NDArray[np.bool_]:
    """The same for flags."""
    found: npt.NDArray[np.bool_] = values.cpu().numpy()
    return found
