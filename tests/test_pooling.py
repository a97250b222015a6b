"""Maps of long texts: every bin and number against the whole table in float64, by NumPy."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.attention import Attention, FullyMaskedRowError
from explorer.maps import Overview, edges, overview, pooled, window, zoomed
from explorer.masks import Mask, causal, custom, padding, prefix, sliding_window
from explorer.metrics import QUICK, layer_metrics, marks_of
from explorer.pooled_pass import Sizes
from explorer.stacks import GivenWeights
from explorer.tokens import Tokens

MASKS = {
    "none": None,
    "causal": causal(),
    "window": sliding_window(9),
    "prefix": prefix(5),
    "window and padding": sliding_window(20) & padding(30),
    "not causal": ~causal(),
    "causal or first keys": causal() | padding(4),
}


def record(n_q: int, n_k: int, std: float = 1.0, seed: int = 0, **options: Any) -> Attention:
    """4 heads on 2 key/value heads of size 16; scores of about this deviation."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (
        torch.randn(heads, n, 16, generator=generator)
        for heads, n in ((4, n_q), (2, n_k), (2, n_k))
    )
    return Attention(q * std, k, v, on_masked_row="zero", **options)


def whole(attention: Attention) -> tuple[np.ndarray, np.ndarray]:
    """All weights in float64, and which the mask allows."""
    q, k = attention.query.double().numpy(), attention.key.double().numpy()
    scores = q @ np.repeat(k, 2, 0).swapaxes(1, 2) * attention.scale
    if attention.softcap is not None:
        scores = attention.softcap * np.tanh(scores / attention.softcap)
    if attention.bias is not None:
        scores = scores + attention.bias.double().numpy()
    allowed = np.broadcast_to(attention.allowed().numpy(), scores.shape)
    top = np.where(allowed, scores, -np.inf).max(-1, keepdims=True)
    parts = np.where(allowed, np.exp(scores - np.where(np.isfinite(top), top, 0)), 0)
    total = parts.sum(-1, keepdims=True)
    if attention.sinks is not None:
        total = total + np.exp(attention.sinks.double().numpy()[:, None, None] - top)
    return np.divide(parts, total, out=np.zeros_like(parts), where=total > 0), allowed


