"""Where a reader of the page What if puts a change together: what, how, and in which heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from explorer.capture import Capture, Stack
from explorer.changes import RULES, Change, What
from explorer.changes_applied import STACKS
from explorer.tokens import Tokens
from explorer.ui import change_paint, changes, controls
from explorer.ui.words import short

TITLES: dict[What, str] = {
    "off": "Switch heads off",
    "mean": "Replace heads by their mean",
    "uniform": "Equal weights",
    "times": "Scale × a factor",
    "rule": "Scale by another rule",
    "causal": "Causal mask on or off",
    "window": "Sliding window",
    "nofirst": "No attention to the first token",
    "nospecial": "No attention to special tokens",
    "nokeys": "No attention to chosen tokens",
    "paint": "Paint a mask",
    "set": "Set one weight",
    "novalue": "Zero the values of tokens",
    "patch": "Take over from the second text",
}
ABOUT: dict[What, str] = {
    "off": "The head's output is zero.",
    "mean": "Every query gets the head's mean output over this text: what does not differ stays.",
    "uniform": "A query weighs all keys that it may use alike.",
    "times": "Above 1 softmax gets harder, below 1 softer; at 0 all weights are equal.",
    "rule": "The whole factor on q·k, instead of the model's own.",
    "causal": "On: no query uses a key after it. Off: every query may use every key.",
    "window": "A query uses itself and the keys just before it, nothing else.",
    "nofirst": "Heads often rest on it when they have nothing to do.",
    "nospecial": "Such as [CLS] and [SEP], or a start token.",
    "nokeys": "No query may use these; their weight goes to the others.",
    "paint": "Click cells to allow or forbid them. It replaces the model's own mask.",
    "set": "One query's weight on one key, whatever the scores are.",
    "novalue": "The weights stay, but these keys bring nothing.",
    "patch": "The heads put out what they put out on the second text, of equal length in tokens.",
}
WHAT = "draft_what"
WHOLE = "All"


def build(capture: Capture, stack: Stack) -> None:
    """The controls of one change and the button that adds it."""
    layer, head = (st.session_state.get(name, first) for name, first in _first(stack).items())
    many = len(capture.stacks) > 1
    columns = st.columns([5, 4, 4, 4] if many else [5, 4, 4], gap="small")
    what: What = columns[0].selectbox(
        "Change", list(TITLES), key=WHAT, format_func=lambda each: TITLES[each]
    )
    if many:
        with columns[1]:
            stack = _choose_stack(capture, stack)
    with columns[-2]:
        layers = _some("Layers", "draft_layers", list(stack.layer_numbers), layer)
    with columns[-1]:
        heads = _some("Heads", "draft_heads", list(range(stack.n_heads)), head)
    st.caption(ABOUT[what])
    place = list(capture.stacks).index(stack.name)
    ready = True
    number, how = 1.0, ""
    keys: tuple[int, ...] = ()
    if what == "paint":
        how = change_paint.paint(stack, layers)
        ready = bool(how)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if what == "times":
            number = round(_number("Factor", "draft_factor", 0.5, 100.0), 4)
        elif what == "rule":
            how = _pick("Rule", "draft_rule", tuple(RULES), RULES.__getitem__)
        elif what == "causal":
            how = _pick("Causal mask", "draft_causal", ("off", "on"), str.capitalize)
        elif what == "window":
            keys = (int(_number("Keys in the window", "draft_window", 2, 512)),)
        elif what in ("nokeys", "novalue"):
            keys = _tokens("Tokens", stack.key_tokens)
            ready = bool(keys)
        elif what == "set":
            query = _token("Query", "draft_query", stack.query_tokens)
            key = _token("Key", "draft_key", stack.key_tokens)
            number = round(_number("Weight", "draft_weight", 1.0, 1.0), 4)
            share = st.toggle("The others share the rest", value=True, key="draft_share")
            keys, how = (query, key), "" if share else "raw"
        change = Change(what, layers, heads, place, number, how, keys)
        st.button(
            "Add this change",
            key="add_change",
            icon=":material/add:",
            disabled=not ready,
            help=None if ready else "Choose at least one token, or paint a cell, first.",
            on_click=changes.add,
            args=(change,),
        )


def _first(stack: Stack) -> dict[str, int]:
    return {"layer": stack.layer_numbers[0], "head": 0}


def _choose_stack(capture: Capture, stack: Stack) -> Stack:
    names = list(capture.stacks)
    if st.session_state.get("draft_stack") not in names:
        st.session_state["draft_stack"] = stack.name
    name = st.selectbox(
        "In", names, key="draft_stack", format_func=lambda each: STACKS.get(each, each)
    )
    return capture.stacks[name]


def _some(label: str, key: str, options: list[int], first: int) -> tuple[int, ...] | None:
    """Some numbers; None for all. The first time it is the one that the page shows."""
    chosen = st.session_state.get(key, [first])
    st.session_state[key] = [each for each in chosen if each in options]
    found = st.multiselect(label, options, key=key, placeholder=WHOLE)
    return tuple(sorted(found)) or None


def _number(label: str, key: str, first: int | float, most: int | float) -> float:
    low = type(first)(1 if isinstance(first, int) else 0)
    st.session_state.setdefault(key, first)
    found = st.number_input(label, min_value=low, max_value=type(first)(most), key=key, width=170)
    return float(found)


def _pick(label: str, key: str, options: Sequence[str], shown: Callable[[str], str]) -> str:
    found = st.segmented_control(
        label, options, key=key, default=options[0], format_func=shown, required=True
    )
    return str(found or options[0])


def _token(label: str, key: str, tokens: Tokens) -> int:
    return controls.choose_token(label, key, [short(text) for text in tokens.texts], 170)


def _tokens(label: str, tokens: Tokens) -> tuple[int, ...]:
    key = "draft_keys"
    chosen = st.session_state.get(key, [])
    st.session_state[key] = [each for each in chosen if each < len(tokens)]
    found = st.multiselect(
        label, list(range(len(tokens))), key=key, format_func=_named(tokens), width=320
    )
    return tuple(sorted(found))


def _named(tokens: Tokens) -> Callable[[int], str]:
    return lambda at: f"{at}  {short(tokens.texts[at])}"
