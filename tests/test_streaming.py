"""Attention by blocks of rows: every branch against the reference, and no n × n table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from explorer import cores, streaming
from explorer.attention import Attention
from explorer.masks import Mask, causal, padding, prefix, sliding_window
from explorer.row_blocks import plan
from tests.reference import Example, examples, reference

ROOT = Path(__file__).resolve().parent.parent


THRESHOLDS = st.fixed_dictionaries(
    {
        "SAFE_EXPONENT": st.sampled_from([0.0, streaming.SAFE_EXPONENT]),  # 0: shift each row
        "BLOCK_ELEMENTS": st.sampled_from([1, streaming.BLOCK_ELEMENTS]),  # 1: blocks of 16 rows
        "BATCH_ELEMENTS": st.sampled_from([0, streaming.BATCH_ELEMENTS]),  # 0: a head a core
        "WHOLE_TABLE": st.sampled_from([0, streaming.WHOLE_TABLE]),  # 0: blocks for any mask
    }
)
"""Where the branches part: moved, so that short examples reach them all."""


@settings(max_examples=150)  # four branches, and each with every term
@given(examples(longest=40), THRESHOLDS)
def test_every_branch_equals_the_reference(example: Example, thresholds: dict[str, float]) -> None:
    query, key, value, mask, allowed, terms = example
    terms = {"scale": query.shape[-1] ** -0.5, **terms}
    shape = (query.shape[0], query.shape[1], key.shape[1])
    compute = torch.promote_types(query.dtype, torch.float32)
    buffer = torch.full(shape, torch.nan, dtype=compute)  # a reused buffer holds anything
    arguments = {"query": query, "key": key, "value": value, "mask": mask, **terms}
    with mock.patch.multiple(streaming, **thresholds):
        streamed = streaming.stream(**arguments)
        written = streaming.stream(**arguments, weights_out=buffer)
        weights, output = streaming.weights_and_output(**arguments)
        reused = streaming.weights_and_output(**arguments, weights_out=torch.full_like(buffer, 7))
    expected, tolerance = example.expected(), example.tolerance()
    for ours in (buffer, weights, reused[0]):
        np.testing.assert_allclose(ours, expected.weights, atol=tolerance, rtol=0)
        assert (ours.numpy()[~np.broadcast_to(allowed, shape)] == 0).all()
    for ours in (streamed.output, written.output, output, reused[1]):
        assert ours.dtype == value.dtype
        np.testing.assert_allclose(
            ours.double(), expected.output, atol=example.output_tolerance(), rtol=0
        )
    has_key = np.isfinite(expected.lse)
    np.testing.assert_allclose(
        streamed.lse.numpy()[has_key], expected.lse[has_key], atol=2 * tolerance, rtol=1e-6
    )
    if "sinks" not in terms:
        assert (streamed.lse.numpy()[~has_key] == -np.inf).all()


def normal(n_heads: int, n_q: int, n_k: int, d_k: int, std: float, d_v: int = 0) -> list[Tensor]:
    shapes = [(n_heads, n_q, d_k), (n_heads, n_k, d_k), (n_heads, n_k, d_v or d_k)]
    return [torch.randn(shape) * std for shape in shapes]


@pytest.mark.parametrize(
    "mask",
    [None, causal(), sliding_window(37), prefix(50), padding(400), causal() & padding(99, "left")],
    ids=lambda mask: mask.name if mask else "no mask",
)
@pytest.mark.parametrize("std", [0.5, 3.0])
def test_long_heads_one_by_one_equal_the_reference(mask: Mask | None, std: float) -> None:
    """701 × 613 divides by nothing; 3 heads of it are worked on core by core."""
    query, key, value = normal(3, 701, 613, 24, std, d_v=10)
    assert 3 * 701 * 613 > streaming.BATCH_ELEMENTS
    allowed = True if mask is None else mask.block(701, 613).numpy()
    expected = reference(query, key, value, allowed)
    record = Attention(query, key, value, mask, on_masked_row="zero")
    weights, output = record.weights_and_output()
    kept, fused = record.with_row_lse()
    np.testing.assert_allclose(weights, expected.weights, atol=2e-5, rtol=0)
    for ours in (output, fused, record.output()):
        np.testing.assert_allclose(ours, expected.output, atol=1e-4, rtol=0)
    np.testing.assert_allclose(kept.row_lse, expected.lse, atol=1e-4, rtol=1e-6)


@pytest.mark.parametrize(("std", "safe"), [(1.0, True), (4.0, False), (12.0, False)])
def test_the_weights_error_against_float64_is_below_one_in_a_hundred_thousand(
    std: float, safe: bool
) -> None:
    """Scores of this standard deviation; at 1 no row needs its maximum subtracted."""
    query, key, value = normal(4, 150, 130, 64, 1.0)
    query = query * std
    scale = 0.125
    factor = scale * streaming.LOG2E
    bound = streaming.largest_exponent(query, key, factor, None, None)
    assert bool((bound <= streaming.SAFE_EXPONENT).all()) is safe
    expected = reference(query, key, value)
    buffer = torch.empty(4, 150, 130)
    streamed = streaming.stream(query, key, value, scale=scale, weights_out=buffer)
    np.testing.assert_allclose(buffer, expected.weights, atol=1e-5, rtol=0)
    np.testing.assert_allclose(streamed.output, expected.output, atol=5e-5, rtol=0)
    whole, output = streaming.weights_and_output(query, key, value, scale=scale)
    np.testing.assert_allclose(whole, expected.weights, atol=1e-5, rtol=0)
    np.testing.assert_allclose(output, expected.output, atol=5e-5, rtol=0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_scores_of_a_hundred_thousand_give_finite_weights_that_sum_to_1(sign: float) -> None:
    query, key, value = normal(2, 33, 47, 8, 1.0)
    key[..., 0], query[..., 0] = 300.0, 1000.0 * sign
    buffer = torch.empty(2, 33, 47)
    streamed = streaming.stream(query, key, value, scale=1 / 3, weights_out=buffer)
    torch.testing.assert_close(buffer.sum(-1), torch.ones(2, 33))
    expected = reference(query, key, value, scale=1 / 3)
    assert abs(expected.scores).min() > 99_000
    np.testing.assert_allclose(buffer, expected.weights, atol=0.02)
    np.testing.assert_allclose(streamed.lse, expected.lse, rtol=1e-6)


def test_a_sink_far_above_the_scores_takes_nearly_all() -> None:
    query, key, value = normal(2, 5, 5, 4, 1.0)
    sinks = torch.tensor([200.0, -200.0])
    buffer = torch.empty(2, 5, 5)
    streamed = streaming.stream(query, key, value, scale=0.5, sinks=sinks, weights_out=buffer)
    assert (buffer[0] < 1e-30).all() and (streamed.output[0].abs() < 1e-30).all()
    torch.testing.assert_close(streamed.lse[0], torch.full((5,), 200.0))
    torch.testing.assert_close(buffer[1].sum(-1), torch.ones(5))


def test_blocks_leave_out_the_keys_that_no_row_of_them_may_use() -> None:
    like = torch.zeros(1, 1000, 1)
    cases = {
        causal(): [(0, 256), (0, 512), (0, 768), (0, 1000)],
        sliding_window(10): [(0, 256), (247, 512), (503, 768), (759, 1000)],
        padding(100): [(0, 100)] * 4,
        padding(100, "left"): [(900, 1000)] * 4,
        ~padding(900): [(900, 1000)] * 4,
        Mask("by hand", lambda q, k, n_q, n_k: (k >= 300) & (k < 400) & (q >= 0)): [(300, 400)] * 4,
    }
    for mask, expected in cases.items():
        blocks = plan(mask, 1000, 1000, 256, like)
        assert [(b.keys.start, b.keys.stop) for b in blocks] == expected, mask.name
        if "padding" in mask.name:
            assert all(block.penalty is None for block in blocks)


def test_a_block_of_rows_none_of_which_has_a_key_gives_zeros() -> None:
    """600 queries on 100 keys, aligned at the end: the first 500 rows have no key at all."""
    query, key, value = normal(2, 600, 100, 4, 1.0)
    buffer = torch.full((2, 600, 100), torch.nan)
    streamed = streaming.stream(query, key, value, scale=0.5, mask=causal(), weights_out=buffer)
    assert (buffer[:, :500] == 0).all() and (streamed.output[:, :500] == 0).all()
    assert (streamed.lse[:, :500] == -torch.inf).all()
    torch.testing.assert_close(buffer[:, 500:].sum(-1), torch.ones(2, 100))


def test_the_buffer_is_the_result() -> None:
    query, key, value = normal(2, 20, 20, 4, 1.0)
    buffer = torch.full((2, 20, 20), torch.nan)
    for mask in (None, causal()):
        weights, _ = Attention(query, key, value, mask).weights_and_output(buffer)
        assert weights.data_ptr() == buffer.data_ptr()
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 20))


def test_the_number_of_threads_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of torch and of the maths library below it, although the workers have one each."""
    monkeypatch.setattr(cores, "_pool", None)  # as in a fresh process
    torch.set_num_threads(2)
    before = torch.__config__.parallel_info()
    query, key, value = normal(3, 700, 700, 4, 1.0)
    streaming.stream(query, key, value, scale=0.5)
    assert torch.__config__.parallel_info() == before


