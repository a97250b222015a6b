"""Numbers per head: worked by hand, and against NumPy on random attention."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.attention import Attention
from explorer.capture import GivenWeights
from explorer.masks import causal, padding, sliding_window
from explorer.metrics import METRICS, head_metrics, layer_metrics


def of(rows: list[list[float]], **options: object) -> dict[str, float]:
    """The numbers of one head with these weights; a weight of 0 counts as forbidden."""
    found = layer_metrics(GivenWeights(torch.tensor([rows])), **options)  # type: ignore[arg-type]
    return {name: float(values[0]) for name, values in found.items()}


def attention(n_heads: int = 2, n_q: int = 5, n_k: int = 5, **options: object) -> Attention:
    shape = (n_heads, n_q, 4), (n_heads, n_k, 4), (n_heads, n_k, 3)
    return Attention(*(torch.randn(*sizes) for sizes in shape), **options)  # type: ignore[arg-type]


# Worked by hand


def test_a_quarter_and_three_quarters() -> None:
    numbers = of([[0.25, 0.75], [0.25, 0.75]])
    spread = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))  # 0.5623 nats
    assert numbers["entropy"] == pytest.approx(spread, abs=1e-6)
    assert numbers["entropy_share"] == pytest.approx(spread / math.log(2), abs=1e-6)
    assert numbers["distance"] == pytest.approx((0.75 + 0.25) / 2)  # row 0 looks ahead, row 1 back
    assert numbers["first"] == pytest.approx(0.25)
    assert numbers["self"] == pytest.approx((0.25 + 0.75) / 2)
    assert numbers["previous"] == pytest.approx(0.25)  # row 1 alone has a token before it
    assert numbers["largest_weight"] == pytest.approx(0.75)
    assert numbers["sink"] == pytest.approx(0, abs=1e-6)


def test_equal_weights_have_the_largest_entropy() -> None:
    numbers = of([[0.25] * 4] * 4)
    assert numbers["entropy"] == pytest.approx(math.log(4))
    assert numbers["entropy_share"] == pytest.approx(1)
    # |0-0|+…+|0-3| = 6, then 4, 4, 6: a mean of 5 for each query, over 4 keys.
    assert numbers["distance"] == pytest.approx(5 / 4)


def test_one_key_alone_has_no_entropy_and_is_left_out_of_the_share() -> None:
    numbers = of([[1.0, 0.0], [0.5, 0.5]])
    assert numbers["entropy"] == pytest.approx(math.log(2) / 2)
    assert numbers["entropy_share"] == pytest.approx(1)  # the second row's alone


def test_a_single_token_has_no_share_and_no_token_before() -> None:
    numbers = of([[1.0]])
    assert numbers["entropy"] == 0
    assert math.isnan(numbers["entropy_share"])
    assert math.isnan(numbers["previous"])
    assert numbers["self"] == numbers["first"] == 1


def test_padded_queries_are_left_out() -> None:
    rows = [[0.0, 1.0], [1.0, 0.0]]
    padded = torch.tensor([False, True])
    numbers = of(rows, padded_queries=padded)
    assert numbers["first"] == 0 and numbers["distance"] == 1 and numbers["self"] == 0
    assert math.isnan(of(rows, padded_queries=torch.tensor([True, True]))["first"])


def test_a_row_without_keys_is_left_out() -> None:
    assert of([[0.0, 0.0], [0.25, 0.75]])["first"] == pytest.approx(0.25)


def test_a_row_that_is_not_a_number_is_left_out() -> None:
    numbers = of([[math.nan, math.nan], [0.25, 0.75]])
    assert numbers["first"] == pytest.approx(0.25)


def test_what_a_row_lacks_is_in_the_sink() -> None:
    assert of([[0.2, 0.3], [0.1, 0.1]])["sink"] == pytest.approx((0.5 + 0.8) / 2)


def test_queries_at_the_end_of_longer_keys_count_from_their_own_places() -> None:
    # Decoding with a cache: two queries, the last of four tokens.
    numbers = of([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    assert numbers["self"] == pytest.approx((0.3 + 0.1) / 2)
    assert numbers["previous"] == pytest.approx((0.2 + 0.2) / 2)


def test_cross_attention_has_no_distance() -> None:
    numbers = of([[0.5, 0.5]], same_sequence=False)
    assert math.isnan(numbers["distance"]) and math.isnan(numbers["self"])
    assert numbers["first"] == 0.5


# Against NumPy


def numpy_numbers(weights: Tensor, allowed: Tensor) -> dict[str, list[float]]:
    """The same numbers, one row after another, from their definitions."""
    found: dict[str, list[float]] = {metric.name: [] for metric in METRICS}
    for head, table in enumerate(weights.double().numpy()):
        rows: dict[str, list[float]] = {metric.name: [] for metric in METRICS}
        for place, row in enumerate(table):
            may = allowed[min(head, len(allowed) - 1), place].numpy()
            logs = np.log(np.where(row > 0, row, 1))
            rows["entropy"].append(-float((row * logs).sum()))
            if may.sum() > 1:
                rows["entropy_share"].append(rows["entropy"][-1] / math.log(may.sum()))
            rows["distance"].append(sum(w * abs(place - key) for key, w in enumerate(row)))
            rows["largest_weight"].append(row.max())
            rows["first"].append(row[0])
            rows["self"].append(row[place])
            if place:
                rows["previous"].append(row[place - 1])
            rows["sink"].append(1 - row.sum())
        for name, values in rows.items():
            found[name].append(float(np.mean(values)) if values else math.nan)
    return found


@given(
    length=st.integers(1, 9),
    n_heads=st.integers(1, 3),
    kind=st.sampled_from(["none", "causal", "window"]),
    seed=st.integers(0, 99),
)
def test_numbers_are_those_of_numpy(length: int, n_heads: int, kind: str, seed: int) -> None:
    torch.manual_seed(seed)
    mask = {"none": None, "causal": causal(), "window": causal() & sliding_window(2)}[kind]
    layer = attention(n_heads, length, length, mask=mask)
    expected = numpy_numbers(layer.weights(), layer.allowed())
    for name, values in layer_metrics(layer).items():
        np.testing.assert_allclose(values.numpy(), expected[name], atol=2e-6, err_msg=name)


def test_blocks_of_rows_give_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = attention(3, 11, 11, mask=causal())
    whole = layer_metrics(layer)
    monkeypatch.setattr("explorer.metrics.BLOCK_WEIGHTS", 3 * 11 * 2)  # two rows at a time
    for name, values in layer_metrics(layer).items():
        torch.testing.assert_close(values, whole[name], equal_nan=True)


def test_chosen_heads_have_their_own_numbers() -> None:
    layer = attention(4)
    every, some = layer_metrics(layer), layer_metrics(layer, heads=[3, 1])
    for name, values in some.items():
        torch.testing.assert_close(values, every[name][[3, 1]])


# The table


@dataclass
class SmallStack:
    name: str
    layers: list[Attention]
    layer_numbers: tuple[int, ...]
    padded_queries: Tensor


def test_the_table_has_a_row_for_each_head_under_its_true_layer_number() -> None:
    stack = SmallStack(
        "encoder", [attention(2), attention(2)], (1, 3), torch.zeros(5, dtype=torch.bool)
    )
    table = head_metrics(stack)
    assert table["layer"].tolist() == [1, 1, 3, 3]
    assert table["head"].tolist() == [0, 1, 0, 1]
    assert set(table.columns) == {"layer", "head"} | {metric.name for metric in METRICS}
    expected = layer_metrics(stack.layers[1])["entropy"].tolist()
    assert table["entropy"].tolist()[2:] == pytest.approx(expected)


def test_padding_in_the_batch_changes_no_number() -> None:
    layer = attention(2, 4, 4)
    lengthened = Attention(
        *(
            torch.cat([part, torch.randn(2, 3, part.shape[-1])], 1)
            for part in (layer.query, layer.key, layer.value)
        ),
        mask=padding([4]),
    )
    padded = torch.arange(7) >= 4
    for name, values in layer_metrics(lengthened, padded).items():
        torch.testing.assert_close(values, layer_metrics(layer)[name], atol=1e-6, rtol=1e-5)


def test_each_metric_says_what_it_is() -> None:
    for metric in METRICS:
        assert metric.title and metric.unit and metric.source and metric.meaning.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)
