"""The page Continue: its model and text, the changes that fit, and how tokens are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st

from explorer.capture import Capture, Stack
from explorer.changes import Change
from explorer.changes_applied import in_words, interventions
from explorer.continuing import MOST_TOKENS
from explorer.continuing_steps import Output
from explorer.interventions import Intervention
from explorer.models import CATALOGUE, LoadedModel
from explorer.outcomes import kind_of
from explorer.ui import address, cached, controls, frame
from explorer.ui.what_if import COPY_TEXT, SMALL_DECODER
from explorer.ui.words import plain

HOTTEST = 2.0
TOP_KS = (0, 1, 2, 3, 5, 10, 20, 50, 100)
"""0 for all tokens."""
LARGEST_SEED = 9999
OF_ONE_LENGTH = ("paint", "patch")
"""Changes made for one length of text, which grows here."""


class Setting(NamedTuple):
    """A model that writes, and the text before it."""

    loaded: LoadedModel
    capture: Capture
    key: tuple[object, ...]
    """What the capture depends on."""

    @property
    def before(self) -> tuple[int, ...]:
        """The ids that stand before the added ones: of an encoder–decoder, of its target."""
        return self.capture.stacks["decoder"].query_tokens.ids


def choose() -> Setting:
    """Model and text. Ends the page with what to choose instead where a model writes no text."""
    decoder = SMALL_DECODER in CATALOGUE
    loaded, capture, key = controls.choose_capture(
        SMALL_DECODER if decoder else None,
        COPY_TEXT if decoder else controls.DEFAULT_TEXT,
        pairs=False,
    )
    for note in capture.notes:
        st.info(plain(note))
    if any(stack.read_only for stack in capture.stacks.values()):
        _stop(
            f"{loaded.title} can be looked at but not run on here: it computes attention in its "
            "own code, which does not let ours in."
        )
    if kind_of(loaded, capture) != "next":
        _stop(
            f"{loaded.title} writes no text: it has no head that predicts the next token from "
            "what stands before it."
        )
    return Setting(loaded, capture, key)


def _stop(sentence: str) -> None:
    """The reason, the decoders there are, and where other models can be seen."""
    st.info(plain(sentence), icon=":material/edit_off:")
    others = [name for name in cached.local_models() if name != st.session_state["model"]]
    named = ", ".join(plain(name) for name in others[:6])
    words = "Choose a decoder above"
    words += f" (of your own models: {named})" if others else ""
    st.markdown(f"{words}, or type a hub id such as openai-community/gpt2.")
    if SMALL_DECODER in CATALOGUE:
        st.button(
            f"Take {CATALOGUE[SMALL_DECODER].title}, which writes",
            key="take_writer",
            icon=":material/edit:",
            on_click=_take,
        )
    st.markdown("What a change does to this model can be seen here:")
    _link_to("What if")
    address.stop()


def link_to_what_if() -> None:
    """The page that finds the heads to change, with the same text and changes."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("Which heads matter for the next token:", width="content")
        _link_to("What if")


def _link_to(name: str) -> None:
    frame.link(next(entry for entry in frame.MENU["Change"] if entry.name == name))


def _take() -> None:
    address.put(model=SMALL_DECODER, text=COPY_TEXT)


def stacks_that_write(setting: Setting) -> dict[str, Stack]:
    """The stacks that a new token is chosen by: the decoder's, and its cross-attention."""
    found = [(name, each) for name, each in setting.capture.stacks.items() if name != "encoder"]
    return dict(sorted(found, key=lambda pair: pair[0] != "decoder"))


def stack_now(setting: Setting) -> Stack:
    """The stack whose heads the page shows, as the address has it; the decoder's by default."""
    stacks = stacks_that_write(setting)
    name = str(st.session_state.get("stack", st.query_params.get("stack", "")))
    return stacks[name] if name in stacks else stacks["decoder"]