def binned(table: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(mean, largest) from np.array_split, the longest way."""
    rows, keys = (np.array_split(np.arange(n), min(size, n)) for n in table.shape[1:])
    mean, largest = (np.zeros((len(table), len(rows), len(keys))) for _ in range(2))
    for i, r in enumerate(rows):
        for j, k in enumerate(keys):
            part = table[:, r[0] : r[-1] + 1, k[0] : k[-1] + 1]
            mean[:, i, j], largest[:, i, j] = part.sum(2).mean(1), part.max((1, 2))
    return mean, largest


def assert_picture_is_right(found: Overview, attention: Attention, size: int) -> None:
    weights, allowed = whole(attention)
    mean, largest = binned(weights, size)
    picture = found.picture
    np.testing.assert_allclose(picture.mean, mean, atol=1e-5, rtol=0)
    np.testing.assert_allclose(picture.largest, largest, atol=1e-5, rtol=0)
    any_allowed = binned(allowed.astype(float), size)[1] > 0
    assert (np.broadcast_to(picture.forbidden.numpy(), any_allowed.shape) == ~any_allowed).all()
    assert picture.rows[-1] == attention.query_length
    assert np.diff(picture.keys).max() - np.diff(picture.keys).min() <= 1


@pytest.mark.parametrize("length", [1, 2, 5, 7, 256, 1000])
@pytest.mark.parametrize("size", [1, 3, 256])
def test_the_borders_of_bins_are_those_of_array_split(length: int, size: int) -> None:
    parts = np.array_split(np.arange(length), min(size, length))
    assert edges(length, size) == tuple([*(int(part[0]) for part in parts), length])


@settings(deadline=None, max_examples=60)
@given(
    n_q=st.integers(1, 75),
    n_k=st.integers(30, 75),
    size=st.integers(1, 40),
    mask=st.sampled_from(list(MASKS)),
    std=st.sampled_from([1.0, 4.0, 12.0]),
    tile=st.sampled_from([(512, 1024, 1), (8, 16, 1), (5, 7, 3)]),
    seed=st.integers(0, 3),
)
def test_every_bin_and_every_number_is_that_of_the_whole_table(
    n_q: int, n_k: int, size: int, mask: str, std: float, tile: tuple[int, int, int], seed: int
) -> None:
    """Also where a bin is cut into several tiles, as those of very long texts are."""
    attention = record(n_q, n_k, std, seed, mask=MASKS[mask])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("explorer.pooled_pass.sizes_for", lambda *_: Sizes(*tile))
        found = overview(attention, size)
    assert_picture_is_right(found, attention, size)
    assert_numbers_are_right(found, attention)


def assert_numbers_are_right(found: Overview, attention: Attention) -> None:
    weights, allowed = whole(attention)
    n_q, n_k = weights.shape[1:]
    ahead = np.arange(n_k) - (np.arange(n_q) + n_k - n_q)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(weights > 0, weights * np.log(weights), 0).sum(-1)
        share = np.where(allowed.sum(-1) > 1, entropy / np.log(allowed.sum(-1)), np.nan)
    expected = {
        "entropy": entropy,
        "entropy_share": share,
        "distance": (weights * np.abs(ahead)).sum(-1),
        "reach_back": (weights * np.maximum(-ahead, 0)).sum(-1),
        "reach_ahead": (weights * np.maximum(ahead, 0)).sum(-1),
        "largest_weight": weights.max(-1),
        "first": weights[..., 0],
        "sink": 1 - weights.sum(-1),
    }
    for name, step in (("self", 0), ("previous", -1), ("next", 1)):
        cells = ahead == step
        there = cells.any(-1)
        expected[name] = np.where(there, np.where(cells, weights, 0).sum(-1), np.nan)
    dead = ~allowed.any(-1)
    for name, values in expected.items():
        values = np.where(dead, np.nan, values)
        # Nats from float32 scores of 40, and places of up to 75 times a weight's rounding.
        np.testing.assert_allclose(found.per_query[name], values, atol=6e-5, err_msg=name)


@pytest.mark.parametrize(
    "options",
    [
        {"softcap": 5.0},
        {"bias": torch.randn(4, 70, 70, generator=torch.Generator().manual_seed(1))},
        {"bias": torch.randn(1, 1, 70, generator=torch.Generator().manual_seed(1))},
        {"sinks": torch.tensor([0.5, -30.0, 30.0, 2.0])},
        {"scale": 1.0},
        {"mask": custom(torch.rand(4, 70, 70, generator=torch.Generator().manual_seed(1)) > 0.5)},
        {"mask": custom(torch.rand(70, 70, generator=torch.Generator().manual_seed(1)) > 0.98)},
    ],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("size", [70, 16, 3])
def test_every_term_of_real_models_is_in_the_map(options: dict[str, Any], size: int) -> None:
    attention = record(70, 70, 2.0, **options)
    found = overview(attention, size)
    assert_picture_is_right(found, attention, size)
    assert_numbers_are_right(found, attention)


@pytest.mark.parametrize("std", [1.0, 4.0, 12.0])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_at_two_thousand_tokens_no_weight_is_off_by_a_hundred_thousandth(
    std: float, mask: str
) -> None:
    attention = record(2003, 2003, std, mask=MASKS[mask])
    found = overview(attention, 256)
    weights, _ = whole(attention)
    starts = list(edges(2003, 256)[:-1])
    mean = np.add.reduceat(np.add.reduceat(weights, starts, 1), starts, 2)
    mean /= np.diff(edges(2003, 256))[:, None]
    largest = np.maximum.reduceat(np.maximum.reduceat(weights, starts, 1), starts, 2)
    np.testing.assert_allclose(found.picture.mean, mean, atol=1e-5, rtol=0)
    np.testing.assert_allclose(found.picture.largest, largest, atol=1e-5, rtol=0)
    np.testing.assert_allclose(found.picture.mean.sum(-1), 1, atol=1e-5, rtol=0)
    part = window(found.attention, (1000, 1128), (900, 1028))
    np.testing.assert_allclose(part, weights[:, 1000:1128, 900:1028], atol=1e-5, rtol=0)


TEXT = "the cat saw the dog and the cat ran , the dog saw the cat . a b c a b c".split()


def text_record(mask: Mask | None, n_q: int = len(TEXT)) -> tuple[Attention, Tokens]:
    return record(n_q, len(TEXT), 1.5, mask=mask), Tokens.plain(TEXT)


@pytest.mark.parametrize("mask", ["none", "causal", "window", "not causal"])
@pytest.mark.parametrize("cells", [1 << 19, 100, 1])
def test_the_means_are_those_that_rows_of_weights_give(
    mask: str, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where frequent tokens are looked at in parts, as in very long texts."""
    monkeypatch.setattr("explorer.row_numbers.CELLS", cells)
    attention, tokens = text_record(MASKS[mask])
    marks = marks_of(tokens, tokens)
    found = overview(attention, 8, marks=marks).head_metrics()
    expected = layer_metrics(attention, names=QUICK, marks=marks)
    assert list(found) == list(QUICK)
    for name in QUICK:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5, err_msg=name)
    assert not found["same"].isnan().any() and not found["punctuation"].isnan().any()


