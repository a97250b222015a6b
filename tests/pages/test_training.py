"""The page Training, with tiny runs; the processes are real in one test, stood in for in others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from explorer.jobs import Job
from explorer.training import Run, RunSettings
from explorer.training_worker import to_json
from explorer.ui import background
from explorer.ui.training_choice import PRESETS, USUAL, scale_of
from tests.pages import driven
from tests.pages.driven import said

SMALL = {"train_d_k": "4", "train_heads": "1", "train_steps": "50"}
opened = partial(driven.opened, "training")


class Finished(Job):
    """A job that has already measured its runs before and after a step or two."""

    def __init__(self, requests: Sequence[dict[str, Any]]) -> None:
        super().__init__(requests, lambda: True, 1.0)
        for side, request in enumerate(requests):
            for number, settings in enumerate(request["runs"]):
                run = Run(RunSettings(**settings))
                for _ in range(2):
                    found = {"run": number, "measured": to_json(run.measure())}
                    self.messages[side].append(found)
                    run.step()
        self.state = "done"


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Stands in for the pool: each job that is started is over at once."""
    made: list[Job] = []

    def start(requests: Sequence[dict[str, Any]]) -> Job:
        made.append(Finished(requests))
        return made[-1]

    monkeypatch.setattr(background, "start", start)
    return made


@pytest.fixture
def real_pool() -> Iterator[Callable[[], Any]]:
    background.pool.clear()
    yield background.pool
    background.pool().close()
    background.pool.clear()


def test_the_untrained_models_are_the_first_thing_shown() -> None:
    app = opened()
    assert any("Before the first step" in each.value for each in app.subheader)
    assert list(app.dataframe[0].value.columns) == ["2 layers", "1 layer"]
    assert "37,248 and 20,736 parameters" in said(app)  # worked out in the next test
    assert app.text[0].value.startswith("The example:  ")
    assert app.button(key="train_start").label == "Start"


def test_parameters_are_counted_by_hand() -> None:
    # 32 symbols in and out, d_model 64, four heads of 16: W_Q, W_K, W_V, W_O are 64 × 64 each, a
    # LayerNorm has 128, and there is one more at the end.
    layer = 4 * 64 * 64 + 128
    assert 2 * 32 * 64 + 2 * layer + 128 == 37_248
    assert 2 * 32 * 64 + 1 * layer + 128 == 20_736


def test_nothing_is_started_by_a_link(finished: list[Job]) -> None:
    opened(train_preset="at256", train_seeds="2")
    assert finished == []


@pytest.mark.parametrize("preset", list(PRESETS))
def test_each_preset_opens_with_its_settings(preset: str) -> None:
    app = opened(train_preset=preset)
    for name, value in (USUAL | PRESETS[preset].sets).items():
        assert app.selectbox(key=name).value == value
    assert PRESETS[preset].about in [each.value for each in app.markdown]


def test_a_start_trains_both_models_on_the_same_seeds(finished: list[Job]) -> None:
    app = opened(train_preset="at16", train_seeds="2", **SMALL)
    app.button(key="train_start").click().run()
    assert not app.exception
    sides = [request["runs"] for request in finished[0].requests]
    assert [[run["seed"] for run in runs] for runs in sides] == [[0, 1], [0, 1]]
    assert [[run["scale"] for run in runs] for runs in sides] == [[None, None], [1.0, 1.0]]
    for one, other in zip(*sides, strict=True):
        assert {**one, "scale": 0} == {**other, "scale": 0}
    assert "scale 1/√d" in said(app) and "did not learn the task with 2 seeds" in said(app)
    assert "bands go from the smallest to the largest" in said(app)
    runs = next(each.value for each in app.dataframe if "seed" in each.value)
    assert len(runs) == 4
    assert app.button(key="train_start").label == "Start again"


def test_other_settings_show_the_untrained_models_again(finished: list[Job]) -> None:
    app = opened(**SMALL)
    app.button(key="train_start").click().run()
    app.selectbox(key="train_d_k").select("8").run()
    assert any("Before the first step" in each.value for each in app.subheader)
    app.selectbox(key="train_d_k").select("4").run()
    assert app.button(key="train_start").label == "Start again"