def test_inference_mode_is_that_of_the_caller() -> None:
    """Tensors made under inference mode can't be written outside it: the workers follow."""
    query, key, value = normal(3, 700, 700, 4, 1.0)
    expected = streaming.stream(query, key, value, scale=0.5).output
    with torch.inference_mode():
        output = streaming.stream(query, key, value, scale=0.5).output
    torch.testing.assert_close(output.clone(), expected)


def test_an_error_in_a_head_reaches_the_caller() -> None:
    query, key, value = normal(3, 700, 700, 4, 1.0)
    with pytest.raises(RuntimeError):
        streaming.stream(query, key, value, scale=0.5, bias=torch.zeros(3, 700, 5))


MEMORY = """
import resource, sys
import torch
from explorer import streaming
from explorer.masks import causal, padding, sliding_window

torch.set_num_threads(2)

def peak():
    kilo = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilo * (1 if sys.platform == "darwin" else 1024)

def run(n, weights_out=None):
    query, key, value = torch.randn(3, 4, n, 8)
    left = padding(n // 2, "left")
    for mask in (None, causal(), sliding_window(100), left, causal() & left, ~padding(n // 2)):
        streaming.stream(query, key, value, scale=0.3, mask=mask, weights_out=weights_out)

run(600)
held, start = [], peak()
while peak() == start:  # imports reached a peak of their own: nothing may hide below it
    held.append(torch.ones(1 << 19))
before = peak()
run(4096)
print(peak() - before)
before = peak()
run(4096, torch.empty(4, 4096, 4096))
print(peak() - before)
"""


