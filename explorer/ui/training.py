"""The page Training: both models before the first step, in training, and after it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from explorer.cores import workers
from explorer.cost import in_time
from explorer.jobs import State
from explorer.training import Measurement, Run, RunSettings, example
from explorer.training_summary import run_table, step_table
from explorer.ui import background, training_figures, training_words
from explorer.ui.training_choice import Choice
from explorer.ui.training_run import STARTED, Started, buttons, plan
from explorer.ui.training_words import Models
from explorer.ui.words import plain

EVERY = 1.5
"""Seconds between two looks at a run."""
ENDS: dict[State, str] = {
    "stopped": "Stopped. What was measured until then stays.",
    "gone": "The connection to this page was lost, so the training was ended. Start it again.",
    "late": f"Ended after {background.LONGEST:.0f} seconds, the most that a training may take "
    "here. Choose fewer steps or seeds, or a smaller d_k.",
    "failed": "The training process ended by itself, perhaps for want of memory. Choose a smaller "
    "d_k, and start again.",
}


def show(choice: Choice) -> None:
    """The chosen models: untrained, or their training where it was started."""
    started: Started | None = st.session_state.get(STARTED)
    mine = started is not None and started.choice.sides == choice.sides
    beside = buttons(choice, started, mine)
    if started is not None and mine:
        every = None if started.job.is_over else EVERY
        st.fragment(_live, run_every=every)(started)
    else:
        _before(choice)
        if started is None or started.job.is_over:
            beside.caption(plan(choice))  # last: measuring a step takes a moment
        background.make_ready(len(choice.sides))


@st.cache_data(max_entries=64, show_spinner=False)
def _untrained(settings: RunSettings) -> Measurement:
    return workers().submit(lambda: Run(settings).measure()).result()


def _before(choice: Choice) -> None:
    """Both models as they are before the first step."""
    firsts = {side.name: _untrained(side.runs[0]) for side in choice.sides}
    _maps("Before the first step", choice, list(firsts.values()))
    training_words.start_table(firsts)
    said = training_words.compared_starts(firsts)
    if said:
        st.markdown(said)


def _live(started: Started) -> None:
    """A training as far as it has come; looks again by itself while it goes on."""
    over = started.job.is_over  # asked before the messages are read: none is missed
    started.gather()
    choice, models = started.choice, started.models
    if not over:
        _progress(started)
    elif not started.told:
        started.told = True
        st.rerun(scope="app")  # the last look: the buttons change, and no further look is due
    else:
        _end(started)
    for reason in started.ended:
        st.warning(plain(reason))
    latest = [runs[0][-1] if runs[0] else None for runs in started.runs]
    firsts = {side.name: _untrained(side.runs[0]) for side in choice.sides}
    shown = [measured or first for measured, first in zip(latest, firsts.values(), strict=True)]
    if over and all(latest):
        shown = _look_back(started)
    _maps("In training" if not over else "After training", choice, shown)
    _curves(choice, models)
    if over:
        training_words.start_table(firsts)
        said = training_words.compared_starts(firsts)
        if said:
            st.markdown(said)
        _tables(choice, models)


def _progress(started: Started) -> None:
    """How far it is, and how long it will still take."""
    job, share = started.job, started.share
    if job.state == "waiting":
        ahead = background.ahead(job)
        words = f"Waiting for a free place: {ahead} before you." if ahead else "Starting …"
    elif job.is_paused:
        words = "Paused."
    elif share == 0:
        words = "Starting …"
    else:
        left = started.seconds_left
        words = "" if left is None else f"{in_time(max(left, 1))} left"
    st.progress(share, f"{100 * share:.0f} % done. {words}")


def _end(started: Started) -> None:
    """How it ended, in words."""
    if started.job.state in ENDS:
        st.info(ENDS[started.job.state], icon=":material/info:")
    task = started.choice.sides[0].runs[0].task
    said = []
    for name, runs in started.models.items():
        said.append(f"- {training_words.outcome(name, runs)}")
        if runs[0]:
            said.append(f"  {training_words.heads(runs[0][-1], task)}")
    st.markdown("\n".join(said))


def _look_back(started: Started) -> list[Measurement]:
    """The maps at a step that the reader chooses, the last by default."""
    runs = [of_seeds[0] for of_seeds in started.runs]
    steps = [one.step for one in min(runs, key=len)]
    if len(steps) < 2:
        return [run[-1] for run in runs]
    at = st.select_slider("Look back: the maps after so many steps", steps, value=steps[-1])
    return [run[steps.index(at)] for run in runs]


def _maps(title: str, choice: Choice, measured: Sequence[Measurement]) -> None:
    """The heads of both models on the fixed example, side by side."""
    first = choice.sides[0].runs[0]
    words = " ".join(example_labels(first))
    st.subheader(f"{title}: where each head looks", anchor=False)
    st.text(f"The example:  {words}")
    columns = st.columns(2, gap="large")
    for place, (column, side, one) in enumerate(zip(columns, choice.sides, measured, strict=True)):
        with column:
            accuracy = training_words.percent(one.accuracy)
            st.markdown(f"**{plain(side.name)}** after {one.step} steps, accuracy {accuracy}")
            training_figures.maps(f"train_maps_{place}", one)


def example_labels(settings: RunSettings) -> list[str]:
    """The fixed example as a person reads it."""
    task = settings.works_on
    return task.labels(example(task).ids[0])


def _curves(choice: Choice, models: Models) -> None:
    """All curves: both models in one picture, or side by side with one domain."""
    steps = choice.sides[0].runs[0].steps
    if len(choice.seeds) > 1:
        st.caption(
            f"Lines are the median of {len(choice.seeds)} seeds, bands go from the smallest to the "
            "largest. Maps and single heads are of the first seed."
        )
    accuracy, loss, saturated = training_figures.CURVES
    left, right = st.columns(2, gap="large")
    with left:
        training_figures.curve(accuracy, models, steps)
        training_figures.row_gradients(models, steps)
        training_figures.curve(saturated, models, steps)
    with right:
        training_figures.curve(loss, models, steps)
        training_figures.weight_gradients(models, steps)
        st.caption(
            "A row of scores is what one query gives all its keys. Its gradient is that of its own "
            "answer's loss in the last layer; the band goes from 10 % to 90 % of the rows. "
            "Saturated: one key has over 99 % of the weight."
        )
    firsts = [runs[0] for runs in models.values()]
    known = [one for run in firsts for one in run[:1]]
    if not known:
        return
    most = max(max(map(max, one.entropy)) for run in firsts for one in run) * 1.05
    for key, title, is_entropy, top in (
        ("entropy", "Entropy of each head", True, most),
        ("largest", "Largest weight of each head", False, 1.0),
    ):
        columns = st.columns(2, gap="large")
        for place, (column, name, run) in enumerate(zip(columns, models, firsts, strict=True)):
            with column:
                shown = f"{title}, {plain(name)}"
                training_figures.per_head(f"{key}_{place}", shown, run, steps, top, is_entropy)


def _tables(choice: Choice, models: Models) -> None:
    """All numbers: a row for each run, and a row for each measurement."""
    st.subheader("The runs in numbers", anchor=False)
    st.dataframe(_rounded(run_table(models, choice.seeds)), hide_index=True)
    with st.expander("Every measurement as a table", icon=":material/table:"):
        st.dataframe(_rounded(step_table(models, choice.seeds)), hide_index=True)


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    """The same to four digits."""
    written = table.copy()
    for column in table.columns:
        if table[column].dtype == float:
            written[column] = [float(f"{value:.4g}") for value in table[column]]
    return written
