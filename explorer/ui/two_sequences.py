"""The views of the page Two sequences: queries from one text, keys and values from another."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

from explorer.attention import Attention
from explorer.capture import Stack
from explorer.checks import invariants
from explorer.models import LoadedModel, ModelError
from explorer.multihead import MultiHeadAttention
from explorer.ui import address, cached, controls, lesson
from explorer.ui.quiz import Choice, Question
from explorer.ui.words import plain, tiny

ASKING = "a cat slept on the mat"
ANSWERING = "the big grey cat sat on the mat all day"
D_MODEL = 32
MOST_TOKENS = 48
SOURCES = {"own": "Our own", "model": "A real encoder–decoder"}
NAMES = ("text", "other")


def choose() -> Stack:
    """Two texts and where their vectors come from. Ends the page where they can't be had."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        asking = lesson.text_line("text", "Queries from", ASKING)
        answering = lesson.text_line("other", "Keys and values from", ANSWERING)
        st.button("Swap", icon=":material/swap_horiz:", on_click=_swap)
    with lesson.readable(), st.container(horizontal=True, gap="medium"):
        if controls.choose_one("heads_of", SOURCES, label="Heads", buttons=True) == "model":
            return _from_model(asking, answering)
        source = lesson.choose_source()._replace(d_model=D_MODEL)
        n_heads = lesson.pick("pair_heads", "Number of heads", (1, 2, 4, 8), 2)
        seed = lesson.pick("pair_seed", "Seed", range(100))
        return _from_own(source, asking, answering, n_heads, seed, _tied())


def _swap() -> None:
    first, second = (st.session_state[name] for name in NAMES)
    st.session_state["text"], st.session_state["other"] = second, first


def _tied() -> bool:
    address.start("apart", False, address.yes("apart"))
    with st.container(width="content", height="stretch", vertical_alignment="bottom"):
        apart = st.toggle(
            "W_K of its own",
            key="apart",
            help="Off: queries and keys use the same projection, so that equal words find each "
            "other. On: two random projections, as in a layer before training, where nothing "
            "matches yet.",
        )
    address.finish("apart", False)
    return not apart


def _from_own(
    source: lesson.Source, asking: str, answering: str, n_heads: int, seed: int, tied: bool
) -> Stack:
    # Without positions, so that equal words are equal vectors wherever they stand.
    query_tokens, x, _ = lesson.vectors_of(asking, source, MOST_TOKENS, positions=False)
    key_tokens, context, _ = lesson.vectors_of(answering, source, MOST_TOKENS, positions=False)
    layer = MultiHeadAttention(x.shape[1], n_heads, seed=seed)
    if tied:
        with torch.no_grad():
            layer.W_K.weight.copy_(layer.W_Q.weight)
    attention = layer.attention(x, context)
    return Stack("cross", query_tokens, key_tokens, (attention,), (0,), 1)


def _from_model(asking: str, answering: str) -> Stack:
    """The cross-attention of an encoder–decoder: it reads one text and writes the other."""
    loaded = _choose_model()
    capture = cached.captured(loaded.name, "auto", "auto", answering, asking, True, False)
    if "cross" not in capture.stacks:
        raise ModelError(f"{loaded.title} has no attention between two texts.")
    stack = capture.stacks["cross"]
    numbers = stack.layer_numbers
    layer = lesson.pick("cross_layer", "Layer", tuple(numbers), numbers[0])
    one = (stack.layer(layer),)
    return Stack("cross", stack.query_tokens, stack.key_tokens, one, (0,), 1)


