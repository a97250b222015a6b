"""What is worked out once and kept for everybody: long texts by their hash, overviews, windows.

A slot is made by a bounded cache, empty and at once; what goes into it is worked out outside the
cache, where a progress bar may be drawn and a rerun may break it off.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import streamlit as st

Value = TypeVar("Value")

DIGITS = 12
"""Of a text's hash, in an address."""
WAITING = 0.2
"""Seconds between two looks at what another visitor's run is working out."""


class Slot(Generic[Value]):
    """A place for one value, worked out by one thread at a time."""

    def __init__(self) -> None:
        self.value: Value | None = None
        self._lock = threading.Lock()

    def filled(self, work: Callable[[], Value]) -> Value:
        """The value; worked out now where it is not there, or waited for."""
        place = st.empty()
        while not self._lock.acquire(timeout=WAITING):
            place.caption("This is being computed in another window …")  # a rerun ends the wait
        place.empty()
        try:
            if self.value is None:
                self.value = work()
            return self.value
        finally:
            self._lock.release()


@st.cache_resource(max_entries=12, show_spinner=False)
def text_slot(digest: str) -> Slot[tuple[str, str]]:
    """Where a visitor's text of this hash is: its name and the text; the last few are kept."""
    return Slot()


@st.cache_resource(max_entries=3, show_spinner=False)
def overview_slot(*key: object) -> Slot[Any]:
    """Where the pass over all weights of one layer is."""
    return Slot()


@st.cache_resource(max_entries=2, show_spinner=False)
def run_slot(*key: object) -> Slot[Any]:
    """Where a model's own pass over a long text is: all its layers."""
    return Slot()


@st.cache_resource(max_entries=48, show_spinner=False)
def window_slot(*key: object) -> Slot[Any]:
    """Where the picture of a part of a map is."""
    return Slot()


def keep_text(name: str, text: str) -> str:
    """Keeps a visitor's text; its hash stands for it in an address."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
    text_slot(digest).value = (name, text)
    return digest


def kept_text(digest: str) -> tuple[str, str] | None:
    """The name and the text of this hash; None where it is not known, or not any more."""
    return text_slot(digest).value
