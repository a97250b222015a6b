"""The page's address as its memory: what is chosen stands in it, so a link shows the same view.

A control named `layer` has its value in session_state["layer"] and in "?layer=…". `start` goes
before the control and `finish` after it. A choice also survives a walk to another page.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeVar

import streamlit as st

from explorer.ui.words import plain

Value = TypeVar("Value")
Number = TypeVar("Number", int, float)

LONGEST = 1500
"""Characters of one value in a link; browsers and mail cut addresses that are much longer."""

ON_ITS_WAY = 2.0
"""Seconds that the browser may still report an address from before one of our changes."""
MOST_OVERLAPPING = 64
"""So many values are remembered: as many as quick keys make within that time."""


SEND_AGAIN = "send again"
"""True in a run that may overtake the first one on its way to the browser: a control that had its
value from that run alone would stand there empty."""
JUST_OPENED, LAST_SEEN = "just opened", "last seen"  # in session_state
DRAWN = "drawn controls"
"""The names of the controls that the page has drawn since its run began."""
NOTHING = object()
NOTICES = "notices"
"""The place at the page's top where it says what it could not do as asked."""
SETTLES = 2.0
"""Seconds from the end of a page's first run in which an early click may overtake it."""


class Written(NamedTuple):
    """What was last put into the address, and what it replaced there, each with the time."""

    value: str | None
    before: tuple[tuple[str | None, float], ...] = ()

    def is_late(self, given: str | None) -> bool:
        """Whether the browser may report it from before our last changes, as quick ones overlap."""
        now = time.monotonic()
        return any(given == value and now - at < ON_ITS_WAY for value, at in self.before)


def arrive(page: str) -> None:
    """Called first on each page: what another page left is taken from what was kept alone.

    The address was another page's, and a control of the same name may be of another kind. What
    stood there by default, and nobody chose, gives way to this page's own default.
    """
    state, now = st.session_state, time.monotonic()
    state[DRAWN] = set()
    if state.get("page") == page:
        # A click as soon as the first control is there, and the next one right after it.
        state[JUST_OPENED] = state[JUST_OPENED] and now - state[LAST_SEEN] < SETTLES
        state[SEND_AGAIN] = state[JUST_OPENED]
        state[LAST_SEEN] = now
        return
    state["page"], state[JUST_OPENED], state[SEND_AGAIN] = page, True, False
    state[LAST_SEEN] = now
    for name in map(str, list(state)):
        if name.endswith(" written") or f"{name} kept" in state:
            del state[name]
    for key in map(str, list(state)):
        name = key.removesuffix(" kept")
        untouched = name != key and state[key] == state.get(f"{name} usual", NOTHING)
        if untouched and f"{name} chosen" not in state:
            del state[key]


def stop() -> NoReturn:
    """Ends the page's run here; every page ends early by this, never by st.stop().

    The browser forgets the controls that a run has not drawn. After st.stop() Streamlit keeps
    their values here alone: they would come back showing their first option, and send that with
    the next click. So they are forgotten here too, and `start` gives them what was kept.
    """
    state = st.session_state
    for name in map(str, list(state)):
        if f"{name} kept" in state and name not in state[DRAWN]:
            del state[name]
    st.stop()


def notices() -> None:
    """Makes the place for notices; called once on each page, below its title."""
    st.session_state[NOTICES] = st.container()


def notice(words: str, icon: str = ":material/info:") -> None:
    """Says something at the page's top, where no closed menu hides it."""
    with st.session_state[NOTICES]:
        st.warning(plain(words), icon=icon)


