"""Training: it learns, it repeats itself exactly, its measurements are right, its jobs end."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np
import psutil
import pytest
import torch
import torch.nn.functional as F

from explorer import jobs
from explorer.jobs import Job, Pool
from explorer.training import (
    SATURATED,
    DivergedError,
    Measurement,
    Run,
    RunSettings,
    measured_rows,
    train,
)
from explorer.training_summary import band, found_heads, reached, run_table, step_table
from explorer.training_worker import from_json, to_json

TINY = RunSettings(n_heads=2, d_k=4, d_model=16, steps=6, rows=8, length=8)
PATIENCE = 120.0  # seconds: shared cores; nothing is asserted about time


pytestmark = pytest.mark.usefixtures("one_thread")


def same(one: Measurement, other: Measurement) -> bool:
    return (
        one._replace(maps=None) == other._replace(maps=None)  # type: ignore[arg-type]
        and np.array_equal(one.maps, other.maps)
    )


# The run itself


def test_the_same_settings_give_the_same_numbers_whatever_else_draws() -> None:
    first = []
    for one in train(TINY):
        torch.rand(3)  # somebody else's random numbers
        first.append(one)
    torch.manual_seed(99)
    assert all(map(same, first, train(TINY)))
    other = list(train(replace(TINY, seed=1)))
    assert not same(first[-1], other[-1])


def test_two_runs_in_turn_do_not_share_random_state() -> None:
    alone = list(train(TINY))
    together = list(zip(train(TINY), train(replace(TINY, seed=4)), strict=True))
    assert all(same(one, pair[0]) for one, pair in zip(alone, together, strict=True))


def test_measuring_changes_nothing() -> None:
    often, seldom = Run(TINY), Run(TINY)
    for _ in range(4):
        often.step()
        often.measure()
        seldom.step()
    assert same(often.measure(), seldom.measure())


def test_both_scales_start_from_the_same_weights_and_see_the_same_rows() -> None:
    scaled, unscaled = Run(TINY), Run(replace(TINY, scale=1.0))
    for one, other in zip(scaled.model.parameters(), unscaled.model.parameters(), strict=True):
        assert one.equal(other)
    ids = [run.task.draw(8, run.data).ids for run in (scaled, unscaled)]
    assert ids[0].equal(ids[1])


def test_a_step_is_one_of_adamw_on_the_mean_loss() -> None:
    run, plain = Run(TINY), Run(TINY).model
    optimizer = torch.optim.AdamW(plain.parameters(), lr=0.01 / 20, betas=(0.9, 0.98))
    batch = run.task.draw(8, torch.Generator().manual_seed(10_000))
    logits = plain(batch.ids)[0]
    loss = F.cross_entropy(logits[batch.counts], batch.targets[batch.counts])
    loss.backward()
    optimizer.step()
    assert run.step() == pytest.approx(float(loss.detach()), rel=1e-6)
    for one, other in zip(run.model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_it_learns_what_one_layer_cannot() -> None:
    easy = RunSettings(n_heads=2, length=16, steps=150, rows=32)
    ends = [list(train(replace(easy, n_layers=layers)))[-1] for layers in (2, 1)]
    assert ends[0].accuracy > 0.95
    assert ends[1].accuracy < 0.5
    assert {head.kind for head in found_heads(ends[0])} == {"previous", "aim"}


def test_a_run_that_diverges_says_so() -> None:
    with pytest.raises(DivergedError, match="learning rate"):
        run = Run(replace(TINY, learning_rate=1.0))
        with torch.no_grad():
            run.model.answer.weight.fill_(math.inf)
        run.step()


def test_it_is_measured_before_the_first_step_and_after_the_last() -> None:
    assert [one.step for one in train(TINY)] == [0, 1, 2, 3, 4, 5, 6]
    at = RunSettings(steps=200).measured_at
    assert (at[0], at[-1]) == (0, 200)
    assert len(at) <= 41


# What is measured


@pytest.mark.parametrize("task", ["repeat", "recall"])
def test_measurements_are_those_of_a_plain_computation(task: str) -> None:
    run = Run(replace(TINY, task=task, length=16, scale=3.0))  # type: ignore[arg-type]
    found, rows = run.measure(), measured_rows(run.task)
    logits, steps = run.model(rows.ids)
    places = [tuple(place) for place in rows.counts.nonzero().tolist()]
    losses = [F.cross_entropy(logits[at], rows.targets[at]) for at in places]
    assert found.loss == pytest.approx(float(torch.stack(losses).mean().detach()), rel=1e-5)
    right = [int(logits[at].argmax()) == int(rows.targets[at]) for at in places]
    assert found.accuracy == pytest.approx(np.mean(right))
    for layer, step in enumerate(steps):
        for head in range(2):
            kept = [step.weights[row, head, query].detach() for row, query in places]
            entropy = [sum(-w * math.log(w) for w in row.tolist() if w > 0) for row in kept]
            assert found.entropy[layer][head] == pytest.approx(np.mean(entropy), rel=1e-4)
            largest = [float(row.max()) for row in kept]
            assert found.largest[layer][head] == pytest.approx(np.mean(largest), rel=1e-5)
            before = [float(row[at[1] - 1]) for row, at in zip(kept, places, strict=True)]
            assert found.previous[layer][head] == pytest.approx(np.mean(before), rel=1e-4)
            aimed = [float(row[rows.aim[at]].sum()) for row, at in zip(kept, places, strict=True)]
            assert found.aim[layer][head] == pytest.approx(np.mean(aimed), rel=1e-4)
    last = [steps[-1].weights[row, head, at].max() for row, at in places for head in range(2)]
    assert found.saturated == pytest.approx(float((torch.stack(last) > SATURATED).float().mean()))


def test_gradients_are_those_of_each_answer_alone() -> None:
    run = Run(TINY)
    found, rows = run.measure(), measured_rows(run.task)
    norms, layers = [], run.model.attention_layers
    total = [torch.zeros_like(layer.W_Q.weight) for layer in layers]
    places = rows.counts.nonzero().tolist()
    for row, query in places:
        logits, steps = run.model(rows.ids[row : row + 1])
        loss = F.cross_entropy(logits[0, query], rows.targets[row, query])
        wanted = [steps[-1].scores, *(layer.W_Q.weight for layer in layers)]
        at_scores, *at_weights = torch.autograd.grad(loss, wanted)
        norms += at_scores[0, :, query].norm(dim=-1).tolist()
        total = [sum_ + one for sum_, one in zip(total, at_weights, strict=True)]
    expected = math.sqrt(sum(float(one.square().sum()) for one in total)) / len(places)
    assert found.gradient_q == pytest.approx(expected, rel=1e-4)
    assert found.row_gradient == pytest.approx(np.quantile(norms, [0.1, 0.5, 0.9]), rel=1e-3)


def test_unscaled_rows_start_saturated_and_their_gradient_vanishes() -> None:
    """The claim of the page, at d_k = 256: the typical row's gradient, not that of the weights."""
    settings = RunSettings(n_heads=2, d_k=256)
    scaled, unscaled = (Run(replace(settings, scale=scale)).measure() for scale in (None, 1.0))
    assert scaled.saturated == 0 and unscaled.saturated > 0.4
    assert 0.8 < scaled.score_deviation < 1.25 and 13 < unscaled.score_deviation < 20
    assert unscaled.row_gradient[1] < 0.05 * scaled.row_gradient[1]
    assert unscaled.gradient_q > 3 * scaled.gradient_q
    small = Run(replace(settings, scale=1.0, initialisation="small")).measure()
    assert small.saturated == 0 and small.score_deviation < 1


