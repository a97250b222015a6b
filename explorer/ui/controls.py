"""The choices that pages share: model, text, layer and head, each with its place in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import streamlit as st
import torch

from explorer.capture import Capture, Stack
from explorer.models import (
    CATALOGUE,
    LoadedModel,
    ModelError,
    TextError,
    TooLongError,
    hub_allowed,
    pick_device,
)
from explorer.ui import address, cached
from explorer.ui.typing_count import typing_count
from explorer.ui.words import plain

Name = TypeVar("Name", bound=str)

SHORT = 600
"""Characters that Home reads of a text: it draws all heads at once."""
DEFAULT_TEXT = "The animal didn't cross the street because it was too tired."


class Chosen(NamedTuple):
    """A model and a text that ran through it."""

    loaded: LoadedModel
    capture: Capture
    key: tuple[object, ...]
    """Everything the capture depends on: it names the capture in caches."""


def choose_capture(
    first: str | None = None, default_text: str = DEFAULT_TEXT, pairs: bool = True
) -> Chosen:
    """Model, text and options; runs the model. Ends the page with a sentence where it can't.

    `first` is the model shown by default, of the bundled ones; without `pairs` the text has no
    second one beside it, but for what an encoder–decoder writes.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = choose_model(first)
        device, dtype, as_text = choose_options()
    try:
        loaded = cached.model(name, device, dtype)
    except ModelError as error:
        _stop(error)
    if loaded.reader is None:
        _stop(ModelError(f"{loaded.title} comes without a tokenizer, so it reads no text here."))
    text, pair = _choose_text(loaded, default_text, pairs)
    truncate = False
    key = (name, device, dtype, text, pair, as_text)
    while True:
        try:
            return Chosen(loaded, cached.captured(*key, truncate), (*key, truncate))
        except TooLongError as error:
            st.warning(plain(str(error)), icon=":material/content_cut:")
            if not choose_yes("cut", "Cut the text to fit"):
                address.stop()
            truncate = True
        except (TextError, ModelError) as error:
            _stop(error)


def _stop(error: ValueError) -> None:
    st.error(plain(str(error)), icon=":material/info:")
    address.stop()


def choose_model(first: str | None = None) -> str:
    """A model's name: of the list, or a hub id. Ends the page where it is neither."""
    options = [*CATALOGUE, *cached.local_models()]
    options.sort(key=lambda option: option != first)
    parse = address.one_of(
        "model",
        cached.is_allowed,
        "Showing the bundled model. A model is a name from the list or a hub id such as "
        "“openai-community/gpt2”.",
    )
    address.start("model", options[0], parse)
    if st.session_state["model"] not in options:
        options.append(st.session_state["model"])
    name = st.selectbox(
        "Model",
        options,
        key="model",
        format_func=lambda option: CATALOGUE[option].title if option in CATALOGUE else option,
        accept_new_options=True,
        help="Choose one, or type the id of a model on the Hugging Face hub. A hub model is "
        "fetched once, needs the internet, and must come as safetensors."
        if hub_allowed()
        else "Choose one. Models of the hub are switched off here.",
        width=320,
    )
    address.finish("model", options[0])
    if not cached.is_allowed(name):
        _stop(ModelError(f"“{name}” is no model id. Choose one, or type an id as owner/name."))
    return name


def choose_options() -> tuple[str, str, bool]:
    """Device, number format, and whether typed special tokens are plain text."""
    devices = ["auto", "cpu"]
    devices += ["cuda"] if torch.cuda.is_available() else []
    devices += ["mps"] if torch.backends.mps.is_available() else []
    with st.popover("Options", icon=":material/tune:"):
        device = choose_one(
            "device",
            {name: f"auto ({pick_device().type})" if name == "auto" else name for name in devices},
            help="Where the model runs. By itself: a GPU where there is one.",
        )
        dtype = choose_one(
            "dtype",
            {name: name for name in ("auto", "float32", "bfloat16", "float16")},
            label="Number format",
            help="By itself: float32 on a CPU, bfloat16 on a GPU that has it.",
        )
        as_specials = choose_yes(
            "specials",
            "Read typed special tokens as such",
            help="Off: a typed [SEP] or </s> is plain text, as any other. On: it becomes the "
            "model's special token.",
        )
    return device, dtype, not as_specials


def _choose_text(loaded: LoadedModel, default_text: str, pairs: bool) -> tuple[str, str | None]:
    second = (loaded.takes_pairs and pairs) or loaded.is_encoder_decoder
    columns = st.columns([3, 2]) if second else [st.container()]
    with columns[0]:
        address.start("text", default_text, str)
        text = st.text_area("Text", key="text", height=96)
        address.finish("text", default_text)
    pair = None
    if second:
        label = "Text it writes" if loaded.is_encoder_decoder else "Second text (optional)"
        with columns[1]:
            address.start("pair", "", str)
            pair = st.text_area(label, key="pair", height=96) or None
            address.finish("pair", "")
    with columns[0]:
        typing_count("text", loaded, text, None if loaded.is_encoder_decoder else pair)
    if max(len(text), len(pair or "")) > address.LONGEST:
        st.caption("The text is too long to stand in the page's address; a link won't hold it.")
    return text, pair