def test_the_peak_memory_at_4096_tokens_is_far_below_one_table() -> None:
    """One head's table in float32 would be 64 MiB, four heads' 256 MiB."""
    command = [sys.executable, "-c", MEMORY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    without, with_table = map(int, done.stdout.split())
    assert without < 40 * 2**20
    assert with_table > 200 * 2**20  # so the measure does see a table


def test_workers_that_stream_do_not_wait_for_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BATCH_ELEMENTS", 0)  # all heads one by one
    query, key, value = torch.randn(3, 2, 40, 8)
    expected = streaming.stream(query, key, value, scale=1.0).output

    def job() -> Tensor:
        return streaming.stream(query, key, value, scale=1.0).output

    jobs = [cores.workers().submit(job) for _ in range(4 * torch.get_num_threads())]
    for each in jobs:
        torch.testing.assert_close(each.result(timeout=60), expected)


@pytest.mark.parametrize("name", ["query", "key"])
def test_a_number_that_is_none_reaches_the_output_and_is_not_made_a_zero(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = {
        each: torch.randn(2, 5, 4, generator=generator) for each in ("query", "key", "value")
    }
    tensors[name][0, 2, 1] = torch.nan
    record = Attention(**tensors)
    kept, output = record.with_row_lse()
    expected = torch.softmax(record.scores(), -1) @ record.value
    assert torch.equal(output.isnan(), expected.isnan())
    assert torch.equal(kept.row_lse.isnan(), expected.isnan().any(-1))  # type: ignore[union-attr]
    assert output[0].isnan().any() and not output[1].isnan().any()