def start(name: str, default: Value, parse: Callable[[str], Value]) -> None:
    """Gives the control its value where the address has changed: by a link, or by going back.

    parse raises ValueError with a sentence where the link's value is no good; the default then
    stands in, and the reader is told. Without a link it is the last page's value, or the default.
    """
    state = st.session_state
    given = st.query_params.get(name)
    written: Written = state.get(f"{name} written", Written(None))
    # A run cut short may have read the link without having passed its value on.
    lost = given is not None and name not in state and f"{name} kept" not in state
    if lost or (given != written.value and not written.is_late(given)):
        state.pop(f"{name} refused", None)
        try:
            state[name] = default if given is None else parse(given)
        except ValueError as error:
            state[name] = default
            state[f"{name} refused"] = (str(error), default)
        state[f"{name} written"] = Written(given)
    elif name not in state:
        state[name] = state.get(f"{name} kept", default)
    elif state.get(SEND_AGAIN):
        state[name] = state[name]


def put(**choices: Any) -> None:
    """Sets some choices, by name; for callbacks, before the page runs."""
    for name, value in choices.items():
        st.session_state[name] = st.session_state[f"{name} kept"] = value
        st.session_state[f"{name} chosen"] = True


def finish(name: str, default: Any) -> None:
    """Puts the control's value into the address, and keeps it for other pages.

    The default is left out of the address: going back to it must not write it anew.
    """
    state = st.session_state
    value = state[name]
    if value is not None or default is None:  # a run cut short may leave None
        state[f"{name} kept"], state[f"{name} usual"] = value, default
    if value not in (default, None):
        state[f"{name} chosen"] = True
    state[LAST_SEEN] = time.monotonic()
    first, refused = name not in state[DRAWN], state.get(f"{name} refused")
    state[DRAWN].add(name)
    if refused is not None:
        if refused[1] != value:
            del state[f"{name} refused"]
        elif first:  # a fragment that runs again leaves the notice where it is
            notice(refused[0], ":material/link_off:")
    wanted: str | None = ("no", "yes")[value] if isinstance(value, bool) else str(value)
    if value is None or value == default or len(str(value)) > LONGEST:
        wanted = None
    there = st.query_params.get(name)
    if there == wanted:
        return
    if wanted is None:
        del st.query_params[name]
    else:
        st.query_params[name] = wanted
    last, now = state.get(f"{name} written", Written(None)), time.monotonic()
    # The browser may have come to neither yet: `there` is what it reported, perhaps a late one.
    before = (*last.before, (last.value, now), (there, now))[-MOST_OVERLAPPING:]
    state[f"{name} written"] = Written(wanted, before)


def one_of(name: str, allowed: Callable[[str], bool], what: str) -> Callable[[str], str]:
    """A parser that takes the values for which `allowed` is true; `what` says which those are."""

    def parse(given: str) -> str:
        if not allowed(given):
            raise ValueError(f"The link asks for {name} “{given[:60]}”. {what}")
        return given

    return parse


def yes(name: str) -> Callable[[str], bool]:
    """A parser for a switch, which stands in the address only where it is on."""

    def parse(given: str) -> bool:
        if given != "yes":
            raise ValueError(f"The link asks for {name} “{given[:60]}”. It can be “yes” only.")
        return True

    return parse


def between(name: str, low: Number, high: Number, default: Number) -> Callable[[str], Number]:
    """A parser for a number from low to high, whole where the default is."""
    kind: type[Number] = type(default)

    def parse(given: str) -> Number:
        try:
            value = kind(given)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:  # nan is not
            raise ValueError(
                f"The link asks for {name} “{given[:60]}”. It is a number from {low:g} to "
                f"{high:g}. Showing {default:g}."
            )
        return value

    return parse


def number_of(name: str, options: list[int], default: int | None = None) -> Callable[[str], int]:
    """A parser for a number among some options; the first is the default."""
    instead = options[0] if default is None else default
    listed = ", ".join(map(str, options))
    if options == list(range(options[0], options[-1] + 1)):
        listed = f"{options[0]} to {options[-1]}"
    there = f"There is only {options[0]}." if len(options) == 1 else f"There are {listed}."

    def parse(given: str) -> int:
        if not given.isascii() or not given.isdigit() or int(given[:9]) not in options:
            raise ValueError(
                f"The link asks for {name} “{given[:60]}”. {there} Showing {name} {instead}."
            )
        return int(given[:9])

    return parse
