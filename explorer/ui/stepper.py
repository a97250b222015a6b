"""A stepper over the stations of attention: back, next, play; and the formula beside it."""

from __future__ import annotations

import time

import streamlit as st

from explorer.figures.colors import ink
from explorer.formula import STATIONS, formula
from explorer.ui import address, frame

SECONDS = 5.0  # that a station stays while it plays: long enough to read its picture
NAMES = [station.name for station in STATIONS]
TITLES = {each.name: f"{at} {each.title}" for at, each in enumerate(STATIONS, 1)}
PLAYING, SINCE, GOES_TO = "steps play", "step shown since", "step goes to"  # in session_state


def choose_station(times: str) -> str:
    """The station that is shown, by its name, and the formula with its part marked."""
    state = st.session_state
    what = f"Showing “{STATIONS[0].title}”."
    address.start("station", NAMES[0], address.one_of("station", NAMES.__contains__, what))
    if GOES_TO in state:  # the timer's step: a widget's value can be set only before it is drawn
        state["station"] = state.pop(GOES_TO)
    at = NAMES.index(state["station"])
    playing = bool(state.get(PLAYING))
    state[SINCE] = time.monotonic()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Back", icon=":material/arrow_back:", on_click=_step, args=(-1,), disabled=at == 0
        )
        last = at == len(NAMES) - 1
        st.button(
            "Next",
            icon=":material/arrow_forward:",
            icon_position="right",
            on_click=_step,
            args=(1,),
            disabled=last,
        )
        st.button(
            "Stop" if playing else "Play",
            key="play",
            icon=":material/stop:" if playing else ":material/play_arrow:",
            on_click=_stop if playing else _play,
            help=None if playing else f"Goes on by itself every {SECONDS:.0f} seconds.",
        )
        st.segmented_control(
            "Station",
            NAMES,
            key="station",
            format_func=TITLES.__getitem__,
            required=True,
            label_visibility="collapsed",
            on_change=_stop,
            wrap=True,
        )
    address.finish("station", NAMES[0])
    st.latex(formula(state["station"], ink(frame.theme()).accent, float(times)))
    if playing:
        st.fragment(_go_on, run_every=SECONDS)()
    return str(state["station"])


def _step(by: int) -> None:
    """One station on or back; whoever steps by hand has stopped the play."""
    _stop()
    at = NAMES.index(st.session_state["station"]) + by
    st.session_state["station"] = NAMES[min(max(at, 0), len(NAMES) - 1)]


def _stop() -> None:
    st.session_state[PLAYING] = False


def _play() -> None:
    """Plays from here; from the start where this is the end."""
    st.session_state[PLAYING] = True
    if st.session_state["station"] == NAMES[-1]:
        st.session_state["station"] = NAMES[0]


def _go_on() -> None:
    """Run by the timer, apart from the page: the next station, and the end of play at the last."""
    state = st.session_state
    if not state.get(PLAYING) or time.monotonic() - state[SINCE] < SECONDS / 2:
        return  # the page itself runs this too, as it is drawn
    at = NAMES.index(state["station"]) + 1
    state[GOES_TO] = NAMES[min(at, len(NAMES) - 1)]
    state[PLAYING] = at < len(NAMES) - 1
    st.rerun()
