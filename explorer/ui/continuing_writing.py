"""Both texts of the page Continue as they grow: what is there so far, and what adds the next token.

They are kept for everybody: whoever opens the same link reads the same text at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import streamlit as st

from explorer.capture import Capture
from explorer.continuing import MOST_TOKENS
from explorer.continuing_steps import Output, Step, continued, parting
from explorer.interventions import Intervention
from explorer.models import LoadedModel, ModelError
from explorer.ui import continuing


@dataclass(eq=False)
class Writing:
    """One text as it grows: what is there so far, and what will add the next token."""

    begin: Callable[[], Iterator[Step]]
    steps: list[Step] = field(default_factory=list)
    rest: Iterator[Step] | None = None
    is_over: bool = False
    """Whether no more will come: it has ended, or can't go on."""
    error: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def one_more(self, wanted: int) -> None:
        """One token more, unless there are as many as wanted."""
        with self.lock:
            if self.is_over or len(self.steps) >= wanted:
                return
            if self.rest is None:
                self.rest = self.begin()
            try:
                self.steps.append(next(self.rest))
            except StopIteration:
                self.is_over = True
            except (ModelError, ValueError) as error:
                self.is_over, self.error = True, str(error)
            if self.is_over or len(self.steps) >= MOST_TOKENS:
                self.is_over, self.rest = True, None  # lets go of its last run

    def retry(self) -> None:
        """After an error it may be tried again."""
        with self.lock:
            if self.error is not None:
                self.steps.clear()
                self.rest, self.is_over, self.error = None, False, None

    def has(self, wanted: int) -> bool:
        """Whether as many tokens are there as can be had of those wanted."""
        return self.is_over or len(self.steps) >= wanted


@dataclass(frozen=True, eq=False)
class Both:
    """The text written on as the model is, and, where there is a change, with it."""

    setting: continuing.Setting
    sides: tuple[Writing, ...]
    count: int
    """How many tokens are added at most."""
    wanted: int
    """How many are to be there now."""
    output: Output

    @property
    def is_done(self) -> bool:
        """Whether all that is wanted now is there."""
        return all(side.has(self.wanted) for side in self.sides)

    @property
    def steps(self) -> list[list[Step]]:
        """What is shown of each side."""
        return [side.steps[: self.wanted] for side in self.sides]

    @property
    def parting(self) -> int | None:
        """The place of the first added token that differs."""
        if len(self.sides) < 2:
            return None
        first, second = ([step.id for step in each] for each in self.steps)
        return parting(first, second)

    def go_on(self, seconds: float) -> None:
        """Adds tokens for so long, always to the side that has fewer."""
        until = time.perf_counter() + seconds
        while not self.is_done and time.perf_counter() < until:
            behind = [side for side in self.sides if not side.has(self.wanted)]
            min(behind, key=lambda side: len(side.steps)).one_more(self.wanted)


# Few are kept: one that still grows holds its last run, with a large vocabulary up to 100 MB.
@st.cache_resource(max_entries=8, show_spinner=False)
def writing(
    _loaded: LoadedModel,
    _capture: Capture,
    _applied: tuple[Intervention, ...],
    code: str,
    output: Output,
    *key: object,
) -> Writing:
    return Writing(lambda: continued(_loaded, _capture, _applied, output))
