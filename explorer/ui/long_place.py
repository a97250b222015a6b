"""Where on the map of a long text the reader is: the trail of windows, and a chosen word pair.

Both stand in the address, so that a link opens the same part and Back goes one step back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from explorer.ui import address

MOST_STEPS = 16
"""Steps of a trail; past this the second is forgotten, so that the address stays short."""
_WINDOW = re.compile(r"(\d{1,9})-(\d{1,9})\.(\d{1,9})-(\d{1,9})", re.ASCII)
_PAIR = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)

Span = tuple[int, int]


class Window(NamedTuple):
    """A part of the map: queries rows[0] to rows[1] - 1, keys keys[0] to keys[1] - 1."""

    rows: Span
    keys: Span

    @property
    def code(self) -> str:
        """The window as the address has it."""
        return f"{self.rows[0]}-{self.rows[1]}.{self.keys[0]}-{self.keys[1]}"

    @property
    def title(self) -> str:
        """The window as the reader reads it, the last token included; a square's side once."""
        if self.rows == self.keys:
            return spelt(self.rows)
        return f"{spelt(self.rows)} × {spelt(self.keys)}"


def spelt(span: Span) -> str:
    """A run of tokens, the last one included: "3,200–3,263", or "3,200"."""
    start, stop = span
    return f"{start:,}" if stop - start == 1 else f"{start:,}–{stop - 1:,}"


def choose(n_q: int, n_k: int) -> list[Window]:
    """The trail to where the reader is, the whole map first."""
    address.start("zoom", "", _trail_parser(n_q, n_k))
    address.start("cell", "", _pair_parser(n_q, n_k))
    found = _windows(st.session_state["zoom"])
    inside = [window for window in found if _fits(window, n_q, n_k)]
    if len(inside) < len(found):  # chosen for a longer text
        _set(inside)
    pair = _pair(st.session_state["cell"])
    if pair is not None and not (pair[0] < n_q and pair[1] < n_k):
        st.session_state["cell"] = ""
    address.finish("zoom", "")
    address.finish("cell", "")
    return [Window((0, n_q), (0, n_k)), *inside]


def pair() -> tuple[int, int] | None:
    """The chosen query and key; None where there is none."""
    return _pair(st.session_state["cell"])


def choose_pair(query: int, key: int) -> None:
    """Chooses a query and a key; for callbacks, as all that follow."""
    st.session_state["cell"] = f"{query}-{key}"


def enter(window: Window) -> None:
    """Zooms to a window, one step further on the trail."""
    trail = _windows(st.session_state.get("zoom", ""))
    if not trail or trail[-1] != window:
        _set([*trail, window])


def jump(window: Window) -> None:
    """Zooms to a window straight from the whole map."""
    _set([window])


def back_to(step: int) -> None:
    """Back to a step of the trail; 0 is the whole map."""
    _set(_windows(st.session_state["zoom"])[:step])


def forget() -> None:
    """Back to the whole map, nothing chosen: another text is shown."""
    for name in ("zoom", "cell", "hit"):
        if name in st.session_state or f"{name} kept" in st.session_state:
            st.session_state[name] = 0 if name == "hit" else ""


def around(position: int, length: int, n: int) -> Span:
    """`length` tokens about a position, moved where they would reach past an end of n."""
    length = min(length, n)
    start = min(max(position - length // 2, 0), n - length)
    return start, start + length


def breadcrumbs(trail: list[Window]) -> None:
    """The way here, each step a button."""
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        for step, window in enumerate(trail):
            title = window.title if step else "Whole text"
            if step:
                st.markdown("›", width="content")
            if step == len(trail) - 1:
                st.markdown(f"**{title}**", width="content")
            else:
                st.button(
                    title, key=f"crumb_{step}", type="tertiary", on_click=back_to, args=(step,)
                )


def _set(trail: list[Window]) -> None:
    kept = trail if len(trail) <= MOST_STEPS else [trail[0], *trail[1 - MOST_STEPS :]]
    st.session_state["zoom"] = "~".join(window.code for window in kept)


def _windows(code: str) -> list[Window]:
    found = (_WINDOW.fullmatch(part) for part in code.split("~"))
    numbers = (tuple(map(int, each.groups())) for each in found if each)
    return [Window((a, b), (c, d)) for a, b, c, d in numbers]


def _pair(code: str) -> tuple[int, int] | None:
    found = _PAIR.fullmatch(code)
    return None if found is None else (int(found[1]), int(found[2]))


def _fits(window: Window, n_q: int, n_k: int) -> bool:
    (r0, r1), (k0, k1) = window
    return r0 < r1 <= n_q and k0 < k1 <= n_k


def _trail_parser(n_q: int, n_k: int) -> Callable[[str], str]:
    def parse(given: str) -> str:
        parts = given.split("~")
        found = _windows(given)
        if len(found) < len(parts) or not all(_fits(window, n_q, n_k) for window in found):
            raise ValueError(
                f"The link asks for zoom “{given[:60]}”. A part is written as "
                f"first-end.first-end, queries then keys, up to {n_q:,} and {n_k:,} tokens. "
                "Showing the whole text."
            )
        return given

    return parse


def _pair_parser(n_q: int, n_k: int) -> Callable[[str], str]:
    def parse(given: str) -> str:
        found = _pair(given)
        if found is None or found[0] >= n_q or found[1] >= n_k:
            raise ValueError(
                f"The link asks for cell “{given[:60]}”. It is query-key, by their positions up to "
                f"{n_q - 1:,} and {n_k - 1:,}. Showing no pair."
            )
        return given

    return parse
