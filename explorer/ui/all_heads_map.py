"""Which heads look alike, on the page All heads: a map of them, and the chosen one's neighbours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import streamlit as st

from explorer.figures.heads_map import heads_map, heads_map_alt
from explorer.figures.thumbnail import thumbnail
from explorer.similarity import HeadDistances, clusters
from explorer.ui import all_heads_links, cached, controls, frame, lesson, width
from explorer.ui.all_heads import choose, choose_metric, point
from explorer.ui.all_heads_numbers import Numbers, plane
from explorer.ui.chart import chart
from explorer.ui.plotly_click import cell_clicks
from explorer.ui.words import share

COLORS = {"layer": "Layer", "number": "A number", "group": "Group"}
NUMBER_OF_GROUPS = 4
MOST_GROUPS = 8
NEAREST = 5
TILE = 88  # pixels of a head's small picture
ABOUT = (
    "The distance of two heads: how differently their queries spread their weights. It goes from "
    "0, the same weights, to 0.83, never the same key."
)


def show(numbers: Numbers, found: HeadDistances, layer: int, head: int) -> None:
    """The map: heads as points, near each other where they look alike."""
    st.subheader("Which heads look alike", anchor=False)
    if len(found.heads) < 3:
        st.info("A map needs at least three heads.", icon=":material/info:")
        return
    with st.container(horizontal=True, gap="medium"):
        by = controls.choose_one("color", COLORS, label="Colour by", buttons=True)
        groups, values, title = None, None, ""
        if by == "group":
            options = tuple(range(2, min(MOST_GROUPS, len(found.heads)) + 1))
            count = lesson.pick("groups", "Groups", options, min(NUMBER_OF_GROUPS, options[-1]))
            groups = clusters(found.matrix, count)
        elif by == "number":
            name = choose_metric(numbers, "number", "entropy_share", "Number of the colour")
            metric = numbers.metrics[name]
            values = _in_order(numbers, numbers.of(name), found)
            title = f"{metric.title}, {metric.unit}"
    points, shown = plane(numbers, found)
    layers, heads = (np.array(each) for each in zip(*found.heads, strict=True))
    figure = heads_map(
        points,
        layers=layers,
        heads=heads,
        theme=frame.theme(),
        values=values,
        values_title=title,
        groups=groups,
        selected=(layer, head),
        width_px=width.column(),
    )
    alt = heads_map_alt(len(points), shown, COLORS[by].lower())
    chart(figure, "heads_map", alt)
    cell_clicks("heads_map", "heads_map_click", lambda click: point(click, numbers))
    st.markdown(
        f"This map shows **{100 * shown:.0f} %** of the squared distances between the heads; the "
        "rest does not fit into a plane. Two points apart are different heads; two near each "
        "other may still differ."
    )
    if groups is not None:
        st.caption(
            "Groups: heads are joined step by step where that adds least to the squared distances "
            "within a group (Ward 1963), by the full distances and not by the map."
        )
    _say_queries(numbers, found)


def _in_order(
    numbers: Numbers, values: npt.NDArray[np.float64], found: HeadDistances
) -> npt.NDArray[np.float64]:
    """The values of the heads that have distances, in their order."""
    places = numbers.places.itertuples(index=False, name=None)
    by_head = dict(zip(places, values, strict=True))
    return np.array([by_head[name] for name in found.heads])


def _say_queries(numbers: Numbers, found: HeadDistances) -> None:
    """Whose weights were compared, and the method."""
    there = len(numbers.stack.query_tokens) - int(numbers.stack.padded_queries.sum())
    queries = f"all {there} queries"
    if found.queries < there:
        queries = f"{found.queries} of the {there} queries, evenly spread, to be quick"
    left_out = len(numbers.places) - len(found.heads)
    more = f" {left_out} heads whose weights are not numbers are left out." if left_out else ""
    st.caption(
        f"From {queries}: the square root of the mean Jensen–Shannon divergence (Lin 1991; for "
        f"heads: Clark et al. 2019), laid out by classical scaling (Torgerson 1952).{more}"
    )


def alike(numbers: Numbers, found: HeadDistances, layer: int, head: int) -> None:
    """The nearest and the farthest heads of the chosen one, each to choose."""
    name = f"L{layer}H{head}"
    st.subheader(f"Heads like {name}", anchor=False)
    if (layer, head) not in found.heads:
        st.info(f"The weights of {name} are not numbers: nothing is known of it.")
        return
    others = found.like(layer, head)
    if not others:
        st.info("There is no other head to compare it with.")
        return
    st.markdown(ABOUT)
    nearest = others[:NEAREST]
    farthest = others[::-1][: min(NEAREST, len(others) - len(nearest))]
    small = cached.grid(numbers.capture, numbers.stack.name, *numbers.key)
    shown = [(layer, head), *(each for each, _ in (*nearest, *farthest))]
    top = max(float(np.nan_to_num(small.maps[each]).max()) for each in shown)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        _picture(small, (layer, head), top)
        with st.container(width="stretch"):
            (first, near), (last, far) = others[0], others[-1]
            st.markdown(
                f"Of {len(others)} other heads, **L{first[0]}H{first[1]}** is the most like {name} "
                f"(distance {near:.2f}) and **L{last[0]}H{last[1]}** the least ({far:.2f})."
            )
            for other in dict.fromkeys((first, last)):
                all_heads_links.compare(numbers, (layer, head), other)
    _row("Most alike", "like", nearest, small, top)
    if farthest:
        _row("Most different", "unlike", farthest, small, top)


def _row(
    title: str,
    key: str,
    heads: list[tuple[tuple[int, int], float]],
    small: cached.Grid,
    top: float,
) -> None:
    """Some heads side by side: a small map, a button with the name, the distance."""
    st.markdown(f"**{title}**")
    with st.container(horizontal=True, gap="xsmall"):
        for at, (other, far) in enumerate(heads):
            with st.container(width=TILE, gap="xxsmall", key=f"{key}_tile_{at}"):
                _picture(small, other, top)
                st.button(
                    f"L{other[0]}H{other[1]}",
                    key=f"{key}_{at}",
                    on_click=choose,
                    args=other,
                    width="stretch",
                )
                st.caption(f"{far:.3f}", text_alignment="center")


def _picture(small: cached.Grid, head: tuple[int, int], top: float) -> None:
    """A head's map, small."""
    layer, number = head
    barred = small.forbidden[layer]
    uri = thumbnail(
        small.maps[layer, number],
        theme=frame.theme(),
        forbidden=barred[number if len(barred) > 1 else 0],
        max_value=top,
    )
    largest = share(float(np.nan_to_num(small.maps[layer, number]).max()))
    alt = f"Small map of L{layer}H{number}; its largest weight is {largest}."
    st.image(uri, width=TILE, alt=alt)
