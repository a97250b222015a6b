"""The views of the page Many heads: one layer split into heads, what each sees, and W_O."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st
from torch import Tensor

from explorer.arithmetic import concatenated
from explorer.attention import Attention
from explorer.cores import workers
from explorer.figures.grid import grid_alt, heads_grid
from explorer.figures.matrix import matrix_alt, matrix_parts
from explorer.figures.still import still
from explorer.head_sizes import HeadSizes, divisors
from explorer.metrics import layer_metrics
from explorer.multihead import MultiHeadAttention
from explorer.ui import frame, lesson, width
from explorer.ui.chart import chart
from explorer.ui.outline import outline
from explorer.ui.plotly_click import Click, cell_clicks
from explorer.ui.still_picture import still_picture
from explorer.ui.words import share

D_MODEL = 48
"""Divides by 1, 2, 3, 4, 6, 8, 12 and 16, so that many numbers of heads fit."""
MOST_HEADS = 16
MOST_TOKENS = 32
LABELS = 72  # pixels beside a picture
SMALL = 112  # pixels of a field for a small number
MOST_OF_THEM = 0.99
METRICS = ("entropy_share", "distance", "self")
NARROW = 400  # pixels of half the page: with less, three pictures stand under one another

Numbers = npt.NDArray[np.float32]


class Found(NamedTuple):
    """What the layer does with the text."""

    weights: Numbers
    """(n_heads, n, n)"""
    metrics: dict[str, list[float]]
    """By name, a number a head."""
    side_by_side: Numbers
    """The heads' outputs, (n, n_heads · d_v)."""
    output: Numbers
    """The layer's, (n, d_out)."""

    @classmethod
    def of(cls, attention: Attention) -> Found:
        """Worked out on one core: two would wait for each other, as the browser needs one too."""
        return workers().submit(cls._of, attention).result()

    @classmethod
    def _of(cls, attention: Attention) -> Found:
        metrics = layer_metrics(attention, names=METRICS)
        return cls(
            _array(attention.weights()),
            {name: values.tolist() for name, values in metrics.items()},
            _array(concatenated(attention)),
            _array(attention.joined()),
        )


class Split(NamedTuple):
    """A text through one layer, and how the layer is divided."""

    sizes: HeadSizes
    lesson: lesson.Lesson
    found: Found

    @property
    def fixed(self) -> bool:
        """Whether the division is a trained model's own, and can't be changed."""
        return self.lesson.layer is None


def choose() -> Split:
    """Text, vectors, number of heads and of key/value heads. Ends the page where they can't be."""
    text = lesson.text_line("text", "Text", lesson.TEXT)
    with lesson.readable(), st.container(horizontal=True, gap="medium"):
        if lesson.choose_projections() == "model":
            built = lesson.model_layer(text, lesson.choose_layer(), MOST_TOKENS)
            record = built.attention
            sizes = HeadSizes(record.n_heads * record.d_k, record.n_heads, record.n_kv_heads)
            return Split(sizes, built, Found.of(record))
        source = lesson.choose_source()._replace(d_model=D_MODEL)
        tokens, x, about = lesson.vectors_of(text, source, MOST_TOKENS)
        d_model = x.shape[1]
        n_heads = lesson.pick("split", "Heads", tuple(divisors(d_model, MOST_HEADS)), 4, SMALL)
        kv_options = tuple(reversed(divisors(n_heads, n_heads)))
        n_kv_heads = lesson.pick("split_kv", "Key/value heads", kv_options, n_heads, SMALL)
        seed = lesson.pick("split_seed", "Seed", range(100), width=SMALL)
    own = MultiHeadAttention(d_model, n_heads, n_kv_heads=n_kv_heads, seed=seed)
    built = workers().submit(lesson.own_layer, tokens, x, own, about, seed).result()
    return Split(HeadSizes(d_model, n_heads, n_kv_heads), built, Found.of(built.attention))


def _array(values: Tensor) -> Numbers:
    numbers: Numbers = np.ascontiguousarray(values.detach().float().cpu().numpy())
    return numbers


def choose_head(split: Split) -> int:
    """One of the heads, by number."""
    return lesson.pick("split_head", "Head", range(split.sizes.n_heads))


def grid(split: Split, head: int) -> None:
    """All heads side by side; a click chooses one."""
    figure = heads_grid(
        split.found.weights[None],
        layer_numbers=[0],
        theme=frame.theme(),
        width_px=width.column() - LABELS,
    )
    figure.update_yaxes(title_text="", showticklabels=False, ticks="")
    length = len(split.lesson.tokens)
    chart(figure, "split_grid", grid_alt(1, split.sizes.n_heads, length, length))
    outline("split_grid", x=(head, head), y=(0, 0))
    cell_clicks("split_grid", "split_grid_click", lambda click: _choose(click, split))


def _choose(click: Click, split: Split) -> None:
    if 0 <= click.x < split.sizes.n_heads:
        st.session_state["split_head"] = click.x


def each_head(split: Split) -> None:
    """A row for each head: which keys and values it uses, and how it looks."""
    found = split.found.metrics
    group = split.sizes.n_heads // split.sizes.n_kv_heads
    heads = range(split.sizes.n_heads)
    st.table(
        pd.DataFrame(
            {
                "head": [f"H{head}" for head in heads],
                "keys and values of": [f"key/value head {head // group}" for head in heads],
                "entropy, of its maximum": [share(v) for v in found["entropy_share"]],
                "distance": [f"{v:.1f} tokens" for v in found["distance"]],
                "on itself": [share(v) for v in found["self"]],
            }
        ).set_index("head"),
    )


