"""The cost of attention: the three methods agree, measurements are bounded, words are right."""

from __future__ import annotations

import math
from collections import namedtuple

import pytest
import torch

from explorer import cost
from explorer.cost import METHODS, Measured, as_picture, in_bytes, in_count, in_time, slope


def test_the_three_methods_give_the_same_output() -> None:
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(3, 70, 16, generator=generator) for _ in range(3))
    scores = torch.einsum("hqd,hkd->hqk", query.double(), key.double()) / 4  # √16
    expected = torch.einsum("hqk,hkd->hqd", scores.softmax(-1), value.double())
    for method, run in METHODS.items():
        assert (run(query, key, value) - expected).abs().max() < 1e-5, method


def test_a_table_of_a_thousand_tokens_and_four_heads_takes_sixteen_megabytes() -> None:
    assert cost.table_bytes(1000, 4) == 16_000_000


def test_measurements_come_shortest_first_and_the_process_ends_with_them() -> None:
    found = list(cost.measurements([32, 64], n_heads=1, d_k=8))
    assert [(one.length, one.method) for one in found] == [
        (length, method) for length in (32, 64) for method in METHODS
    ]
    assert all(0 < one.seconds < 60 and one.extra_bytes >= 0 for one in found)


def test_the_full_table_takes_at_least_its_own_memory() -> None:
    one = next(cost.measurements([1024], n_heads=2, d_k=8, methods=["Full table"]))
    assert one.extra_bytes >= 0.9 * 1024 * 1024 * 2 * 4


def test_closing_early_ends_the_measuring_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    popen = cost.subprocess.Popen

    def watched(*args: object, **others: object) -> object:
        started.append(popen(*args, **others))  # type: ignore[call-overload]
        return started[0]

    monkeypatch.setattr(cost.subprocess, "Popen", watched)
    work = cost.measurements([32, 64], n_heads=1, d_k=8)
    next(work)
    assert started[0].poll() is None
    work.close()
    assert started[0].poll() is not None


def test_a_table_past_the_machines_memory_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free = namedtuple("free", "available")
    monkeypatch.setattr(cost.psutil, "virtual_memory", lambda: free(10_000))
    found = list(cost.measurements([64, 128], n_heads=1, d_k=8, methods=["Full table"]))
    assert [math.isnan(one.seconds) for one in found] == [True, True]
    assert "memory" in found[0].skipped


def test_what_would_take_too_long_is_skipped() -> None:
    slow = Measured("Fused kernel (torch)", 1000, 3.0, 0)
    assert cost._too_much(slow.method, 2000, 1, slow) == "it would take about 12 seconds"
    assert cost._too_much(slow.method, 1100, 1, slow) == ""


def test_the_slope_of_a_square_law_is_two() -> None:
    points = [Measured("m", n, 3e-9 * n**2, 0) for n in (100, 200, 400, 800)]
    assert slope(points) == pytest.approx(2.0)
    assert slope(points[:2]) is None


def test_time_at_another_length_grows_with_its_square() -> None:
    points = [Measured("m", 100, 0.5, 0), Measured("m", 200, math.nan, 0, "too long")]
    assert cost.seconds_at(1000, points) == pytest.approx(50.0)
    assert cost.seconds_at(1000, []) is None


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (12, "12 bytes"),
        (64_000, "64.0 KB"),
        (999_900, "1.0 MB"),
        (1.5e9, "1.5 GB"),
        (16e12, "16.0 TB"),
    ],
)
def test_bytes_are_written_as_people_write_them(count: float, words: str) -> None:
    assert in_bytes(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0123, "12 ms"),
        (0.5, "500 ms"),
        (3.4, "3.4 seconds"),
        (120, "2.0 minutes"),
        (7200, "2.0 hours"),
        (864_000, "10.0 days"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, words: str) -> None:
    assert in_time(seconds) == words


def test_counts_and_pictures() -> None:
    assert in_count(4e6) == "4.0 million"
    assert in_count(262e9) == "262 billion"
    assert in_count(640) == "640"
    assert as_picture(16e9) == "the whole memory of a laptop"
    assert as_picture(15e6) == "5 × a photograph"
    assert as_picture(17.3e12) == "3 × the memory of a rack of 72 data-centre GPUs"
    assert as_picture(1000) == "less than a photograph"
