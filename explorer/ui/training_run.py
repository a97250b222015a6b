"""A training that a session has started: what came of it so far, and the buttons for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.cores import workers
from explorer.cost import in_time
from explorer.jobs import Job
from explorer.small_model import SmallModel
from explorer.training import Measurement, RunSettings, seconds_per_step
from explorer.training_worker import from_json
from explorer.ui import background
from explorer.ui.training_choice import Choice

STARTED = "training"
START_UP = 1.0
"""Seconds that a process takes to begin."""


@dataclass
class Started:
    """A training that this session has started."""

    choice: Choice
    job: Job
    read: list[int] = field(default_factory=lambda: [0, 0])
    runs: list[list[list[Measurement]]] = field(default_factory=list)
    """For each model and seed what was measured."""
    ended: list[str] = field(default_factory=list)
    """Why single runs ended early."""
    begun: tuple[float, float] | None = None
    """Seconds and share of the work at the first measurement: what came before is loading."""
    told: bool = False
    """Whether the page has been drawn since it was over."""

    def __post_init__(self) -> None:
        self.runs = [[[] for _ in side.runs] for side in self.choice.sides]

    def gather(self) -> None:
        """Takes in what the processes have written since the last look."""
        for place, messages in enumerate(self.job.messages):
            for message in messages[self.read[place] :]:
                self.read[place] += 1
                if "measured" in message:
                    self.runs[place][message["run"]].append(from_json(message["measured"]))
                else:
                    seed = self.choice.sides[place].runs[message["run"]].seed
                    name = self.choice.sides[place].name
                    self.ended.append(f"{name}, seed {seed}: {message['ended']}")

        if self.begun is None and self.share:
            self.begun = (self.job.seconds, self.share)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the pace until now; None while that is not known."""
        if self.begun is None or self.share <= self.begun[1]:
            return None
        pace = (self.job.seconds - self.begun[0]) / (self.share - self.begun[1])
        return pace * (1 - self.share)

    @property
    def models(self) -> dict[str, Sequence[Sequence[Measurement]]]:
        """The measurements by the models' names."""
        names = [side.name for side in self.choice.sides]
        return dict(zip(names, self.runs, strict=True))

    @property
    def share(self) -> float:
        """How much of the work is done, by the slower model."""
        last = self.choice.sides[0].runs[0].steps
        done = [
            sum(run[-1].step if run else 0 for run in runs) / (last * len(runs))
            for runs in self.runs
        ]
        return min(done)


def buttons(choice: Choice, started: Started | None, mine: bool) -> DeltaGenerator:
    """Start, pause, stop; gives the place beside them for what a start would do."""
    goes = started is not None and not started.job.is_over
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        label = "Start again" if mine else "Start"
        if st.button(
            label, key="train_start", icon=":material/play_arrow:", disabled=goes and mine
        ):
            requests = [{"runs": [asdict(run) for run in side.runs]} for side in choice.sides]
            st.session_state[STARTED] = Started(choice, background.start(requests))
            st.rerun()
        if started is not None and goes:
            paused = started.job.is_paused
            if st.button(
                "Go on" if paused else "Pause",
                key="train_pause",
                icon=":material/resume:" if paused else ":material/pause:",
            ):
                started.job.go_on() if paused else started.job.pause()
                st.rerun()
            if st.button("Stop", key="train_stop", icon=":material/stop:"):
                started.job.stop()
                started.job.wait(3)
                st.rerun()
        if goes and not mine:
            st.caption("A training with other settings is still going on; Start ends it.")
        return st.empty()


def plan(choice: Choice) -> str:
    """What a start would do and take."""
    first = choice.sides[0].runs[0]
    seconds = max(
        len(side.runs) * side.runs[0].steps * _seconds_per_step(side.runs[0])
        for side in choice.sides
    )
    seeds = len(choice.seeds)
    many = f"{seeds} seeds" if seeds > 1 else "one seed"
    sizes = " and ".join(dict.fromkeys(f"{_parameters(s.runs[0]):,}" for s in choice.sides))
    return (
        f"Two models of {sizes} parameters, {first.steps} steps of {first.rows} rows, {many}: "
        f"about {in_time(seconds * 1.3 + START_UP)} here, as fast as this machine is now."
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _seconds_per_step(settings: RunSettings) -> float:
    return workers().submit(seconds_per_step, settings).result()


@st.cache_data(max_entries=64, show_spinner=False)
def _parameters(settings: RunSettings) -> int:
    return sum(weight.numel() for weight in SmallModel(settings.shape).parameters())
