"""Wrong input: a sentence that names the argument, what was given and what would fit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor

from explorer import inputs
from explorer.attention import Attention, FullyMaskedRowError, attend
from explorer.masks import causal, custom, padding

Q, K, V = (4, 5, 8), (2, 6, 8), (2, 6, 3)  # 4 heads on 2, 5 queries, 6 keys, d_k 8, d_v 3


def attended(
    query: tuple[int, ...] = Q, key: tuple[int, ...] = K, value: tuple[int, ...] = V, **others: Any
) -> Any:
    return attend(torch.zeros(query), torch.zeros(key), torch.zeros(value), **others)


SHAPES = [
    ({"query": (5, 8)}, r"^query: got the shape \(5, 8\).*at least three axes"),
    ({"key": (8,)}, r"^key: got the shape \(8,\).*at least three axes"),
    ({"value": (6, 3)}, r"^value: got the shape \(6, 3\).*at least three axes"),
    ({"query": (0, 5, 8)}, r"^query: got the shape \(0, 5, 8\).*at least one head"),
    ({"query": (4, 0, 8)}, r"^query: got the shape \(4, 0, 8\).*at least one query"),
    ({"query": (4, 5, 0), "key": (2, 6, 0)}, r"^query: got the shape \(4, 5, 0\).*d_k"),
    ({"key": (2, 0, 8), "value": (2, 0, 3)}, r"^key: got the shape \(2, 0, 8\).*at least one key"),
    ({"key": (2, 6, 7)}, r"^key: got d_k = 7 in \(2, 6, 7\), but .*\(4, 5, 8\); .*\(2, 6, 8\)"),
    ({"key": (7, 2, 6, 8)}, r"^key: got the shape \(7, 2, 6, 8\), but .*\(4, 5, 8\): \(2, 6, 8\)"),
    (
        {"key": (3, 6, 8), "value": (3, 6, 3)},
        r"^key: got 3 key/value heads in \(3, 6, 8\), but the 4 .*\(4, 5, 8\) .*1 or 2 or 4",
    ),
    ({"key": (0, 6, 8), "value": (0, 6, 3)}, r"^key: got 0 key/value heads"),
    ({"value": (2, 5, 3)}, r"^value: got the shape \(2, 5, 3\), .*\(2, 6, 8\): \(2, 6, 3\)"),
    ({"value": (1, 6, 3)}, r"^value: got the shape \(1, 6, 3\), .*: \(2, 6, 3\)"),
    (
        {"mask": torch.ones(5, 5, dtype=torch.bool)},
        r"^mask: got the shape \(5, 5\), .*\(4, 5, 6\) .*\(5, 6\) or \(4, 5, 6\) would",
    ),
    ({"mask": torch.ones(3, 5, 6, dtype=torch.bool)}, r"^mask: got the shape \(3, 5, 6\)"),
    ({"mask": torch.ones(7, 4, 5, 6, dtype=torch.bool)}, r"^mask: got the shape \(7, 4, 5, 6\)"),
    ({"mask": torch.ones(5, 6)}, r"^mask: got torch.float32; a mask is bool"),
    ({"mask": custom([[True]])}, r"^matrix: got the shape \(1, 1\), .*\(\.\.\., 5, 6\)"),
    ({"bias": torch.ones(4, 6, 5)}, r"^bias: got the shape \(4, 6, 5\), .*\(4, 5, 6\) would"),
    ({"sinks": torch.ones(2)}, r"^sinks: got the shape \(2,\); .*\(4,\)"),
    ({"scale": math.nan}, r"^scale: got nan; .*finite"),
    ({"scale": math.inf}, r"^scale: got inf; .*finite"),
    ({"softcap": 0.0}, r"^softcap: got 0.0; .*above 0"),
    ({"softcap": -2.0}, r"^softcap: got -2.0; .*above 0"),
]


@pytest.mark.parametrize(
    ("change", "message"), SHAPES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_what_does_not_fit_is_named_with_what_would(change: dict[str, Any], message: str) -> None:
    attended()  # without the change all fits
    with pytest.raises(ValueError, match=message):
        attended(**change)


@pytest.mark.parametrize("name", ["query", "key", "value", "bias", "sinks"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_found_and_placed(name: str, bad: float) -> None:
    shapes = {"query": Q, "key": K, "value": V, "bias": (4, 5, 6), "sinks": (4,)}
    tensors = {key: torch.zeros(shape) for key, shape in shapes.items()}
    at = tuple(size - 1 for size in shapes[name])
    tensors[name][at] = bad
    count = math.prod(shapes[name])
    message = f"{name}: 1 of its {count} numbers are NaN or infinite, the first at {at} "
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        attend(**tensors)


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_whole_numbers_are_refused_by_name(name: str) -> None:
    tensors = {"query": torch.zeros(Q), "key": torch.zeros(K), "value": torch.zeros(V)}
    tensors[name] = tensors[name].long()
    with pytest.raises(ValueError, match=f"^{name}: got torch.int64; .*floating point"):
        attend(**tensors)


@pytest.mark.parametrize("name", ["key", "value"])
def test_mixed_dtypes_are_refused_by_name(name: str) -> None:
    tensors = {"query": torch.zeros(Q), "key": torch.zeros(K), "value": torch.zeros(V)}
    tensors[name] = tensors[name].half()
    with pytest.raises(ValueError, match=f"^{name}: got torch.float16 .*torch.float32"):
        attend(**tensors)


def test_an_unknown_choice_for_masked_rows_is_refused() -> None:
    q = torch.zeros(1, 1, 1)
    with pytest.raises(ValueError, match=r'^on_masked_row: got "skip"; it is "error" or "zero"'):
        inputs.check(q, q, q, None, None, None, None, "skip")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": torch.zeros(1, *Q)}, r"^query: got the shape \(1, 4, 5, 8\), .*one sequence"),
        ({"key": torch.zeros(2, 6, 7)}, r"^key: got d_k = 7"),
        ({"mask": torch.ones(5, 6, dtype=torch.bool)}, r"^mask: got a Tensor, .*custom\(matrix\)"),
        ({"bias": torch.zeros(3, 5, 6)}, r"^bias: got the shape \(3, 5, 6\)"),
        ({"sinks": torch.zeros(3)}, r"^sinks: got the shape \(3,\)"),
        ({"scale": math.nan}, r"^scale: got nan"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_when_made(
    change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in use: the tests' own check of annotated shapes would speak before the record does.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    fields = {"query": torch.zeros(Q), "key": torch.zeros(K), "value": torch.zeros(V)}
    with pytest.raises(ValueError, match=message):
        Attention(**{**fields, **change})


READERS: list[Callable[[Attention], object]] = [
    Attention.weights,
    lambda attention: attention.weights(rows=[0, 1, 2]),
    lambda attention: attention.weights(keys=[1]),
    Attention.output,
    Attention.weights_and_output,
    Attention.with_row_lse,
    Attention.steps,
]
"""Every way to read the weights or the output of a record."""


@pytest.mark.parametrize("reader", READERS)
def test_a_batchs_mask_is_refused_by_the_record_of_one_sequence(
    reader: Callable[[Attention], object],
) -> None:
    """As many lengths as heads would be taken for a mask for each head."""
    record = Attention(*torch.randn(3, 2, 3, 4), padding([1, 3]), on_masked_row="zero")
    with pytest.raises(ValueError, match=r"^mask: got the leading axes \(2, 1\)"):
        reader(record)


@pytest.mark.parametrize("reader", READERS)
def test_a_list_of_one_length_is_one_sequences_mask(reader: Callable[[Attention], object]) -> None:
    tensors = torch.randn(3, 2, 3, 4)
    listed = reader(Attention(*tensors, padding([2])))
    plain = reader(Attention(*tensors, padding(2)))
    if isinstance(listed, Tensor) and isinstance(plain, Tensor):
        assert torch.equal(listed, plain)


TABLE = torch.ones(2, 3, 4, dtype=torch.bool)
TABLE[1, [0, 2]] = False  # head 1 has no key for its rows 0 and 2


def with_mask(table: Tensor, on_masked_row: Any = "error") -> Attention:
    query, key = torch.randn(2, 3, 5), torch.randn(2, 4, 5)
    return Attention(query, key, key, custom(table), on_masked_row=on_masked_row)


def test_a_query_without_a_key_is_named_with_its_head() -> None:
    record = with_mask(TABLE)
    with pytest.raises(FullyMaskedRowError, match=r"^mask: .*query row 0, 2 in head 1,") as caught:
        attend(record.query, record.key, record.value, TABLE)
    assert caught.value.rows == {1: [0, 2]}
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_of_a_record_refuses_a_query_without_a_key(
    reader: Callable[[Attention], object],
) -> None:
    with pytest.raises(FullyMaskedRowError, match="query row 0, 2 in head 1,") as caught:
        reader(with_mask(TABLE))
    assert caught.value.rows == {1: [0, 2]}


def test_rows_that_have_keys_are_given_although_others_have_none() -> None:
    record = with_mask(TABLE)
    assert record.weights(heads=[0]).shape == (1, 3, 4)
    assert record.weights(heads=[1], rows=[1]).sum().item() == pytest.approx(1)
    with pytest.raises(FullyMaskedRowError, match="query row 2 in head 1,"):
        record.weights(heads=[1], rows=[1, 2])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (torch.zeros(2, 1, 4, dtype=torch.bool), "query row 0 in every head,"),
        (torch.zeros(1, 1, 4, dtype=torch.bool), "query row 0 in head 0,"),
        (torch.zeros(1, 12, 4, dtype=torch.bool), "query row 0, 1, 2, 3, 4, 5, 6, 7 … in head 0,"),
        (
            torch.tensor([[[False], [True]], [[True], [False]]]),
            "query row 0 in head 0,",  # head 1 lacks another row: "every head" would be wrong
        ),
    ],
)
def test_the_message_says_which_heads_and_the_first_rows(table: Tensor, words: str) -> None:
    tensors = torch.zeros(*table.shape[:2], 1), torch.zeros(table.shape[0], table.shape[2], 1)
    with pytest.raises(FullyMaskedRowError, match=re.escape(words)):
        attend(tensors[0], tensors[1], tensors[1], table)
    with pytest.raises(FullyMaskedRowError, match=re.escape(words)):
        Attention(tensors[0], tensors[1], tensors[1], custom(table)).weights(rows=slice(0, 99))


def test_a_causal_mask_with_more_queries_than_keys_has_rows_without_a_key() -> None:
    query, key = torch.zeros(2, 5, 1), torch.zeros(2, 3, 1)
    with pytest.raises(FullyMaskedRowError, match="query row 0, 1 in every head"):
        attend(query, key, key, causal())
    with pytest.raises(FullyMaskedRowError, match="query row 0, 1 in every head"):
        Attention(query, key, key, causal()).output()


def test_zero_gives_rows_of_zeros_and_flags_them() -> None:
    record = with_mask(TABLE, "zero")
    steps = record.steps()
    assert steps.masked_rows.tolist() == [[False] * 3, [True, False, True]]
    assert torch.equal(record.masked_rows(), steps.masked_rows)
    for weights in (steps.weights, record.weights(), record.weights(rows=slice(0, 3))):
        assert (weights[1, [0, 2]] == 0).all()
        torch.testing.assert_close(weights[0].sum(-1), torch.ones(3))
        assert weights[1, 1].sum().item() == pytest.approx(1)
    for output in (steps.output, record.output(), record.with_row_lse()[1]):
        assert (output[1, [0, 2]] == 0).all() and (output[0] != 0).all()


def test_a_sink_does_not_stand_in_for_a_key() -> None:
    record = with_mask(TABLE, "zero").replace(sinks=torch.tensor([0.5, 0.5]))
    kept, output = record.with_row_lse()
    assert (kept.weights()[1, [0, 2]] == 0).all() and (output[1, [0, 2]] == 0).all()
    with pytest.raises(FullyMaskedRowError):
        kept.replace(on_masked_row="error").weights(rows=[0])


@pytest.mark.parametrize(
    "buffer", [torch.empty(2, 3, 5), torch.empty(2, 3, 4, dtype=torch.float16), torch.empty(0)]
)
def test_a_buffer_that_does_not_fit_is_refused_and_not_resized(buffer: Tensor) -> None:
    record = with_mask(torch.ones(3, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"^weights_out: .*\(2, 3, 4\) and torch.float32"):
        record.weights_and_output(buffer)
