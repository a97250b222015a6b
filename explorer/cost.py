"""What attention costs, measured: time and memory of one layer over the length of the text.

Each measurement runs in a process of its own, forked from one that has torch loaded: its peak of
memory is its own, and stopping, or running out of memory, takes nothing else along. Run as
`python -m explorer.cost` this file is that process.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import psutil
import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.streaming import stream

FLOAT = 4
"""Bytes of one number in float32."""
LONGEST_SECONDS = 4.0
"""A method whose next length would take longer stops before it."""
SHARE_OF_MEMORY = 0.5
"""Of the machine's free memory; a table that needs more is not made."""


def full_table(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The formula as it is written: the whole n × n table, its softmax, times the values."""
    scores = query @ key.transpose(1, 2) * query.shape[-1] ** -0.5  # (h, n, n)
    return torch.softmax(scores, -1) @ value


def blocks_of_rows(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Ours: a block of rows at a time, so that no n × n table exists."""
    return stream(query, key, value, scale=query.shape[-1] ** -0.5).output


def fused(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """torch's fused kernel, which gives the output and never the weights."""
    return F.scaled_dot_product_attention(query[None], key[None], value[None])[0]


METHODS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "Full table": full_table,
    "Blocks of rows (ours)": blocks_of_rows,
    "Fused kernel (torch)": fused,
}


@dataclass(frozen=True)
class Measured:
    """One method at one length."""

    method: str
    length: int
    seconds: float
    """The fastest of some runs: other programs can only slow one down."""
    extra_bytes: int
    """By how much the process's memory peak grew, the output included, the input not."""
    skipped: str = ""
    """Why it was not run; seconds and extra_bytes are then nan and 0."""


def measure(method: str, length: int, n_heads: int, d_k: int) -> Measured:
    """Runs one method in this process. The memory is right in a fresh process only."""
    generator = torch.Generator().manual_seed(length)
    query, key, value = (torch.randn(n_heads, length, d_k, generator=generator) for _ in range(3))
    run = METHODS[method]
    with torch.no_grad():
        run(query[:, :16], key[:, :16], value[:, :16])  # what happens once only, threads started
        before, fastest, spent = _peak_bytes(), math.inf, 0.0
        for _ in range(40):
            start = time.perf_counter()
            run(query, key, value)
            took = time.perf_counter() - start
            fastest, spent = min(fastest, took), spent + took
            if spent > 0.3:
                break
    return Measured(method, length, fastest, max(0, _peak_bytes() - before))


def _peak_bytes() -> int:
    """The largest resident memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # kilobytes on Linux


def table_bytes(length: int, n_heads: int) -> int:
    """Memory of one layer's weights: n² numbers for each head."""
    return length * length * n_heads * FLOAT


def measurements(
    lengths: Sequence[int], n_heads: int, d_k: int, methods: Sequence[str] | None = None
) -> Generator[Measured, None, None]:
    """Measures each method at each length, shortest first; closing the iterator ends the work.

    What would not fit into half of the free memory, or would take more than some seconds, is
    skipped with the reason. Raises RuntimeError where the measuring process can't be started.
    """
    methods = list(METHODS) if methods is None else methods
    worker = subprocess.Popen(
        [sys.executable, "-m", "explorer.cost"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin is not None and worker.stdout is not None  # both are pipes
    last: dict[str, Measured] = {}
    try:
        for length in lengths:
            for method in methods:
                reason = _too_much(method, length, n_heads, last.get(method))
                if reason:
                    done = Measured(method, length, math.nan, 0, reason)
                else:
                    request = {"method": method, "length": length, "n_heads": n_heads, "d_k": d_k}
                    worker.stdin.write(json.dumps(request) + "\n")
                    worker.stdin.flush()
                    answer = worker.stdout.readline()
                    if not answer:
                        raise RuntimeError(
                            "The measuring process ended by itself, perhaps for want of memory. "
                            "Choose a shorter length."
                        )
                    done = Measured(**json.loads(answer))
                last[method] = done
                yield done
    finally:
        worker.kill()
        worker.wait()
        worker.stdin.close()
        worker.stdout.close()


def _too_much(method: str, length: int, n_heads: int, before: Measured | None) -> str:
    """Why a measurement should not be made; empty where it may."""
    if before is not None and before.skipped:
        return before.skipped
    free = psutil.virtual_memory().available
    if method == "Full table" and 2 * table_bytes(length, n_heads) > SHARE_OF_MEMORY * free:
        return f"its table needs {in_bytes(2 * table_bytes(length, n_heads))} of memory"
    if before is not None:
        expected = before.seconds * (length / before.length) ** 2
        if expected > LONGEST_SECONDS:
            return f"it would take about {expected:.0f} seconds"
    return ""


def slope(measured: Sequence[Measured]) -> float | None:
    """The exponent p of time ≈ c · n^p, fitted to the longer half; None for fewer than 3 points.

    At short lengths the fixed cost of a call hides the growth.
    """
    points = [(m.length, m.seconds) for m in measured if not m.skipped]
    points = points[-max(3, len(points) // 2) :]
    if len(points) < 3:
        return None
    n, seconds = np.log(np.array(points)).T
    return float(np.polyfit(n, seconds, 1)[0])


def seconds_at(length: int, measured: Sequence[Measured]) -> float | None:
    """The time at another length, from the longest measured one by n²; None without any."""
    points = [m for m in measured if not m.skipped]
    if not points:
        return None
    longest = max(points, key=lambda m: m.length)
    return longest.seconds * (length / longest.length) ** 2


def in_count(count: int | float) -> str:
    """A large number in words: "4.0 million", "12 trillion"."""
    for name, size in (("trillion", 1e12), ("billion", 1e9), ("million", 1e6)):
        if count >= size:
            return f"{count / size:,.{1 if count < 10 * size else 0}f} {name}"
    return f"{count:,.0f}"


def in_bytes(count: int | float) -> str:
    """Bytes as people write them: "640 KB", "1.5 GB" (powers of 1000)."""
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if count < 999.5 or unit == "TB":
            digits = 0 if unit == "bytes" or count >= 99.5 else 1
            return f"{count:,.{digits}f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def in_time(seconds: int | float) -> str:
    """A duration as people say it: "12 ms", "3.4 seconds", "2.0 hours"."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.2g} ms" if seconds < 0.0995 else f"{seconds * 1000:.0f} ms"
    for unit, size, next_size in (
        ("seconds", 1, 100),
        ("minutes", 60, 5400),
        ("hours", 3600, 129_600),
        ("days", 86_400, math.inf),
    ):
        if seconds < next_size:
            return f"{seconds / size:,.1f} {unit}"
    raise AssertionError("unreachable")


PICTURES = (
    (3e6, "a photograph"),
    (700e6, "a film in ordinary quality"),
    (16e9, "the whole memory of a laptop"),
    (80e9, "the whole memory of a data-centre GPU"),
    (1e12, "a laptop's disk"),
    (80e9 * 72, "the memory of a rack of 72 data-centre GPUs"),
)


def as_picture(count: int | float) -> str:
    """An amount of memory in things a person knows: "5 × a photograph"."""
    size, thing = PICTURES[0]
    if count < size / 2:
        return f"less than {thing}"
    for bigger, other in PICTURES:
        if count >= bigger:
            size, thing = bigger, other
    times = count / size
    return thing if times < 1.5 else f"{times:,.0f} × {thing}"


def _serve() -> None:
    """Answers requests, a line each, every one in a fork of its own."""
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            answer = json.dumps(asdict(measure(**json.loads(line))))
            os.write(write, answer.encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        if not answer:
            return  # the child was ended, by the system for its memory or by a person
        print(answer, flush=True)


if __name__ == "__main__":
    _serve()
