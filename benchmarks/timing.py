"""Contestants measured in turn, and processes of their own to measure in."""

from __future__ import annotations

import gc
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

Clock = Callable[[], float]
Given = ParamSpec("Given")
Result = TypeVar("Result")


class LostProcessError(RuntimeError):
    """The process that measured ended without an answer, as for want of memory."""


@dataclass(frozen=True)
class Spread:
    """The median of several measurements, and their quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        if len(values) == 1:
            return cls.exactly(values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    @classmethod
    def exactly(cls, value: float) -> Spread:
        """A number that does not vary, such as a count of bytes."""
        return cls(value, value, value)


@dataclass(frozen=True)
class Timed:
    """Seconds a call, one for each round, by contestant."""

    seconds: Mapping[str, Sequence[float]]

    def ratio(self, contestant: str, peer: str) -> Spread:
        """The contestant's time as a multiple of the peer's, compared round by round."""
        pairs = zip(self.seconds[contestant], self.seconds[peer], strict=True)
        return Spread.of([own / other for own, other in pairs])

    def seconds_of(self, contestant: str) -> Spread:
        return Spread.of(self.seconds[contestant])

    def milliseconds(self, contestant: str) -> Spread:
        return Spread.of([1000 * second for second in self.seconds[contestant]])


def interleaved(
    contestants: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warm_up: int = 2,
    clock: Clock = time.perf_counter,
    at_least: float = 0.01,
) -> Timed:
    """Runs A B C A B C … with the garbage collector off, so that all meet the same conditions.

    In one turn a contestant is called until about `at_least` seconds have passed by the clock,
    the same number of times in every round. With `warm_up=0` each is called once in a turn and
    never before: for calls that take long, of a kind that has been called already.
    """
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        once = dict.fromkeys(contestants, at_least)
        for _ in range(warm_up):
            once = {name: _timed(call, 1, clock) for name, call in contestants.items()}
        calls = {name: math.ceil(at_least / max(took, 1e-6)) for name, took in once.items()}
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(rounds):
            for name, call in contestants.items():
                seconds[name].append(_timed(call, calls[name], clock))
    finally:
        if collecting:
            gc.enable()
    return Timed(seconds)


def _timed(call: Callable[[], object], times: int, clock: Clock) -> float:
    start = clock()
    for _ in range(times):
        call()
    return (clock() - start) / times


def alone(function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """What the function gives in a fresh process: its own threads, its own memory.

    Raises LostProcessError where that process is killed.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as process:
        try:
            return process.submit(function, *args, **kwargs).result()
        except BrokenProcessPool as error:
            raise LostProcessError(f"{function.__name__} was ended from outside") from error