def test_a_layer_of_weights_alone_has_the_same_overview() -> None:
    attention, tokens = text_record(causal())
    marks = marks_of(tokens, tokens)
    ours = overview(attention, 8, marks=marks)
    given_weights = overview(GivenWeights(attention.weights()), 8, marks=marks)
    np.testing.assert_allclose(given_weights.picture.mean, ours.picture.mean, atol=1e-6)
    np.testing.assert_allclose(given_weights.picture.largest, ours.picture.largest, atol=1e-6)
    assert torch.equal(given_weights.picture.forbidden, ours.picture.forbidden)
    for name in QUICK:
        a, b = given_weights.per_query[name], ours.per_query[name]
        np.testing.assert_allclose(a, b, atol=1e-5, err_msg=name)


def test_numbers_of_one_sequence_are_left_out_between_two() -> None:
    attention, tokens = text_record(None)
    marks = marks_of(tokens, tokens)
    found = overview(attention, 8, marks=marks, same_sequence=False).per_query
    assert found["distance"].isnan().all() and found["induction"].isnan().all()
    assert not found["entropy"].isnan().any() and not found["punctuation"].isnan().any()


def test_padded_queries_do_not_count() -> None:
    attention, _ = text_record(None)
    padded = torch.arange(len(TEXT)) >= 10
    found = overview(attention, 8)
    expected = found.per_query["entropy"][:, :10].double().mean(-1)
    torch.testing.assert_close(found.head_metrics(padded)["entropy"], expected)


# Zoom


@settings(deadline=None, max_examples=40)
@given(data=st.data(), size=st.sampled_from([1, 4, 20, 100]), kept=st.booleans())
def test_a_zoom_is_exact_at_every_level(data: st.DataObject, size: int, kept: bool) -> None:
    mask = MASKS[data.draw(st.sampled_from(["none", "causal", "window"]))]
    std = data.draw(st.sampled_from([1.0, 12.0]))
    attention = record(60, 60, std, mask=mask, sinks=torch.tensor([0.0, 1.0, -1.0, 9.0]))
    r0, k0 = data.draw(st.integers(0, 59)), data.draw(st.integers(0, 59))
    r1, k1 = data.draw(st.integers(r0 + 1, 60)), data.draw(st.integers(k0 + 1, 60))
    heads = data.draw(st.sampled_from([None, [2], [3, 0]]))
    asked = overview(attention).attention if kept else attention
    found = zoomed(asked, (r0, r1), (k0, k1), size, heads=heads)
    weights, allowed = whole(attention)
    chosen = [0, 1, 2, 3] if heads is None else heads
    mean, largest = binned(weights[chosen, r0:r1, k0:k1], size)
    np.testing.assert_allclose(found.mean, mean, atol=1e-5, rtol=0)
    np.testing.assert_allclose(found.largest, largest, atol=1e-5, rtol=0)
    any_allowed = binned(allowed[chosen, r0:r1, k0:k1].astype(float), size)[1] > 0
    barred = np.broadcast_to(found.forbidden.numpy(), any_allowed.shape)
    assert (barred == ~any_allowed).all()
    assert (found.rows[0], found.rows[-1]) == (r0, r1)
    assert (found.keys[0], found.keys[-1]) == (k0, k1)