def _choose_model() -> LoadedModel:
    """An encoder–decoder by name. None is bundled, so its name must be given."""
    parse = address.one_of("translator", lambda name: not name or cached.is_allowed(name), "")
    address.start("translator", "", parse)
    options = ["", *cached.local_models()]
    if st.session_state["translator"] not in options:
        options.append(st.session_state["translator"])
    name = st.selectbox(
        "Encoder–decoder",
        options,
        key="translator",
        accept_new_options=True,
        format_func=lambda option: option or "Type a hub id, such as google-t5/t5-small",
    )
    address.finish("translator", "")
    if not name:
        raise ModelError(
            "No encoder–decoder comes with this app. Type the id of one on the Hugging Face hub, "
            "such as google-t5/t5-small; it is fetched once and needs the internet."
        )
    if not cached.is_allowed(name):
        raise ModelError(f"“{name}” is no model id. Type one as owner/name.")
    loaded = cached.model(name)
    if not loaded.is_encoder_decoder:
        raise ModelError(
            f"{loaded.title} reads one text only. An encoder–decoder reads a text and writes "
            "another, such as google-t5/t5-small."
        )
    return loaded


def shapes(stack: Stack) -> None:
    """The shapes of each step, with the two lengths told apart."""
    record = stack.layers[0]
    n_q, n_k = record.query_length, record.key_length
    st.markdown(
        f"**{n_q} queries** ask, **{n_k} keys** answer. The map is {n_q} × {n_k}: a row for each "
        "token of the first text, a column for each of the second."
    )
    if not isinstance(record, Attention):
        return
    st.dataframe(
        pd.DataFrame(_steps(record), columns=["step", "shape", "reads as"]), hide_index=True
    )


def _steps(record: Attention) -> list[tuple[str, str, str]]:
    h, n_q, n_k = record.n_heads, record.query_length, record.key_length
    d_k, d_v = record.d_k, record.d_v
    kv = record.n_kv_heads
    return [
        ("Q", f"({h}, {n_q}, {d_k})", "heads, queries, d_k — from the first text"),
        ("K", f"({kv}, {n_k}, {d_k})", "heads, keys, d_k — from the second text"),
        ("V", f"({kv}, {n_k}, {d_v})", "heads, keys, d_v — from the second text"),
        ("QKᵀ, scaled", f"({h}, {n_q}, {n_k})", "a score for every query and key"),
        ("softmax", f"({h}, {n_q}, {n_k})", f"each row of {n_k} weights sums to 1"),
        ("weights · V", f"({h}, {n_q}, {d_v})", "one mixture of values for each query"),
        ("joined", f"({n_q}, {h * d_v})", "as many rows as the first text has tokens"),
    ]


def sums(stack: Stack, head: int) -> None:
    """Rows sum to 1, columns do not: what each key receives in all."""
    weights = stack.layers[0].weights([head])[0].float()  # (n_q, n_k)
    received = weights.sum(0)
    most, least = int(received.argmax()), int(received.argmin())
    names = stack.key_tokens.texts
    found = invariants(stack)
    st.markdown(
        f"Every row sums to 1; a column may sum to anything. **{plain(names[most])}** receives "
        f"{float(received[most]):.2f} from all queries together, **{plain(names[least])}** "
        f"{float(received[least]):.2f}."
    )
    st.caption(f"**Checked:** rows sum to 1 within {tiny(found.row_sum_deviation)}.")


QUESTIONS = (
    Question(
        "6 queries look at 9 keys. How many weights does a head make?",
        (
            Choice("36", "That would be 6 queries on 6 keys. Here the keys are another text's."),
            Choice("54", "Right: each of 6 queries has a weight for each of 9 keys.", True),
            Choice("81", "That would be 9 queries on 9 keys; only 6 tokens ask."),
        ),
    ),
    Question(
        "How many rows has the output?",
        (
            Choice(
                "6, one for each query", "Right. Each query receives one mixture of values.", True
            ),
            Choice(
                "9, one for each key",
                "Keys and values are what is mixed. The result belongs to the query that asked.",
            ),
            Choice(
                "15, one for each token",
                "The second text only answers; its tokens get no new vectors here.",
            ),
        ),
    ),
    Question(
        "Why is there no causal mask here?",
        (
            Choice(
                "It would be too slow",
                "A mask costs next to nothing. It would be wrong: the "
                "whole second text is known before the first is written.",
            ),
            Choice(
                "The whole second text is already known",
                "Right. A translator may read all of "
                "the source while it writes; only its own later words are hidden.",
                True,
            ),
            Choice(
                "Cross-attention has no softmax", "It has: each row is a softmax over the keys."
            ),
        ),
    ),
)
