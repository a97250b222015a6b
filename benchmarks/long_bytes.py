"""All heads as bytes: every weight coded, against BertViz's and CircuitsVis's HTML."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from benchmarks import peers
from benchmarks.grid import MINILM, Weights, figure_json, minilm_weights, random_weights
from benchmarks.report import Column, Row, Table
from benchmarks.timing import LostProcessError, Spread, Timed, alone, interleaved

LENGTHS = (128, 512)
BEYOND = 1024  # a peer needs more memory than this machine may have
CODED, FIGURE = "ours, every weight", "ours, what Heads draws"
TOOLS = (peers.HEAD_VIEW, peers.CIRCUITSVIS)
GOALS = {512: 12.0}  # MB
COLUMNS = (
    Column("size", "MB", 2),
    Column("a weight", "bytes", 2),
    Column("size / ours", "×", 1),
    Column("built in", "s", 2),
    Column("time / ours", "×", 1),
)


def coded(weights: Weights) -> bytes:
    """Every weight as a byte that follows its square root, compressed."""
    return zlib.compress(np.rint(np.sqrt(weights) * 255).astype(np.uint8).tobytes(), 1)


def decoded(data: bytes, shape: tuple[int, ...]) -> Weights:
    """The weights again, each within 1/255 of what it was."""
    codes = np.frombuffer(zlib.decompress(data), np.uint8).reshape(shape)
    found: Weights = np.square(codes.astype(np.float32) / 255)
    return found


def measure(n_tokens: int, real: bool, rounds: int) -> tuple[dict[str, int], Timed, str | None]:
    """Bytes and times by tool, and why the peers were left out."""
    weights = minilm_weights(n_tokens) if real else random_weights(*MINILM, n_tokens)
    worst = float(np.abs(decoded(coded(weights), weights.shape) - weights).max())
    if not worst <= 1 / 255:
        raise RuntimeError(f"coded weights come back changed by {worst:.2g}")
    calls: dict[str, Callable[[], bytes]] = {
        CODED: lambda: coded(weights),
        FIGURE: lambda: figure_json(weights).encode(),
    }
    lacking = peers.lack_of_memory(weights.size)
    if lacking is None:
        calls |= {name: _page(name, weights) for name in TOOLS}
    sizes: dict[str, int] = {}

    def sized(name: str, call: Callable[[], bytes]) -> Callable[[], None]:
        def run() -> None:
            sizes[name] = len(call())  # one call gives time and size: a peer takes half a minute

        return run

    timed = interleaved(
        {name: sized(name, call) for name, call in calls.items()}, rounds=rounds, warm_up=0
    )
    return sizes, timed, lacking


def _page(name: str, weights: Weights) -> Callable[[], bytes]:
    return lambda: peers.html(name, weights).encode()


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    rows = []
    lengths = LENGTHS[:1] if quick else (*LENGTHS, BEYOND)
    # Past 512 tokens MiniLM has no positions.
    for n_tokens in lengths:
        real = n_tokens <= 512
        try:
            sizes, timed, lacking = alone(measure, n_tokens, real, 3 if n_tokens <= 128 else 1)
        except LostProcessError:
            skipped.append(f"all heads as bytes, {n_tokens} tokens: out of memory")
            continue
        n_weights = MINILM[0] * MINILM[1] * n_tokens**2
        for name in (CODED, FIGURE, *TOOLS):
            labels = (name, str(n_tokens))
            if name not in sizes:
                rows.append(Row(labels, (lacking or "", "", "", "", "")))
                continue
            goal = GOALS.get(n_tokens) if name == CODED else None
            figures = (
                Spread.exactly(sizes[name] / 1e6),
                Spread.exactly(sizes[name] / n_weights),
                Spread.exactly(sizes[name] / sizes[CODED]),
                Spread.of(timed.seconds[name]),
                timed.ratio(name, CODED),
            )
            rows.append(Row(labels, figures, (goal, None, None, None, None)))
    notes = (
        f"{MINILM[0]} layers of {MINILM[1]} heads: MiniLM's weights, at {BEYOND} tokens those of "
        "random queries and keys. Every weight: a byte that follows the square root, within 1/255, "
        "zlib level 1. What Heads draws: its figure's JSON, in which a pixel is the largest of its "
        "block past some 90 tokens. The peers: HTML as text. BertViz's model_view holds the same "
        "bytes as its head_view.",
    )
    return [Table("All heads as bytes", ("tool", "tokens"), COLUMNS, rows, notes)]
