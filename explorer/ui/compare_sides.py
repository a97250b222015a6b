"""One side of the page Compare: which model reads which text, which head, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.capture import Capture, Stack
from explorer.models import CATALOGUE, LoadedModel, ModelError, TextError, TooLongError
from explorer.sides import (
    ABOUT,
    AVERAGE,
    MASKS,
    MEASURES,
    ROLLOUT,
    SCALES,
    WEIGHED,
    CannotLookError,
    Look,
    Side,
    named_heads,
    seen,
)
from explorer.ui import address, cached
from explorer.ui.compare_fields import Fields, SideName, put, value_of
from explorer.ui.controls import DEFAULT_TEXT
from explorer.ui.typing_count import typing_count
from explorer.ui.words import plain

MOST_TOKENS = 1024
"""Past so many tokens a difference of two whole maps is more than a browser draws well."""
HEADS: dict[SideName, int] = {"left": 2, "right": 8}
"""Two heads of the bundled model's first layer that look very different."""
STACKS = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Decoder to encoder (cross)"}


CaptureKey = tuple[str, str, str, str, str | None, bool]
"""Model, device, number format, text, second text, and whether typed specials are text."""


class Chosen(NamedTuple):
    """A side as it was chosen, and its map."""

    fields: Fields
    loaded: LoadedModel
    capture: Capture
    key: tuple[object, ...]
    stack: Stack
    look: Look
    side: Side

    @property
    def title(self) -> str:
        """The head, as people write it."""
        return self.look.name

    @property
    def measure(self) -> str:
        """What a cell of its map holds, a share of 1."""
        return MEASURES[self.look.way]

    @property
    def texts(self) -> tuple[object, object]:
        """The texts that its queries and its keys are of, to tell whether two sides share them."""
        text, pair = self.key[3], self.key[4]
        if not self.loaded.is_encoder_decoder:
            return (text, pair), (text, pair)
        name = self.stack.name
        written, read = (pair, None), (text, None)
        return (
            read if name.startswith("encoder") else written,
            read if name.startswith(("encoder", "cross")) else written,
        )


def choose_side(fields: Fields, device: str, dtype: str, as_text: bool) -> Chosen | None:
    """All controls of a side, and its map; a sentence and None where there is none."""
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    try:
        with row:
            name = _choose_model(fields)
        loaded = cached.model(name, device, dtype)
        if loaded.reader is None:
            raise ModelError(f"{loaded.title} comes without a tokenizer, so it reads no text here.")
        text, pair = _choose_text(fields, loaded)
        key = (name, device, dtype, text, pair, as_text)
        capture, cut = _captured(fields, key)
        for note in capture.notes:
            st.caption(plain(note))
        look, stack = _choose_look(fields, capture, row)
        side = make(stack, look)
    except (ModelError, TextError, CannotLookError) as error:
        st.error(plain(str(error)), icon=":material/info:")
        return None
    return Chosen(fields, loaded, capture, (*key, cut), stack, look, side)


def make(stack: Stack, look: Look) -> Side:
    """The side's map. Raises CannotLookError, for a text that is too long as well."""
    longest = max(len(stack.query_tokens), len(stack.key_tokens))
    if longest > MOST_TOKENS:
        raise CannotLookError(
            f"Whole maps can be compared up to {MOST_TOKENS:,} tokens; here are {longest:,}. "
            "Shorten the text, or look at it on the Heads page."
        )
    return seen(stack, look)


def _choose_model(fields: Fields) -> str:
    options = [*CATALOGUE, *cached.local_models()]
    default = fields.default("model", options[0])
    parse = address.one_of(
        f"{fields.side} model",
        cached.is_allowed,
        "Showing the bundled model. A model is a name from the list or a hub id such as "
        "“openai-community/gpt2”.",
    )
    name = fields.start("model", default, parse)
    if st.session_state[name] not in options:
        options.append(st.session_state[name])
    chosen = st.selectbox(
        "Model",
        options,
        key=name,
        format_func=lambda option: CATALOGUE[option].title if option in CATALOGUE else option,
        accept_new_options=True,
        help="Choose one, or type the id of a model on the Hugging Face hub.",
    )
    address.finish(name, default)
    if not cached.is_allowed(chosen):
        raise ModelError(f"“{chosen}” is no model id. Choose one, or type an id as owner/name.")
    return str(chosen)


def _choose_text(fields: Fields, loaded: LoadedModel) -> tuple[str, str | None]:
    default = fields.default("text", DEFAULT_TEXT)
    name = fields.start("text", default, str)
    second = loaded.takes_pairs or loaded.is_encoder_decoder
    columns = st.columns([3, 2], gap="small") if second else [st.container()]
    text = columns[0].text_area("Text", key=name, height=68)
    address.finish(name, default)
    pair = None
    if second:
        label = "Text it writes" if loaded.is_encoder_decoder else "Second text (optional)"
        its_default = fields.default("pair", "")
        its_name = fields.start("pair", its_default, str)
        pair = columns[1].text_area(label, key=its_name, height=68) or None
        address.finish(its_name, its_default)
    typing_count(name, loaded, text, None if loaded.is_encoder_decoder else pair)
    if max(len(text), len(pair or "")) > address.LONGEST:
        st.caption("The text is too long to stand in the page's address; a link won't hold it.")
    return text, pair


