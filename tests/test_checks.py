"""What the page says about its own weights: each fault put in by hand is found."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from explorer.attention import Attention
from explorer.checks import invariants
from explorer.masks import Positions, causal, custom, padding


@dataclass
class Faulty:
    """A layer with any weights and any mask, wrong ones too."""

    table: Tensor
    mask: Tensor

    @property
    def n_heads(self) -> int:
        return int(self.table.shape[0])

    @property
    def query_length(self) -> int:
        return int(self.table.shape[1])

    @property
    def key_length(self) -> int:
        return int(self.table.shape[2])

    def weights(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Tensor:
        return self.table[:, rows]

    def allowed(self, heads: Positions = None, rows: Positions = None) -> Tensor:
        return self.mask[:, rows]


@dataclass
class SmallStack:
    layers: list[Faulty | Attention]
    padded_queries: Tensor
    name: str = "encoder"
    layer_numbers: tuple[int, ...] = (0,)


def stack(rows: list[list[float]], allowed: list[list[bool]] | None = None) -> SmallStack:
    table = torch.tensor([rows])
    mask = torch.ones_like(table, dtype=torch.bool) if allowed is None else torch.tensor([allowed])
    return SmallStack([Faulty(table, mask)], torch.zeros(len(rows), dtype=torch.bool))


def real(n_heads: int = 2, length: int = 6, **options: object) -> SmallStack:
    layer = Attention(*(torch.randn(n_heads, length, 4) for _ in range(3)), **options)  # type: ignore[arg-type]
    return SmallStack([layer], torch.zeros(length, dtype=torch.bool))


def test_true_weights_pass() -> None:
    found = invariants(real(mask=causal()))
    assert found.row_sum_deviation < 1e-6
    assert found.forbidden_weight == 0
    assert (found.masked_rows, found.not_finite, found.sink_weight) == (0, 0, 0)


@pytest.mark.parametrize(("second", "deviation"), [(0.7, 0.2), (0.2, 0.3)])
def test_the_largest_deviation_of_a_row_sum_is_found(second: float, deviation: float) -> None:
    found = invariants(stack([[0.5, 0.5], [0.5, second]]))
    assert found.row_sum_deviation == pytest.approx(deviation, abs=1e-6)


def test_weight_on_a_forbidden_key_is_found() -> None:
    found = invariants(stack([[0.9, 0.1], [0.5, 0.5]], [[True, False], [True, True]]))
    assert found.forbidden_weight == pytest.approx(0.1)


def test_padded_queries_are_not_counted() -> None:
    wrong = stack([[0.5, 0.5], [0.9, math.nan]], [[True, True], [True, False]])
    wrong.padded_queries = torch.tensor([False, True])
    found = invariants(wrong)
    assert found.row_sum_deviation == found.forbidden_weight == found.not_finite == 0


def test_rows_without_a_key_are_counted_and_not_judged() -> None:
    allowed = custom(torch.tensor([[True, False], [False, False]]))
    layer = Attention(*(torch.randn(2, 2, 4) for _ in range(3)), allowed, on_masked_row="zero")
    found = invariants(SmallStack([layer], torch.zeros(2, dtype=torch.bool)))
    assert found.masked_rows == 1
    assert found.row_sum_deviation < 1e-6


def test_weights_that_are_not_numbers_are_counted() -> None:
    found = invariants(stack([[math.nan, 0.5], [math.inf, 0.5]]))
    assert found.not_finite == 2
    assert not math.isnan(found.row_sum_deviation)


def test_the_sink_takes_what_rows_lack() -> None:
    # Scores of 0 on two keys and a sink of log 2: weights ¼, ¼, and ½ for the sink.
    zeros = torch.zeros(1, 2, 4)
    layer = Attention(zeros, zeros, zeros, sinks=torch.tensor([math.log(2)]))
    found = invariants(SmallStack([layer], torch.zeros(2, dtype=torch.bool)))
    assert found.sink_weight == pytest.approx(0.5)
    assert found.row_sum_deviation == pytest.approx(0, abs=1e-6)


def test_the_worst_of_all_layers_counts() -> None:
    good, bad = real().layers[0], stack([[0.6] + [0.1] * 5] * 6).layers[0]
    found = invariants(SmallStack([good, bad], torch.zeros(6, dtype=torch.bool)))
    assert found.row_sum_deviation == pytest.approx(0.1, abs=1e-6)


def test_blocks_of_rows_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    of_batch = real(2, 9, mask=padding([7]) & causal())
    of_batch.padded_queries = torch.arange(9) >= 7
    whole = invariants(of_batch)
    monkeypatch.setattr("explorer.checks.BLOCK_WEIGHTS", 2 * 9 * 2)  # two rows at a time
    assert invariants(of_batch) == whole
