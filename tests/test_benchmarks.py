"""What the benchmarks compute beside times: pooled tables, coded weights, bytes of results."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks import long_bytes, long_error, long_layers
from benchmarks.long import contestants
from benchmarks.long_memory import bytes_beyond
from benchmarks.report import Column, Row, Table
from benchmarks.timing import Spread, interleaved


def test_a_table_of_three_by_four_is_pooled_by_hand() -> None:
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.0, 0.0, 1.0, 0.0]])
    mean, largest = long_error.pooled_table(weights, (0, 2, 3), (0, 3, 4))
    np.testing.assert_allclose(mean, [[0.75, 0.25], [1.0, 0.0]])
    np.testing.assert_allclose(largest, [[0.4, 0.4], [1.0, 0.0]])


@pytest.mark.parametrize("mask", [long_layers.NONE, long_layers.CAUSAL])
def test_the_full_table_agrees_with_the_steps_of_attention(mask: str) -> None:
    attention = long_layers.layer(50, mask, 2, deviation=4)
    steps = attention.steps()
    for head in range(2):
        table = long_error.full_table(attention, head)
        np.testing.assert_allclose(table, steps.weights[head].numpy(), atol=1e-5)


def test_scores_have_the_deviation_that_is_asked_for() -> None:
    for deviation in (1, 4, 12):
        scores = long_layers.layer(500, n_heads=2, deviation=deviation).scores()
        assert float(scores.std()) == pytest.approx(deviation, rel=0.05)


def test_every_ninth_token_is_the_commonest() -> None:
    marks = long_layers.marks(20_000)
    assert float((marks.key_codes == 0).float().mean()) == pytest.approx(0.11, abs=0.01)


def test_coded_weights_come_back_within_a_255th() -> None:
    weights = np.random.default_rng(0).random((2, 3, 40, 40), dtype=np.float32)
    back = long_bytes.decoded(long_bytes.coded(weights), weights.shape)
    assert float(np.abs(back - weights).max()) <= 1 / 255
    exact = np.array([0.0, 1.0, (51 / 255) ** 2], dtype=np.float32)
    np.testing.assert_allclose(
        long_bytes.decoded(long_bytes.coded(exact), exact.shape), exact, rtol=1e-6
    )


def test_results_count_once_and_inputs_not_at_all() -> None:
    given = SimpleNamespace(query=torch.zeros(10))
    shared = torch.zeros(4, 5)
    found = SimpleNamespace(
        attention=given, numbers={"a": shared[0], "b": shared[1]}, map=torch.zeros(3).double()
    )
    assert bytes_beyond(found, given) == 4 * 20 + 8 * 3


def test_contestants_of_long_texts_agree_where_both_say_the_same() -> None:
    calls = contestants(600, long_layers.CAUSAL, 2)
    seen = calls["everything"]()
    torch.testing.assert_close(seen.picture.mean, calls["mean map alone"]())  # type: ignore[attr-defined]


def test_without_a_warm_up_each_is_called_once_in_a_round() -> None:
    calls: list[str] = []
    timed = interleaved(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3, warm_up=0
    )
    assert calls == ["a", "b"] * 3
    assert len(timed.seconds["a"]) == 3


def test_a_figure_is_judged_as_it_is_printed() -> None:
    columns = (Column("time", "×", 2),)
    rows = [
        Row(("a",), (Spread.exactly(1.004),), (1.0,)),
        Row(("b",), (Spread.exactly(1.01),), (1.0,)),
    ]
    table = Table("", ("name",), columns, rows)
    assert table.verdicts == [True, False]
    assert table.misses(rows[1]) == ["missed by 0.01 ×"]