def _captured(fields: Fields, key: CaptureKey) -> tuple[Capture, bool]:
    """The text through the model; where it is too long, cut if the reader says so."""
    try:
        return cached.captured(*key, False), False
    except TooLongError as error:
        st.warning(plain(str(error)), icon=":material/content_cut:")
        default = fields.default("cut", False)
        name = fields.start("cut", default, _yes_or_no)
        cut = st.toggle("Cut the text to fit", key=name)
        address.finish(name, default)
        if not cut:
            raise TextError("Cut or shorten the text to compare it.") from error
        return cached.captured(*key, True), True


def _yes_or_no(given: str) -> bool:
    if given not in ("yes", "False"):
        raise ValueError(f"The link asks for cut “{given[:60]}”. It can be “yes” or “False” only.")
    return given == "yes"


def _choose_stack(fields: Fields, capture: Capture) -> Stack:
    options = {name: STACKS.get(name, name.capitalize()) for name in capture.stacks}
    wanted = fields.default("stack", None)
    default = wanted if wanted in options else next(iter(options))
    if len(options) == 1:
        return capture.stacks[default]
    return capture.stacks[fields.one_of("stack", options, default, "Attention of")]


def _choose_look(fields: Fields, capture: Capture, row: DeltaGenerator) -> tuple[Look, Stack]:
    """Which map: layer and head stand in the row with the model, what is rarer below the text."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        stack = _choose_stack(fields, capture)
        with row:
            layer = _choose_layer(fields, stack)
            head = _choose_head(fields, stack, layer)
        with st.popover("Mask, scale, weighing", icon=":material/tune:"):
            look = _choose_more(fields, stack, layer, head)
    wanted = fields.default("layer", layer)
    if fields.linked and wanted != layer and wanted not in stack.layer_numbers:
        st.caption(f"There is no layer {wanted} here; the nearest is {layer}.")
    if look.way != "weights":
        meaning, source = ABOUT[look.way]
        st.caption(f"{plain(meaning)} Source: {plain(source)}.")
    return look, stack


def _choose_layer(fields: Fields, stack: Stack) -> int:
    numbers = list(stack.layer_numbers)
    wanted = int(fields.default("layer", numbers[0]))
    default = min(numbers, key=lambda number: abs(number - wanted))
    layer = fields.one_of(
        "layer", {number: str(number) for number in numbers}, default, "Layer", width=84
    )
    return layer


def _choose_head(fields: Fields, stack: Stack, layer: int) -> int:
    numbers = list(range(stack.layer(layer).n_heads))
    default = min(HEADS[fields.side], numbers[-1])
    if fields.side == "right" and HEADS["right"] > numbers[-1]:
        # Few heads: another than the left's own default.
        default = next((n for n in reversed(numbers) if n != min(HEADS["left"], numbers[-1])), 0)
    return fields.one_of("head", {n: str(n) for n in numbers}, default, "Head", width=84)


def _choose_more(fields: Fields, stack: Stack, layer: int, head: int) -> Look:
    """Mask, scale and way to weigh."""
    mask = _named(fields, "mask", MASKS, "Mask")
    window: int = 4
    if mask == "window":
        window = _number(
            fields, "window", 4, "Keys in the window, its own included", 1, MOST_TOKENS
        )
    scale = _named(fields, "scale", SCALES, "Scale, the factor on q·k")
    factor: int | float = 1.0
    if scale == "times":
        factor = _number(fields, "factor", 2.0, "Factor", 0.01, 100.0)
    way = _named(fields, "way", WEIGHED, "Way to weigh")
    heads: tuple[tuple[int, int], ...] = ()
    if way == AVERAGE:
        heads = _choose_heads(fields, stack)
    elif way == ROLLOUT:
        st.caption("Rollout takes all heads of all layers up to the chosen one.")
    return Look(layer, head, mask, window, scale, factor, way, heads)


def _named(fields: Fields, field: str, options: Mapping[str, str], label: str) -> str:
    first = next(iter(options))
    titles = {name: title[0].upper() + title[1:] for name, title in options.items()}
    return str(fields.one_of(field, titles, str(fields.default(field, first)), label))


def _number(fields: Fields, field: str, otherwise: Any, label: str, low: Any, high: Any) -> Any:
    default = fields.default(field, otherwise)
    parse = address.between(f"{fields.side} {field}", low, high, default)
    name = fields.start(field, default, parse)
    st.number_input(label, min_value=low, max_value=high, step=type(otherwise)(1), key=name)
    address.finish(name, default)
    return st.session_state[name]


def _choose_heads(fields: Fields, stack: Stack) -> tuple[tuple[int, int], ...]:
    default = fields.default("heads", "")
    name = fields.start("heads", default, str)
    text = st.text_input(
        "Heads to average", key=name, placeholder="L0H2, L3H5 (all of the layer if empty)"
    )
    address.finish(name, default)
    try:
        return named_heads(text, stack)
    except ValueError as error:
        raise CannotLookError(str(error)) from error


def choose_from(side: SideName, layer: int, head: int) -> None:
    """Makes a head the left or the right one; a callback."""
    put(side, "layer", layer)
    put(side, "head", head)
    if value_of(side, "way") in (ROLLOUT, AVERAGE):
        put(side, "way", "weights")