def short_text() -> str:
    """One line of text, shared with the other pages; an example where it is empty."""
    address.start("text", DEFAULT_TEXT, str)
    # Without max_chars: a field with a limit takes nothing of a longer text that is pasted.
    text = st.text_input("Your sentence", key="text")
    address.finish("text", DEFAULT_TEXT)
    if not text.strip():
        st.caption(f"Nothing is typed yet. What you see is an example: “{DEFAULT_TEXT}”")
        return DEFAULT_TEXT
    if len(text) > SHORT:
        st.caption(
            f"The picture is of the first {SHORT} of your {len(text):,} characters. "
            "The page Heads reads them all, and Long texts a whole document."
        )
    return text[:SHORT]


def choose_stack(capture: Capture) -> Stack:
    """One of the capture's stacks; no control where there is only one."""
    titles = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Decoder to encoder (cross)"}
    options = {name: titles.get(name, name.capitalize()) for name in capture.stacks}
    return capture.stacks[choose_one("stack", options, label="Attention of", buttons=True)]


def choose_one(
    name: str,
    options: Mapping[Name, str],
    *,
    label: str | None = None,
    help: str | None = None,
    buttons: bool = False,
) -> Name:
    """One of some named options, the first by default; no control of buttons for one alone."""
    first = next(iter(options))
    parse = address.one_of(name, lambda given: given in options, f"Showing “{options[first]}”.")
    address.start(name, str(first), parse)
    if st.session_state[name] not in options:
        # It was chosen for another model; or it is None, as a click cut the run short that set it.
        kept = st.session_state.get(f"{name} kept")
        st.session_state[name] = kept if kept in options else first
    arguments = (label or name.capitalize(), list(options))
    if not buttons:
        st.selectbox(*arguments, key=name, format_func=options.__getitem__, help=help)
    elif len(options) > 1:
        st.segmented_control(
            *arguments,
            key=name,
            format_func=options.__getitem__,
            help=help,
            required=True,
            wrap=True,
        )
    address.finish(name, first)
    return next(option for option in options if option == st.session_state[name])


def choose_yes(name: str, label: str, help: str | None = None) -> bool:
    """A switch, off by default."""
    address.start(name, False, address.yes(name))
    chosen = st.toggle(label, key=name, help=help)
    address.finish(name, False)
    return chosen


def choose_head(stack: Stack) -> tuple[int, int]:
    """A layer and one of its heads, by number."""
    layer = choose_number("layer", list(stack.layer_numbers))
    head = choose_number("head", list(range(stack.layer(layer).n_heads)))
    return layer, head


def visible(stack: Stack, hide_special: bool) -> tuple[list[int], list[int]]:
    """Positions of the queries and keys to show; all where nothing else would be left."""
    rows = [n for n, special in enumerate(stack.query_tokens.special) if not special]
    keys = [n for n, special in enumerate(stack.key_tokens.special) if not special]
    every = list(range(len(stack.query_tokens))), list(range(len(stack.key_tokens)))
    return (rows or every[0], keys or every[1]) if hide_special else every


def choose_number(name: str, options: Sequence[int]) -> int:
    """A number among some; plain text where there is one only.

    A choice that is no longer there, as layer 11 after a change to a model of 6, moves to the
    nearest that is, and the reader is told.
    """
    options = list(options)
    address.start(name, options[0], address.number_of(name, options))
    wanted = st.session_state[name]
    if wanted not in options:
        nearest = min(options, key=lambda option: abs(option - wanted))
        st.session_state[name] = nearest
        address.notice(f"There is no {name} {wanted} here. Showing {name} {nearest}.")
    if len(options) == 1:
        st.markdown(f"{name.capitalize()}  \n**{options[0]}** (the only one)")
    else:
        st.selectbox(name.capitalize(), options, key=name, width=120)
    address.finish(name, options[0])
    return int(st.session_state[name])


def choose_query(rows: Sequence[int], names: Mapping[int, str]) -> int:
    """One of the queries shown, by its position; the second where nothing is chosen."""
    return choose_place(
        "query",
        "Query",
        rows,
        lambda position: f"{position}  {names[position]}",
        rows[min(1, len(rows) - 1)],
        help="A click on a row of the map chooses it too.",
        width=240,
    )


def choose_token(label: str, key: str, texts: Sequence[str], width: int = 150) -> int:
    """A token's position, which stands in no address; the last where there are fewer now."""
    # Set each time: the browser keeps the chosen token's words, which another text changes.
    st.session_state[key] = min(int(st.session_state.get(key) or 0), len(texts) - 1)
    options = range(len(texts))
    place = st.selectbox(
        label, options, key=key, format_func=lambda at: f"{at}  {texts[at]}", width=width
    )
    return int(place)


def choose_place(
    name: str,
    label: str,
    options: Sequence[int],
    named: Callable[[int], str],
    default: int,
    *,
    parse: Callable[[str], int] | None = None,
    anew: bool = False,
    help: str | None = None,
    width: int = 200,
) -> int:
    """A number among some that have words of their own, as a token's position.

    The default where the number is none of them any more, or with `anew`.
    """
    options = list(options)
    address.start(name, default, parse or address.number_of(name, options, default))
    wanted = st.session_state[name]
    # Set each time: the browser keeps the chosen option's words, which another text changes.
    st.session_state[name] = default if anew or wanted not in options else wanted
    st.selectbox(label, options, key=name, format_func=named, help=help, width=width)
    address.finish(name, default)
    return int(st.session_state[name])
