"""The picture of all heads: its bytes and the time to build it, against BertViz and CircuitsVis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks import peers
from benchmarks.report import Column, Row, Table
from benchmarks.timing import LostProcessError, Spread, Timed, alone, interleaved
from explorer.figures.grid import heads_grid

OURS = "ours"
MINILM = (6, 12)
SHAPES = (MINILM, (12, 12), (24, 16))
BYTE_GOALS = {((12, 12), 32): 0.2, ((12, 12), 128): 1.5}  # MB
AGAINST = {(MINILM, 32), (MINILM, 128), (MINILM, 256), ((12, 12), 32), ((12, 12), 128)}
AGAINST |= {((12, 12), 256)}
"""Shapes and lengths at which the peers build their page too."""
COLUMNS = (
    Column("size", "MB", 3),
    Column("size / ours", "×", 1),
    Column("built in", "ms", 0),
    Column("time / ours", "×", 1),
)

Weights = npt.NDArray[np.float32]
Shape = tuple[int, int]


def random_weights(n_layers: int, n_heads: int, n_tokens: int, seed: int = 0) -> Weights:
    """Weights of random queries and keys; heads differ in how sharp they are."""
    random = np.random.default_rng(seed)
    shape = (n_layers, n_heads, n_tokens, 64)
    query, key = (random.standard_normal(shape, dtype=np.float32) for _ in range(2))
    sharpness = random.uniform(0.5, 8, (n_layers, n_heads, 1, 1)).astype(np.float32)
    scores = query @ key.swapaxes(-1, -2) * (sharpness / 8)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    weights: Weights = exponentials / exponentials.sum(-1, keepdims=True)
    return weights


def minilm_weights(n_tokens: int) -> Weights:
    """MiniLM's own weights on a text of this many tokens."""
    from benchmarks.capture import stack
    from explorer.models import load

    found = stack(load("minilm", "cpu", "float32"), n_tokens)
    return np.stack([layer.weights().numpy() for layer in found.layers])


def figure_json(weights: Weights) -> str:
    """What the browser gets for our picture."""
    numbers = range(len(weights))
    figure = heads_grid(weights, layer_numbers=numbers, theme="light", selected=(0, 0))
    return str(figure.to_json())


def measure(
    shape: Shape, n_tokens: int, rounds: int, with_peers: bool
) -> tuple[dict[str, int], Timed, dict[str, str]]:
    """Bytes and times by tool, and why a peer was left out."""
    weights = minilm_weights(n_tokens) if shape == MINILM else random_weights(*shape, n_tokens)
    calls: dict[str, Callable[[], str]] = {OURS: partial(figure_json, weights)}
    lacking = peers.lack_of_memory(weights.size) if with_peers else None
    left_out = dict.fromkeys(peers.NAMES, lacking) if lacking else {}
    if with_peers and not lacking:
        calls |= {name: partial(peers.html, name, weights) for name in peers.NAMES}
    sizes = {name: len(call().encode()) for name, call in calls.items()}
    timed = interleaved(calls, rounds=rounds, warm_up=1)
    return sizes, timed, left_out


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    rows = []
    for shape in SHAPES[:2] if quick else SHAPES:
        for n_tokens in (32,) if quick else (32, 128, 256):
            if n_tokens == 256 and (shape, n_tokens) not in AGAINST:
                continue
            rounds = 3 if quick else {32: 9, 128: 5, 256: 3}[n_tokens]
            against = (shape, n_tokens) in AGAINST
            try:
                sizes, timed, left_out = alone(measure, shape, n_tokens, rounds, against)
            except LostProcessError:
                skipped.append(f"grid of {_named(shape)}, {n_tokens} tokens: out of memory")
                continue
            skipped += [
                f"{name}, {_named(shape)}, {n_tokens} tokens: {why}"
                for name, why in left_out.items()
            ]
            for name, size in sizes.items():
                goal = BYTE_GOALS.get((shape, n_tokens)) if name == OURS else None
                figures = (
                    Spread.exactly(size / 1e6),
                    Spread.exactly(size / sizes[OURS]),
                    timed.milliseconds(name),
                    timed.ratio(name, OURS),
                )
                labels = (_named(shape), str(n_tokens), name)
                rows.append(Row(labels, figures, (goal, None, None, None)))
    notes = (
        "Ours: the figure's JSON. The peers: HTML as text, without the scripts that it fetches. "
        "All are given the weights and every one of them.",
        "6×12 are MiniLM's weights; the others are of random queries and keys, which compress "
        "less well.",
    )
    labels = ("layers × heads", "tokens", "tool")
    return [Table("Picture of all heads: size and build time", labels, COLUMNS, rows, notes)]


def _named(shape: Shape) -> str:
    return f"{shape[0]}×{shape[1]}"