def choose_stack(setting: Setting) -> Stack:
    """One of the stacks that write; no control where there is only one."""
    titles = {"decoder": "Decoder", "cross": "Decoder to encoder (cross)"}
    stacks = stacks_that_write(setting)
    options = {name: titles.get(name, name.capitalize()) for name in stacks}
    return stacks[controls.choose_one("stack", options, label="Attention of", buttons=True)]


def fitting(setting: Setting, made: Sequence[Change]) -> tuple[tuple[Intervention, ...], list[str]]:
    """The changes that fit a growing text, and a sentence for each that does not."""
    capture = setting.capture
    kept = [each for each in made if each.what not in OF_ONE_LENGTH]
    applied, refused = interventions(kept, capture)
    for each in made:
        if each.what in OF_ONE_LENGTH:
            refused.append(
                f"{in_words(each, capture.stacks)}: left out. It is made for a text of one length, "
                "and here the text grows. See it in What if."
            )
    return applied, refused


def choose_output() -> Output:
    """Temperature, top-k and seed of the output, kept apart from attention's scale in words."""
    st.subheader("How the next token is drawn", anchor=False)
    st.markdown(
        "This acts on the **output**: the probabilities of the next token, when all attention is "
        "done. Attention's own scale works inside each head: *Scale × a factor* changes that."
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        address.start("temperature", 0.0, _temperature)
        temperature = st.slider(
            "Output temperature",
            0.0,
            HOTTEST,
            key="temperature",
            step=0.1,
            format="%.1f",
            help="0: always the likeliest token. 1: as likely as the model says. Above 1: the "
            "unlikely ones come more often.",
            width=170,
        )
        temperature = round(temperature, 1)
        address.finish("temperature", 0.0)
        top_k = _top_k(temperature == 0)
        seed = _seed(temperature == 0)
    if temperature == 0:
        st.caption("At temperature 0 nothing is left to chance: the likeliest token is taken.")
    else:
        some = f"the {top_k} likeliest tokens" if top_k else "all tokens"
        st.caption(
            f"Each token is drawn from {some} with seed {seed}. Both sides draw with the same "
            "seed, so without a difference between them they write the same."
        )
    return Output(temperature, top_k or None, seed)


def _temperature(given: str) -> float:
    try:
        value = float(given) if len(given) <= 6 else math.nan
    except ValueError:
        value = math.nan
    if not 0 <= value <= HOTTEST:
        raise ValueError(
            f"The link asks for temperature “{given[:60]}”. It is a number from 0 to "
            f"{HOTTEST:g}. Showing temperature 0."
        )
    return round(value, 1)


def _top_k(is_greedy: bool) -> int:
    options = list(TOP_KS)
    address.start("top_k", 0, address.number_of("top_k", options, 0))
    found = st.selectbox(
        "Output top-k",
        options,
        key="top_k",
        format_func=lambda k: f"the {k} likeliest" if k else "all tokens",
        disabled=is_greedy,
        help="Only the k likeliest tokens can be drawn.",
        width=150,
    )
    address.finish("top_k", 0)
    return int(found)


def _seed(is_greedy: bool) -> int:
    address.start("draw_seed", 0, _whole("seed", LARGEST_SEED, 0))
    found = st.number_input(
        "Seed",
        min_value=0,
        max_value=LARGEST_SEED,
        key="draw_seed",
        disabled=is_greedy,
        help="The same seed draws the same tokens.",
        width=110,
    )
    address.finish("draw_seed", 0)
    return int(found)


def choose_count() -> int:
    """How many tokens are added at most."""
    default = 20
    address.start("count", default, _whole("count", MOST_TOKENS, default, least=1))
    found = st.slider("Tokens to add", 1, MOST_TOKENS, key="count", width=230)
    address.finish("count", default)
    return int(found)


def _whole(name: str, most: int, default: int, least: int = 0) -> Callable[[str], int]:
    return address.number_of(name, list(range(least, most + 1)), default)