def say_split(split: Split) -> None:
    """The division in words, in one place: what follows stays where it is, and is not redrawn."""
    with st.container():
        _say_split(split)


def _say_split(split: Split) -> None:
    sizes = split.sizes
    st.markdown(
        f"The vectors have **d_model = {sizes.d_model}** numbers. **{sizes.n_heads}** "
        f"head{'s' * (sizes.n_heads != 1)} share{'s' * (sizes.n_heads == 1)} them: each works with "
        f"**d_k = {sizes.d_model} / {sizes.n_heads} = {sizes.d_k}**, so its scale is "
        f"1/√{sizes.d_k} = {sizes.scale:.3f}. "
        + (
            "This division was fixed before the model was trained. To try others, choose "
            "projections of our own."
            if split.fixed
            else "More heads see more different things, each with smaller vectors."
        )
    )
    if sizes.n_kv_heads < sizes.n_heads:
        groups = "; ".join(
            f"heads {heads[0]}–{heads[-1]} use key/value head {kv}"
            for kv in range(sizes.n_kv_heads)
            for heads in [sizes.shared_by(kv)]
        )
        full = HeadSizes(sizes.d_model, sizes.n_heads, sizes.n_heads)
        st.markdown(
            f"**Grouped queries**: {groups}. Each head still has its own queries. A decoder then "
            f"keeps {sizes.kept_per_token} numbers of each token instead of "
            f"{full.kept_per_token}."
        )


def all_splits(split: Split) -> None:
    """The sizes for every number of heads that divides d_model."""
    rows = []
    for n_heads in divisors(split.sizes.d_model, MOST_HEADS):
        group = split.sizes.n_heads // split.sizes.n_kv_heads
        grouped = n_heads % group == 0
        sizes = HeadSizes(split.sizes.d_model, n_heads, n_heads // group if grouped else n_heads)
        numbers = sizes.parameters
        rows.append(
            {
                "heads": n_heads,
                "key/value heads": sizes.n_kv_heads,
                "d_k": sizes.d_k,
                "scale": f"{sizes.scale:.3f}",
                **{name: f"{count:,}" for name, count in numbers.items()},
                "parameters": f"{sum(numbers.values()):,}",
                "kept per token": sizes.kept_per_token,
            }
        )
    st.subheader("The same layer, divided otherwise", anchor=False)
    trained = (
        f" The model was trained with {split.sizes.n_heads} heads; each other line would be "
        "another model. Biases are left out."
    )
    st.markdown(
        "The number of heads changes no size of the layer: W_Q, W_K, W_V and W_O together keep "
        "4 · d_model² parameters. Only shared key/value heads make it smaller."
        + (trained if split.fixed else "")
    )
    st.dataframe(pd.DataFrame(rows), hide_index=True)


def joined(split: Split) -> None:
    """The heads' outputs side by side, W_O, and their product."""
    sizes, attention = split.sizes, split.lesson.attention
    W_O = attention.output_weight
    st.subheader("Side by side, then W_O", anchor=False)
    st.markdown(
        f"Each head gives every token {sizes.d_k} numbers. Put side by side they are "
        f"{sizes.n_heads} × {sizes.d_k} = {sizes.d_model} again. **W_O** mixes them, so that what "
        "one head found can reach every part of the token's new vector."
        + ("" if attention.output_bias is None else " This model then adds a bias.")
    )
    assert W_O is not None  # our own layer and the bundled model have one
    rows = split.lesson.tokens.texts
    dimensions = [str(number) for number in range(sizes.d_model)]
    starts = range(sizes.d_k, sizes.d_model, sizes.d_k)
    pictures = (
        ("joined_heads", "Heads side by side", split.found.side_by_side, rows, starts),
        ("joined_W_O", "W_O", _array(W_O.flatten(0, 1)), dimensions, ()),  # (h · d_v, d_out)
        ("joined_output", "The layer's output", split.found.output, rows, ()),
    )
    room = max(width.column() * 2 // 3 - 100, 160) if width.column() >= NARROW else 240
    large = sizes.d_model > D_MODEL  # a model's vectors, in which a few numbers are far larger
    with st.container(horizontal=True, gap="medium"):
        for key, name, numbers, labels, blocks in pictures:
            most = float(np.quantile(np.abs(numbers), MOST_OF_THEM)) if large else None
            parts = matrix_parts(
                numbers,
                row_labels=labels,
                row_title="Token" if labels is rows else "From dimension",
                theme=frame.theme(),
                blocks=list(blocks),
                value_range=(-most, most) if most else None,
                max_px=room,
                max_height_px=300,
            )
            picture = still(parts, key)
            with st.container(width=picture.width):
                st.markdown(f"**{name}, ({numbers.shape[0]}, {numbers.shape[1]})**")
                still_picture(picture, key=key, alt=matrix_alt(name, labels, numbers))
    if large:
        st.caption(
            f"Colours fit {MOST_OF_THEM:.0%} of each picture's numbers; the few beyond have the "
            "colour of the end."
        )
