"""What the learning pages share: the reader's text as vectors, projected to one layer's attention.

Vectors are random, a model's token embeddings, or its hidden states; projections are our own
`MultiHeadAttention`, or those of a layer of the model. Every choice stands in the address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import streamlit as st
import torch

from explorer.attention import Attention
from explorer.capture import Stack
from explorer.checks import invariants
from explorer.masks import Mask
from explorer.models import Encoded, LoadedModel, ModelError, TextError, encode
from explorer.multihead import MultiHeadAttention
from explorer.tokens import Tokens
from explorer.ui import address, cached, controls
from explorer.ui.words import plain, tiny
from explorer.vectors import hidden_states, random_embeddings, token_embeddings, words

TEXT = "the cat sat on the mat"
MOST_TOKENS = 32
MODEL = "minilm"
VECTORS = {"random": "Random", "embeddings": "Token embeddings", "hidden": "Hidden states"}
PROJECTIONS = {"own": "Our own", "model": "A layer of the model"}
D_MODEL = (4, 8, 16, 32, 64)


@dataclass(frozen=True, eq=False)
class Lesson:
    """A text, its vectors, and one layer's attention on it."""

    tokens: Tokens
    x: torch.Tensor | None
    """(length, d_model); None where a model's own layer made the queries, keys and values."""
    layer: MultiHeadAttention | None
    """Our own projections; None where they are a model's."""
    attention: Attention
    about: str
    """Where the vectors and projections come from, in a few words."""
    on: Callable[[str], Lesson] | None = None
    """The same choices on another text; raises TextError where it can't be read."""

    @property
    def stack(self) -> Stack:
        """The same as a stack of one layer."""
        return Stack("lesson", self.tokens, self.tokens, (self.attention,), (0,), 1)

    def masked(self, mask: Mask | None) -> Lesson:
        """The same with another mask; rows without a key become zeros."""
        changed = self.attention.replace(mask=mask, on_masked_row="zero")
        return replace(self, attention=changed)


class Source(NamedTuple):
    """Where the vectors of a text come from."""

    kind: str
    """One of VECTORS."""
    layer: int = 0
    """The layer whose hidden states they are."""
    d_model: int = 8
    """The size of random ones."""
    seed: int = 0
    """The seed of random ones."""


def choose_lesson() -> Lesson:
    """Text, vectors and projections. Ends the page with a sentence where they can't be had."""
    text = text_line("text", "Text", TEXT)
    with readable(), st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        own = choose_projections() == "own"
        source = choose_source() if own else Source("hidden", choose_layer())
        if own:
            with st.popover("Sizes and seed", icon=":material/tune:"):
                sizes = _choose_sizes(source.kind == "random")
            source = source._replace(d_model=sizes.pop("d_model", 0), seed=sizes["seed"])

        def on(text: str) -> Lesson:
            if not own:
                return replace(model_layer(text, source.layer, MOST_TOKENS), on=on)
            tokens, x, about = vectors_of(text, source, MOST_TOKENS)
            layer = MultiHeadAttention(x.shape[1], **sizes)
            return replace(own_layer(tokens, x, layer, about, sizes["seed"]), on=on)

        return on(text)


@contextmanager
def readable() -> Iterator[None]:
    """Ends the page with a sentence where a text or a model inside can't be read."""
    try:
        yield
    except (TextError, ModelError) as error:
        st.error(plain(str(error)), icon=":material/info:")
        address.stop()


def choose_projections() -> str:
    """Whose queries, keys and values: one of PROJECTIONS."""
    return controls.choose_one("projections", PROJECTIONS, buttons=True)


def choose_source() -> Source:
    """The kind of vectors, and the layer of hidden states."""
    kind = controls.choose_one("vectors", VECTORS, buttons=True)
    return Source(kind, choose_layer() if kind == "hidden" else 0)


def choose_layer() -> int:
    """One of the layers of the bundled model."""
    return pick("from_layer", "Layer", range(cached.model(MODEL).n_layers or 1))