def test_a_window_without_kept_sums_makes_no_row_of_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attention = record(300, 300)
    expected = whole(attention)[0][:, 100:110, 20:25]
    for name in ("scores", "weights", "allowed"):
        monkeypatch.setattr(Attention, name, lambda *_: pytest.fail("a row was made"))
    np.testing.assert_allclose(window(attention, (100, 110), (20, 25)), expected, atol=1e-5)


# What may go wrong


def test_a_row_without_a_key_is_refused_where_the_record_says_so() -> None:
    barred = torch.ones(600, 600, dtype=torch.bool)
    barred[599] = False
    attention = record(600, 600, mask=custom(barred)).replace(on_masked_row="error")
    with pytest.raises(FullyMaskedRowError, match="query row 599 in every head"):
        pooled(attention, 64)


def test_what_is_not_a_number_shows_in_its_bins() -> None:
    attention = record(600, 600, mask=causal())
    attention.key[0, 300, 0] = torch.nan  # the key/value head of heads 0 and 1
    found = overview(attention, 64)
    row_bin = np.searchsorted(edges(600, 64), 300, "right") - 1
    assert not found.picture.mean[:2, :row_bin].isnan().any()
    assert found.picture.mean[:2, row_bin:, :row_bin].isnan().all()
    assert not found.picture.mean[2:].isnan().any()


def test_a_forbidden_key_that_is_not_a_number_spoils_no_row_that_may_not_use_it() -> None:
    attention, tokens = text_record(causal())
    last = max(at for at, word in enumerate(TEXT) if word == "cat")
    marks = marks_of(tokens, tokens)
    expected = overview(attention, 8, marks=marks).per_query
    attention.key[0, last] = torch.nan
    found = overview(attention, 8, marks=marks).per_query
    for name in QUICK:
        a, b = found[name][:2, :last], expected[name][:2, :last]
        np.testing.assert_allclose(a, b, atol=1e-6, err_msg=name)
    assert found["same"][:2, last].isnan().all() and not found["same"][2:, last].isnan().any()


def test_progress_runs_from_little_to_all_in_the_callers_thread() -> None:
    shares: list[float] = []
    threads = set()

    def progress(share: float) -> None:
        shares.append(share)
        threads.add(threading.current_thread())

    overview(record(2000, 2000), 64, progress=progress)
    assert len(shares) >= 4
    assert shares == sorted(shares) and shares[0] < 0.5 and shares[-1] == 1
    assert threads == {threading.current_thread()}


def test_what_progress_raises_ends_the_pass_and_leaves_no_work_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from explorer import pooling

    began = []
    own = pooling._work

    def work(self: Any, block: Any) -> Any:
        began.append(block)
        return own(self, block)

    monkeypatch.setattr(pooling, "_work", work)

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        overview(record(6000, 6000), 64, progress=stop)
    at_the_end = len(began)
    time.sleep(0.2)
    assert len(began) == at_the_end < 12  # a block is about 512 rows


def test_half_precision_is_computed_in_float32() -> None:
    attention = record(300, 300)
    parts = [t.bfloat16() for t in (attention.query, attention.key, attention.value)]
    half, same = Attention(*parts), Attention(*(part.float() for part in parts))
    np.testing.assert_allclose(
        overview(half, 32).picture.mean, binned(whole(same)[0], 32)[0], atol=1e-6
    )
