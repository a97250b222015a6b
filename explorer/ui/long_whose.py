"""Whose heads read the long text: our own over its embeddings or a model itself; their mask."""

from __future__ import annotations

from typing import Any, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.long_sources import MOST_TOKENS, text_tokens
from explorer.masks import Mask, causal, sliding_window
from explorer.models import LoadedModel, count_tokens
from explorer.text import MAX_CHARACTERS
from explorer.tokens import Tokens
from explorer.ui import address, cached, controls, lesson
from explorer.ui.long_text import LongText

KINDS = {"layer": "Our own, trained", "random": "Our own, random", "model": "The model itself"}
ABOUT = {
    "layer": "A layer's trained W_Q and W_K on embeddings **without positions**: any length fits, "
    "and equal words look alike wherever they stand.",
    "random": "Our own W_Q and W_K, drawn at random, on embeddings **without positions**: heads "
    "before any training.",
    "model": "The model reads the text as it always does, with positions, layer after layer.",
}
MASKS = {"none": "None", "causal": "Causal", "window": "Window"}
WIDTHS = (16, 64, 128, 256, 512, 1024, 2048, 4096)
HEADS = 12
"""Of our own random layer, where the size of the embeddings divides by it."""


class Whose(NamedTuple):
    """All that the weights depend on."""

    loaded: LoadedModel
    model: tuple[str, str, str]
    """Its name, device and number format."""
    kind: str
    layer: int
    seed: int
    rule: str
    width: int
    text: LongText
    tokens: Tokens
    """Those that stand for the text itself."""
    whole: bool
    """Whether the model itself could read the text at once."""

    @property
    def key(self) -> tuple[object, ...]:
        """Names the weights in caches."""
        own = (self.seed,) if self.kind == "random" else (self.layer,)
        rule = () if self.kind == "model" else (self.rule, self.width * (self.rule == "window"))
        return (*self.model, self.kind, *own, *rule, self.text.digest, len(self.tokens))

    @property
    def n_heads(self) -> int:
        """How many heads the layer has."""
        if self.kind == "random":
            return random_heads(self.loaded)
        return self.loaded.n_heads or HEADS

    @property
    def title(self) -> str:
        """The layer in words."""
        if self.kind == "random":
            return f"random heads, seed {self.seed}"
        return f"{self.loaded.title}, layer {self.layer}"

    def mask(self) -> Mask | None:
        """The mask of our own heads."""
        if self.rule == "none":
            return None
        return causal() if self.rule == "causal" else sliding_window(self.width)

    def pairs(self) -> float:
        """How many weights each head has, about."""
        n, rule = len(self.tokens), self.rule
        if self.kind == "model":
            return float(n * n if self.whole else n * (self.loaded.max_tokens or n))
        if rule == "window":
            return float(n * min(self.width, n))
        return n * n / (2 if rule == "causal" else 1)


def random_heads(loaded: LoadedModel) -> int:
    """The most heads, up to 12, that divide the model's embeddings evenly."""
    table: Any = loaded.model.get_input_embeddings()
    size = int(table.weight.shape[1])
    return next(count for count in range(HEADS, 0, -1) if size % count == 0)


def choose(row: DeltaGenerator, text: LongText) -> Whose:
    """The model, in the row of the text; whose heads, which layer, which mask, below it.

    Ends the page with a sentence where the text or the model can't be read.
    """
    with row:
        name = controls.choose_model()
        device, dtype, _ = controls.choose_options()
    with lesson.readable():
        loaded = cached.model(name, device, dtype)
        text, tokens = _within(loaded, text, (name, device, dtype))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        kind = controls.choose_one("whose", KINDS, label="Whose heads", buttons=True)
        layer, seed, rule, width = 0, 0, "none", WIDTHS[4]
        if kind == "random":
            seed = lesson.pick("seed", "Seed", range(100))
        else:
            layer = controls.choose_number("layer", list(range(loaded.n_layers or 1)))
        if kind != "model":
            rule = controls.choose_one("rule", MASKS, label="Mask", buttons=True)
            if rule == "window":
                width = lesson.pick("width", "Keys in the window", WIDTHS, 512)
    limit = loaded.max_tokens
    model = (name, device, dtype)
    whole = limit is None or _count(loaded, text.text, *model, text.digest) <= limit
    about = ABOUT[kind]
    if kind == "model" and not whole:
        about = (
            f"{loaded.title} reads at most {limit:,} tokens at once, so it reads this text in "
            "**overlapping pieces**. Only words in one piece see each other: the picture is a band "
            "of blocks, and the rest is not computed."
        )
    st.caption(about)
    return Whose(loaded, model, kind, layer, seed, rule, width, text, tokens, whole)


def _within(
    loaded: LoadedModel, text: LongText, model: tuple[str, str, str]
) -> tuple[LongText, Tokens]:
    """The text, cut at the limit where the reader agrees; its tokens. Raises TextError."""
    begin = text.text[:MAX_CHARACTERS]
    more = "more than " if len(begin) < len(text.text) else ""
    tokens = _tokens(loaded, begin, *model, text.digest)
    if len(tokens) <= MOST_TOKENS and not more:
        return text, tokens
    most = min(MOST_TOKENS, len(tokens))
    st.warning(
        f"This text has {more}{len(tokens):,} tokens, and at most {MOST_TOKENS:,} are shown at "
        "once.",
        icon=":material/content_cut:",
    )
    if not controls.choose_yes("cut", f"Read the first {most:,} tokens"):
        address.stop()
    last = tokens.spans[most - 1]
    cut = begin[: last[1]] if last else begin
    text = text._replace(text=cut, digest=f"{text.digest} cut")
    tokens = _tokens(loaded, cut, *model, text.digest)
    return text, tokens


@st.cache_resource(max_entries=8, show_spinner=False)
def _tokens(_loaded: LoadedModel, _text: str, *key: object) -> Tokens:
    """The text's tokens. `key` names the model and the text."""
    return text_tokens(_loaded, _text)


@st.cache_resource(max_entries=8, show_spinner=False)
def _count(_loaded: LoadedModel, _text: str, *key: object) -> int:
    """How many tokens the model has to read, those it adds included."""
    return count_tokens(_loaded, _text)
