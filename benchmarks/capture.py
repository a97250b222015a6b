"""A capture of MiniLM, against its plain forward pass and against eager with its weights."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle, islice

import torch
from transformers.utils import logging as transformers_logging

from benchmarks.report import Column, Row, Table
from benchmarks.timing import Timed, alone, interleaved
from explorer.capture import Stack, capture_inputs
from explorer.models import Encoded, LoadedModel, encode, load

transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]

LENGTHS = (32, 128, 512)
OURS, PLAIN, EAGER = "our capture", "plain forward (sdpa)", "eager with output_attentions"
GOALS = {
    (OURS, PLAIN): {128: 1.1, 512: 1.1},
    (OURS, EAGER): {512: 0.75},
}
COMPARED = ((OURS, PLAIN), (EAGER, PLAIN), (OURS, EAGER))
TOLERANCE = 1e-5
SPECIALS = 2  # [CLS] and [SEP]

# Each is one token of MiniLM's vocabulary.
WORDS = (
    "the river runs past old stone houses and a small garden where children play under tall green "
    "trees while birds sing in warm summer light before evening falls over quiet fields"
).split()


def words(n_tokens: int, shift: int = 0) -> str:
    """A text that MiniLM reads as this many tokens, its two special ones included."""
    return " ".join(islice(cycle(WORDS), shift, shift + n_tokens - SPECIALS))


def encoded(loaded: LoadedModel, n_tokens: int) -> Encoded:
    """The same, ready for the model."""
    found = encode(loaded, words(n_tokens))
    if len(found.tokens) != n_tokens:
        raise RuntimeError(f"{len(found.tokens)} tokens, not {n_tokens}: WORDS must be one each")
    return found


def stack(loaded: LoadedModel, n_tokens: int) -> Stack:
    """MiniLM's own attention on such a text."""
    ready = encoded(loaded, n_tokens)
    return capture_inputs(loaded.model, ready.inputs, [ready.tokens])[0].stacks["encoder"]


def contestants(n_tokens: int) -> dict[str, Callable[[], object]]:
    """The three ways, each with a model of its own: ours changes the attention of its model."""
    own, plain, eager = (load("minilm", "cpu", "float32") for _ in range(3))
    eager.model.set_attn_implementation("eager")
    ready = encoded(own, n_tokens)

    def ours() -> Stack:
        return capture_inputs(own.model, ready.inputs, [ready.tokens])[0].stacks["encoder"]

    def forward() -> object:
        with torch.inference_mode():
            return plain.model(**ready.inputs)

    def with_weights() -> tuple[torch.Tensor, ...]:
        with torch.inference_mode():
            given: tuple[torch.Tensor, ...]
            given = eager.model(**ready.inputs, output_attentions=True).attentions
        return given

    pairs = zip(ours().layers, with_weights(), strict=True)
    worst = max(float((layer.weights() - given[0]).abs().max()) for layer, given in pairs)
    if not worst <= TOLERANCE:
        raise RuntimeError(f"{OURS} differs from {EAGER} by {worst:.2g} in a weight")
    return {OURS: ours, PLAIN: forward, EAGER: with_weights}


def measure(lengths: tuple[int, ...], rounds: int, one_thread: bool) -> dict[int, Timed]:
    """The three ways at each length, by the clock of the thread setting."""
    if one_thread:
        torch.set_num_threads(1)
    clock = time.process_time if one_thread else time.perf_counter
    return {
        length: interleaved(contestants(length), rounds=rounds, clock=clock, at_least=0.03)
        for length in lengths
    }


def tables(quick: bool, skipped: list[str]) -> list[Table]:
    lengths = LENGTHS[:2] if quick else LENGTHS
    rounds = 5 if quick else 21
    both = [alone(measure, lengths, rounds, one_thread) for one_thread in (False, True)]
    rows = []
    for name, peer in COMPARED:
        for length in lengths:
            goal = GOALS.get((name, peer), {}).get(length)
            ratios = tuple(timed[length].ratio(name, peer) for timed in both)
            rows.append(Row((name, peer, str(length)), ratios, (goal, goal)))
    columns = (Column("all threads, wall clock", "×", 2), Column("one thread, CPU time", "×", 2))
    notes = (
        "Queries, keys, values and each row's log-sum-exp of all 6 layers of 12 heads are kept by "
        f"ours, all weights by eager. Text that is encoded already; {rounds} rounds.",
    )
    return [Table("Capture of MiniLM", ("contestant", "against", "tokens"), columns, rows, notes)]