@st.cache_resource(max_entries=128, show_spinner=False)
def vectors_of(
    text: str, source: Source, most_tokens: int, positions: bool = True
) -> tuple[Tokens, torch.Tensor, str]:
    """The text's tokens, a vector for each, and where they come from in a few words.

    Raises TextError, ModelError. positions: whether random vectors tell where a word stands.
    """
    if source.kind == "random":
        tokens = words(text, most_tokens)
        x = random_embeddings(tokens, source.d_model, source.seed, positions)
        return tokens, x, f"random vectors, seed {source.seed}"
    loaded = cached.model(MODEL)
    encoded = encoded_within(loaded, text, most_tokens)
    if source.kind == "embeddings":
        x, about = token_embeddings(loaded, encoded), f"{loaded.title}'s token embeddings"
    else:
        x = hidden_states(loaded, encoded, source.layer)
        about = f"{loaded.title}'s hidden states at layer {source.layer}"
    return encoded.tokens, x, about


def own_layer(
    tokens: Tokens, x: torch.Tensor, layer: MultiHeadAttention, about: str, seed: int
) -> Lesson:
    """Vectors through projections of our own."""
    about += f", projected by our own W_Q, W_K, W_V, seed {seed}"
    return Lesson(tokens, x, layer, layer.attention(x), about)


def model_layer(text: str, layer: int, most_tokens: int) -> Lesson:
    """The text through a layer of the bundled model, with the model's own projections."""
    loaded = cached.model(MODEL)
    encoded_within(loaded, text, most_tokens)
    capture = cached.captured(MODEL, "auto", "auto", text, None, True, False)
    stack = capture.stacks["encoder"]
    attention = stack.layer(layer)
    assert isinstance(attention, Attention)  # the bundled model runs through our attention
    return Lesson(stack.query_tokens, None, None, attention, f"{loaded.title}, layer {layer}")


def encoded_within(loaded: LoadedModel, text: str, most_tokens: int) -> Encoded:
    """The text as the model reads it; TextError where it has more tokens than fit on a page."""
    encoded = encode(loaded, text)
    if len(encoded.tokens) > most_tokens:
        raise TextError(
            f"{len(encoded.tokens)} tokens are too many to read here. Use at most {most_tokens}."
        )
    return encoded


def _choose_sizes(with_d_model: bool) -> dict[str, Any]:
    """d_model, n_heads, d_k, d_v and the seed of our own projections."""
    sizes: dict[str, Any] = {}
    if with_d_model:
        sizes["d_model"] = pick("d_model", "d_model, the size of a vector", D_MODEL, 8)
    sizes["n_heads"] = pick("n_heads", "Heads", (1, 2, 3, 4, 6, 8), 2)
    default = max(1, sizes.get("d_model", 16) // sizes["n_heads"])
    options = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
    nearest = min(options, key=lambda option: abs(option - default))
    sizes["d_k"] = pick("d_k", "d_k, the size of a query and a key", options, nearest)
    sizes["d_v"] = pick("d_v", "d_v, the size of a value", options, nearest)
    sizes["seed"] = pick("seed", "Seed", range(100))
    return sizes


def text_line(name: str, label: str, default: str) -> str:
    """A line of text, kept in the address."""
    address.start(name, default, str)
    text = st.text_input(label, key=name)
    address.finish(name, default)
    return text


def pick(
    name: str,
    label: str,
    options: range | tuple[int, ...],
    default: int | None = None,
    width: int = 200,
) -> int:
    """A number among some, as a select box, kept in the address."""
    numbers = list(options)
    first = numbers[0] if default is None else default
    address.start(name, first, address.number_of(name, numbers, first))
    if st.session_state[name] not in numbers:
        st.session_state[name] = min(numbers, key=lambda n: abs(n - st.session_state[name]))
    st.selectbox(label, numbers, key=name, width=width)
    address.finish(name, first)
    return int(st.session_state[name])


def proof(lesson: Lesson) -> None:
    """One line that says it is true, measured on what the page shows."""
    found = invariants(lesson.stack)
    parts = [
        f"rows sum to 1 within {tiny(found.row_sum_deviation)}",
        f"weight on forbidden keys {tiny(found.forbidden_weight)}",
    ]
    if found.masked_rows:
        parts.append(f"{found.masked_rows} queries have no key, so their rows are zeros")
    about = lesson.about[:1].upper() + lesson.about[1:]
    st.caption(f"**Checked:** {' · '.join(parts)}. {plain(about)}.")