def test_the_same_link_gives_the_same_numbers(finished: list[Job]) -> None:
    tables = []
    for _ in range(2):
        app = opened(train_preset="at16", train_seeds="1", **SMALL)
        app.button(key="train_start").click().run()
        tables.append(next(each.value for each in app.dataframe if "seed" in each.value))
    assert tables[0].equals(tables[1])


def test_choosing_a_preset_sets_the_controls_anew() -> None:
    app = opened(train_d_k="32")
    app.selectbox(key="train_preset").select("recall").run()
    assert not app.exception
    assert app.selectbox(key="train_d_k").value == "256"
    assert "train_d_k" not in app.query_params


def recalled(**changes: Any) -> float:
    """The accuracy that the preset's scaled model ends with, but for some changes."""
    sets = USUAL | PRESETS["recall"].sets
    settings = RunSettings(
        task="recall",
        n_layers=1,
        n_heads=int(sets["train_heads"]),
        d_k=int(sets["train_d_k"]),
        positions="learned",
        learning_rate=float(sets["train_rate"]),
        steps=int(sets["train_steps"]),
    )
    run = Run(replace(settings, **changes))
    for _ in range(settings.steps):
        run.step()
    return run.measure().accuracy


@pytest.mark.parametrize("seed", range(5))
def test_recall_is_learnt_with_the_scale_and_not_without_by_each_seed(seed: int) -> None:
    assert recalled(seed=seed) > 0.95
    assert recalled(seed=seed, scale=1.0) < 0.5


def test_one_head_alone_may_fail_in_spite_of_the_scale() -> None:
    assert recalled(n_heads=1, seed=1) < 0.5


def test_saturation_is_told_where_it_is_real_and_not_where_it_is_not() -> None:
    words = "times larger"
    assert words in said(opened(train_preset="at256"))
    assert words not in said(opened(train_preset="small"))


def test_a_wrong_link_falls_back_with_a_word() -> None:
    app = opened(train_d_k="7", train_preset="x", train_rate="fast")
    assert len(app.warning) == 3
    assert app.selectbox(key="train_d_k").value == "16"


def test_scales_are_what_their_names_say() -> None:
    assert [scale_of(name, 64) for name in ("root", "one", "inverse")] == [None, 1.0, 1 / 64]
    assert [scale_of("times", 64, factor) for factor in (0.5, 4.0)] == [1 / 16, 1 / 2]


def test_any_factor_on_the_usual_scale_can_be_asked_for(finished: list[Job]) -> None:
    link = {"train_layers_b": "2", "train_scale_a": "times", "train_scale_b": "times"}
    app = opened(**link, train_factor_b="0.25", **SMALL)
    assert list(app.dataframe[0].value.columns) == ["scale 2/√d_k", "scale 0.25/√d_k"]
    app.number_input(key="train_factor_a").set_value(3.0).run()
    assert "3.0" in app.query_params["train_factor_a"]
    app.button(key="train_start").click().run()
    assert [request["runs"][0]["scale"] for request in finished[0].requests] == [1.5, 0.125]
    app.number_input(key="train_factor_a").set_value(0.25).run()
    columns = list(app.dataframe[0].value.columns)  # alike, and still told apart
    assert columns == ["First, scale 0.25/√d_k", "Second, scale 0.25/√d_k"]


@pytest.mark.parametrize("factor", ["many", "0", "nan", "1e9", "-1"])
def test_a_wrong_factor_falls_back_with_a_word(factor: str) -> None:
    app = opened(train_scale_a="times", train_factor_a=factor)
    (warning,) = app.warning
    assert "It is a number from 0.01 to 100. Showing 2." in warning.value.replace("\\", "")
    assert app.number_input(key="train_factor_a").value == 2


def test_a_real_training_starts_beside_the_page_and_stops(
    real_pool: Callable[[], Any],
) -> None:
    app = opened(train_steps="1000")
    app.button(key="train_start").click().run()
    assert not app.exception
    job = app.session_state["training"].job
    assert not job.is_over
    app.button(key="train_stop").click().run()
    assert job.wait(120)
    assert job.state == "stopped"
    app.run()
    assert any("Stopped" in each.value for each in app.info)
