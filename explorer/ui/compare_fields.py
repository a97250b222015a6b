"""The controls of the page Compare: each is there twice, and the right one may follow the left.

A control named `layer` stands in the address as left_layer and right_layer. What the right side has
as the left is left out of the address.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

import streamlit as st

from explorer.ui import address
from explorer.ui.words import plain

Option = TypeVar("Option", str, int)
SideName = Literal["left", "right"]

FIELDS: Mapping[str, object] = {
    "model": None,
    "text": None,
    "pair": "",
    "stack": None,
    "layer": None,
    "head": None,
    "mask": "own",
    "window": 4,
    "scale": "own",
    "factor": 2.0,
    "way": "weights",
    "heads": "",
    "cut": False,
}
"""Everything that a side has of its own, with what stands for a control that is not there."""
OF_BOTH = ("link", "words", "at", "strip", "click_to")
VISIT = "compare visit written"
"""In session_state while the reader is here: `address.arrive` drops what ends like this."""
PENDING, DRAWN = "compare pending", "compare drawn"
"""In session_state: what a callback has set, and when the controls were drawn with it."""
REACHES_THE_BROWSER = 0.3
"""Seconds from then on in which an event may still come from a browser that has not heard of it."""
FROM_OTHER_PAGES = ("model", "text", "pair", "stack", "layer", "head")


class Fields(NamedTuple):
    """One side's controls: their names, and what the other side has where this one follows it."""

    side: SideName
    linked: bool

    def name(self, field: str) -> str:
        """The name in the address."""
        return f"{self.side}_{field}"

    def default(self, field: str, otherwise: Any) -> Any:
        """What stands where nothing was chosen: on the right, what the left has."""
        if self.side == "right" and field != "head":
            return value_of("left", field, otherwise)
        return otherwise

    def start(self, field: str, default: Any, parse: Callable[[str], Any]) -> str:
        """Gives the control its value; a right one that was as the left goes with it."""
        name, state = self.name(field), st.session_state
        if self.side == "right" and field != "head":
            followed = state.get(f"{name} followed", default)
            now = state.get(name, state.get(f"{name} kept", default))
            if self.linked and followed != default and now == followed:
                state[name] = default
            state[f"{name} followed"] = default
        address.start(name, default, parse)
        return name

    def one_of(
        self,
        field: str,
        options: Mapping[Option, str],
        default: Option,
        label: str,
        *,
        width: int | Literal["stretch"] = "stretch",
        help: str | None = None,
    ) -> Option:
        """One of some named options; one that is no longer there moves to the nearest, told."""
        known = {str(option): option for option in options}

        def parse(given: str) -> Option:
            if given not in known:
                raise ValueError(
                    f"The link asks for {self.side} {field} “{given[:60]}”. {_there(options)} "
                    f"Showing {options[default]}."
                )
            return known[given]

        name = self.start(field, default, parse)
        state = st.session_state
        if state[name] not in options:
            missing, state[name] = state[name], _nearest(state[name], options, default)
            st.warning(
                f"There is no {field} {plain(str(missing))} on the {self.side}. "
                f"Showing {plain(options[state[name]])}.",
                icon=":material/info:",
            )
        st.selectbox(
            label,
            list(options),
            key=name,
            format_func=lambda option: options[option],
            width=width,
            help=help,
        )
        address.finish(name, default)
        chosen: Option = state[name]
        return chosen


def value_of(side: SideName, field: str, otherwise: Any = None) -> Any:
    """What a side's control holds, whether it stands on the page now or not."""
    name, state = f"{side}_{field}", st.session_state
    on_its_way = _on_its_way()
    if name in on_its_way:
        return on_its_way[name]
    return state.get(name, state.get(f"{name} kept", otherwise))


def put(side: SideName, field: str, value: Any) -> None:
    """Sets a side's control from a callback; nothing follows it this time."""
    state = st.session_state
    state[PENDING] = {**_on_its_way(), f"{side}_{field}": value}
    state.pop(DRAWN, None)
    for each in FIELDS:
        state.pop(f"right_{each} followed", None)


def bring_in() -> None:
    """Gives the controls what callbacks have set; before the first of them.

    Until the browser surely has them: a click that cuts a run short comes with the old values of
    the controls that the browser had not heard of, and half a swap would be left.
    """
    state = st.session_state
    for name, value in _on_its_way().items():
        state[name] = state[f"{name} kept"] = value


def arrived() -> None:
    """Called when all controls have been drawn."""
    st.session_state.setdefault(DRAWN, time.monotonic())


def _on_its_way() -> dict[str, Any]:
    """What callbacks have set and the browser may not know yet."""
    state = st.session_state
    drawn = state.get(DRAWN)
    if drawn is not None and time.monotonic() - drawn > REACHES_THE_BROWSER:
        state.pop(PENDING, None)
    found: dict[str, Any] = state.get(PENDING, {})
    return found


def swap() -> None:
    """Exchanges all that the two sides hold; the callback of the button."""
    for field, otherwise in FIELDS.items():
        left, right = (value_of(side, field, otherwise) for side in ("left", "right"))
        if left is None and right is None:
            continue
        put("left", field, right)
        put("right", field, left)


def choose_link() -> bool:
    """The switch that lets the right side follow the left; on unless the address says no."""

    def parse(given: str) -> bool:
        if given != "no":
            raise ValueError(f"The link asks for link “{given[:60]}”. It can be “no” only.")
        return False

    address.start("link", True, parse)
    st.toggle(
        "Link both sides",
        key="link",
        help="What you change on the left changes on the right too, except what is different "
        "there already. The head is always each side's own.",
    )
    address.finish("link", True)
    return bool(st.session_state["link"])


def come_from_another_page() -> None:
    """Puts on the left what another page has shown since: its model, text and head.

    A link to two heads says all itself, but for a text that is too long to stand in it.
    """
    state = st.session_state
    by_link = VISIT not in state and any(
        name.startswith(("left_", "right_")) for name in st.query_params
    )
    state[VISIT] = True
    if by_link:
        names = [f"{side}_{field}" for side in ("left", "right") for field in FIELDS]
        for name in {*names, *OF_BOTH} - {"left_text", "left_pair"}:
            for each in (name, f"{name} kept", f"{name} followed"):
                state.pop(each, None)
    shown = {
        field: state[f"{field} kept"] for field in FROM_OTHER_PAGES if f"{field} kept" in state
    }
    if shown == state.get("compare came", {}):
        return
    state["compare came"] = shown
    for field, value in shown.items():
        if by_link and field not in ("text", "pair"):
            continue
        state[f"left_{field} kept"] = value
        state.pop(f"left_{field}", None)


def _nearest(wanted: Any, options: Mapping[Option, str], default: Option) -> Option:
    if not isinstance(wanted, int):
        return default
    return min(options, key=lambda option: abs(int(option) - wanted))


def _there(options: Mapping[Option, str]) -> str:
    names = list(options)
    if all(isinstance(name, int) for name in names):
        return (
            f"There is only {names[0]}."
            if len(names) == 1
            else (f"There are {names[0]} to {names[-1]}.")
        )
    return f"There are {', '.join(str(name) for name in names)}."