def test_a_measurement_survives_its_way_through_json() -> None:
    one = Run(TINY).measure()
    assert same(from_json(to_json(one)), one)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 10**9}, "steps"),
        ({"rows": 0}, "rows"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"length": 128}, "length"),
        ({"n_heads": 3}, "n_heads"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(
    change: dict[str, object], argument: str
) -> None:
    with pytest.raises(ValueError, match=f"^{argument}: got"):
        replace(TINY, **change)  # type: ignore[arg-type]


# Summaries


def measured(step: int, accuracy: float, **others: object) -> Measurement:
    zero = [[0.0, 0.0]]
    usual = Measurement(
        step, 1.0, accuracy, 1.0, 1.0, [0.1, 0.2, 0.3], 1.0, 0.0, zero, zero, zero, zero,
        np.zeros((1, 2, 2, 2), np.float16),
    )  # fmt: skip
    return usual._replace(**others)  # type: ignore[arg-type]


def test_a_band_is_median_smallest_and_largest_as_far_as_all_runs_have_come() -> None:
    runs = [[measured(0, 0.1), measured(5, a), measured(10, 1.0)] for a in (0.2, 0.9, 0.4)]
    runs[1].pop()
    found = band(runs, lambda one: one.accuracy)
    assert found.steps == [0, 5]
    assert (found.low[1], found.middle[1], found.high[1]) == (0.2, 0.4, 0.9)
    assert band([[], runs[0]], lambda one: one.accuracy).steps == []


def test_a_task_is_learnt_at_the_first_measurement_over_95_per_cent() -> None:
    run = [measured(0, 0.1), measured(5, 0.94), measured(10, 0.95), measured(15, 0.9)]
    assert reached(run) == 10
    assert reached(run[:2]) is None


def test_heads_are_named_by_what_half_of_their_weight_does() -> None:
    one = measured(0, 1.0, previous=[[0.93, 0.2], [0.1, 0.5]], aim=[[0.0, 0.0], [0.49, 0.88]])
    assert [(head.name, head.kind, head.share) for head in found_heads(one)] == [
        ("L0H0", "previous", 0.93),
        ("L1H1", "previous", 0.5),
        ("L1H1", "aim", 0.88),
    ]


def test_tables_have_a_row_for_each_run_and_each_measurement() -> None:
    run = [measured(0, 0.1), measured(5, 0.97)]
    models = {"a": [run, run[:1]], "b": [run, []]}
    found = run_table(models, [0, 1])
    assert list(found["model"]) == ["a", "a", "b"]
    assert found["95 % after"].tolist()[0] == 5 and found["95 % after"].isna().tolist()[1]
    assert len(step_table(models, [0, 1])) == 5


# Jobs: processes beside the page


STAND_IN = """
import json, sys, threading, os
request = json.loads(sys.stdin.readline() or '{"n": 0}')
may_go = threading.Event()
may_go.set()
def obey():
    for line in sys.stdin:
        may_go.clear() if line.strip() == "pause" else may_go.set()
    os._exit(0)
threading.Thread(target=obey, daemon=True).start()
for number in range(request["n"]):
    may_go.wait()
    print(json.dumps(number), flush=True)
    threading.Event().wait(0.02)
"""
"""A worker that speaks as the real one does and starts at once: it writes n numbers."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "COMMAND", [sys.executable, "-c", STAND_IN])


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(places=2)
    yield made
    made.close()
    until = time.monotonic() + PATIENCE
    while made._queue and time.monotonic() < until:
        time.sleep(0.05)
    assert not made._queue


LONG, SHORT = {"n": 10**6}, {"n": 3}


def request(*settings: RunSettings) -> dict[str, object]:
    return {"runs": [asdict(each) for each in settings]}


def until_first_message(job: Job) -> None:
    until = time.monotonic() + PATIENCE
    while not all(job.messages) and not job.is_over and time.monotonic() < until:
        time.sleep(0.05)
    assert all(job.messages), job.state


def gone(job: Job) -> bool:
    return bool(job.processes) and not any(psutil.pid_exists(each.pid) for each in job.processes)


def test_a_job_gives_the_same_numbers_as_a_run_here(pool: Pool) -> None:
    settings = [TINY, replace(TINY, scale=1.0, seed=3)]
    job = pool.start("me", [request(*settings), request(TINY)], lambda: True)
    assert job.wait(PATIENCE)
    assert job.state == "done"
    assert gone(job)
    for number, each in enumerate(settings):
        mine = [from_json(m["measured"]) for m in job.messages[0] if m["run"] == number]
        for one, other in zip(mine, train(each), strict=True):
            assert one.loss == pytest.approx(other.loss, rel=1e-4)  # other numbers of threads
    alone = [message for message in job.messages[0] if message["run"] == 0]
    assert alone == job.messages[1]  # two processes at once, and exactly the same


@pytest.mark.usefixtures("quick")
def test_stop_ends_the_processes(pool: Pool) -> None:
    job = pool.start("me", [LONG, LONG], lambda: True)
    until_first_message(job)
    job.stop()
    assert job.wait(PATIENCE)
    assert job.state == "stopped"
    assert gone(job)


@pytest.mark.usefixtures("quick")
def test_a_pause_holds_the_work_and_it_goes_on_after(pool: Pool) -> None:
    job = pool.start("me", [LONG], lambda: True)
    until_first_message(job)
    job.pause()
    time.sleep(1.0)  # a step may still have been under way
    held = len(job.messages[0])
    time.sleep(0.5)
    assert (len(job.messages[0]), job.state) == (held, "paused")
    job.go_on()
    until = time.monotonic() + PATIENCE
    while len(job.messages[0]) == held and time.monotonic() < until:
        time.sleep(0.05)
    assert len(job.messages[0]) > held


@pytest.mark.usefixtures("quick")
def test_a_job_ends_when_its_owner_is_gone(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "GONE_AFTER", 0.2)
    here = [True]
    job = pool.start("me", [LONG], lambda: here[0])
    until_first_message(job)
    here[0] = False
    assert job.wait(PATIENCE)
    assert job.state == "gone"
    assert gone(job)


@pytest.mark.usefixtures("quick")
def test_a_job_past_its_time_ends() -> None:
    pool = Pool(places=1, longest=0.3)
    job = pool.start("me", [LONG], lambda: True)
    assert job.wait(PATIENCE)
    assert job.state == "late"
    assert gone(job)


@pytest.mark.usefixtures("quick")
def test_a_process_that_is_killed_is_told_of(pool: Pool) -> None:
    job = pool.start("me", [LONG], lambda: True)
    until_first_message(job)
    os.kill(job.processes[0].pid, signal.SIGKILL)
    assert job.wait(PATIENCE)
    assert job.state == "failed"


@pytest.mark.usefixtures("quick")
def test_jobs_wait_for_a_place_in_the_order_they_came() -> None:
    pool = Pool(places=1)
    first, second, third = (pool.start(name, [LONG], lambda: True) for name in ("a", "b", "c"))
    until_first_message(first)
    assert (second.state, third.state) == ("waiting", "waiting")
    assert [pool.ahead(job) for job in (first, second, third)] == [0, 1, 2]
    second.stop()
    assert second.wait(PATIENCE)
    first.stop()
    until_first_message(third)
    third.stop()
    assert third.wait(PATIENCE)


@pytest.mark.usefixtures("quick")
def test_an_owner_has_one_job(pool: Pool) -> None:
    first = pool.start("me", [LONG], lambda: True)
    until_first_message(first)
    second = pool.start("me", [SHORT], lambda: True)
    assert first.wait(PATIENCE) and first.state == "stopped"
    assert second.wait(PATIENCE) and second.state == "done"


@pytest.mark.usefixtures("quick")
def test_a_process_made_ready_is_used_and_the_rest_end_with_the_pool(pool: Pool) -> None:
    pool.make_ready(2)
    ready = list(pool._ready)
    job = pool.start("me", [SHORT], lambda: True)
    assert job.wait(PATIENCE)
    assert [each.pid for each in job.processes] == [ready[0].pid]
    pool.close()
    assert not psutil.pid_exists(ready[1].pid)


def test_a_worker_ends_with_its_input() -> None:
    worker = jobs._open()
    worker.communicate(timeout=PATIENCE)  # closes its input, as the end of the server would
    assert worker.returncode == 0
