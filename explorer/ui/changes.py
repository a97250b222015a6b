"""The changes of the page What if: kept in the address, listed in words, removed one by one."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.capture import Capture
from explorer.changes import MOST, Change, decode_changes, encode_changes
from explorer.changes_applied import in_words
from explorer.ui import address
from explorer.ui.words import plain

CODE = "change"
NOTE = "change note"
EXAMPLES: tuple[tuple[str, Change], ...] = (
    ("Soften every head: scale × ½", Change("times", number=0.5)),
    ("No attention to the first token", Change("nofirst")),
    ("Switch off layer 0", Change("off", layers=(0,))),
)


def from_address() -> list[Change]:
    """The changes that the address names; none, and a word, where its code can't be read."""
    address.start(CODE, "", _parse)
    address.finish(CODE, "")
    return current()


def current() -> list[Change]:
    """The changes as they stand now."""
    return decode_changes(st.session_state.get(CODE, ""))


def _parse(given: str) -> str:
    try:
        return encode_changes(decode_changes(given))
    except ValueError as error:
        raise ValueError(
            f"The changes in the link can't be read. {error} The model runs unchanged."
        ) from error


def listed(changes: Sequence[Change], capture: Capture, refused: Sequence[str]) -> None:
    """Each change in words with a button that takes it back; examples where there is none."""
    note = st.session_state.pop(NOTE, None)
    if note is not None:
        st.info(plain(note), icon=":material/info:")
    if not changes:
        st.markdown("**Nothing is changed yet.** Add a change above, or try one of these:")
        with st.container(horizontal=True, gap="small"):
            for at, (label, change) in enumerate(EXAMPLES):
                st.button(label, key=f"example_{at}", on_click=add, args=(change,))
        return
    many = "One change" if len(changes) == 1 else f"{len(changes)} changes, applied in this order"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{many}**")
        st.button("Undo all", key="undo_all", icon=":material/undo:", on_click=clear)
    for at, change in enumerate(changes):
        words = in_words(change, capture.stacks)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(plain(words), width="stretch")
            st.button(
                "Remove",
                key=f"remove_{at}",
                icon=":material/close:",
                help=f"Takes back: {plain(words)}",
                on_click=remove,
                args=(at,),
            )
    for sentence in refused:
        st.warning(plain(sentence), icon=":material/block:")
    if len(st.session_state[CODE]) > address.LONGEST:
        st.caption("So many changes are too long for the page's address; a link won't hold them.")


def add(change: Change) -> None:
    """Puts a change at the end of the list; for callbacks, before the page runs."""
    changes = current()
    if len(changes) >= MOST:
        st.session_state[NOTE] = f"There are {MOST} changes, the most that can be kept at once."
    elif changes and changes[-1] == change:
        st.session_state[NOTE] = "That change is the last in the list already."
    else:
        _store([*changes, change])


def remove(at: int) -> None:
    """Takes one change back."""
    changes = current()
    _store([each for place, each in enumerate(changes) if place != at])


def clear() -> None:
    """Takes all changes back."""
    _store([])


def switch_button(stack: int, layer: int, head: int, key: str) -> None:
    """A button that switches one head off, or on again where it is off."""
    off = Change("off", (layer,), (head,), stack)
    name, there = f"L{layer}H{head}", off in current()
    st.button(
        f"Switch {name} on again" if there else f"Switch {name} off",
        key=key,
        icon=":material/toggle_on:" if there else ":material/toggle_off:",
        on_click=_switch,
        args=(off,),
    )


def _switch(off: Change) -> None:
    changes = current()
    if off in changes:
        _store([each for each in changes if each != off])
    else:
        add(off)


def _store(changes: Sequence[Change]) -> None:
    st.session_state[CODE] = encode_changes(changes)
