"""Two tasks that attention must solve by looking back, drawn at random from a seed.

*Repeated segment.* Each row repeats a segment of its own random length: the next symbol is the one
that followed the present one before. A model that reads positions alone can't know the length.
*Associative recall.* Pairs of a key and a value in one place each, then keys without their value:
the answer is the value that stood with the key.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

SYMBOLS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+*"
"""What a person reads for each symbol; a task has at most this many."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a task: what is read, what should be said, where it counts, where to look."""

    ids: Int[Tensor, "rows length fields"]
    """What stands at each place: one symbol, or in pairs a key and a value."""
    targets: Int[Tensor, "rows length"]
    """What should be said at each place."""
    counts: Bool[Tensor, "rows length"]
    """The places that can be answered; the others are noise and left out of every number."""
    aim: Bool[Tensor, "rows length length"]
    """For each query the keys that hold its answer: where an induction head looks."""


@dataclass(frozen=True)
class RepeatedSegment:
    """Rows of `length` symbols that repeat a segment, each of its own length in `periods`."""

    length: int = 48
    vocabulary: int = 32
    """Symbols there are; a segment has each at most once, so a perfect answer exists."""

    def __post_init__(self) -> None:
        if self.length < 8 or self.length % 4:
            raise ValueError(f"length: got {self.length}; it must be a multiple of 4, at least 8.")
        _check_vocabulary(self.vocabulary, self.length // 2)

    @property
    def periods(self) -> tuple[int, int]:
        """The shortest and longest segment: a quarter and half of a row."""
        return self.length // 4, self.length // 2

    @property
    def answers(self) -> int:
        """How many different answers there are."""
        return self.vocabulary

    @property
    def fields(self) -> int:
        """How many symbols stand at one place."""
        return 1

    def draw(self, rows: int, generator: torch.Generator) -> Batch:
        """Some rows; the generator alone decides them."""
        shortest, longest = self.periods
        periods = torch.randint(shortest, longest + 1, (rows, 1), generator=generator)
        order = torch.rand(rows, self.vocabulary, generator=generator).argsort(-1)
        place = torch.arange(self.length + 1).expand(rows, -1)
        text = order.gather(1, place % periods)  # (rows, length + 1)
        read = text[:, :-1]
        places = torch.arange(self.length)
        before = torch.nn.functional.pad(read[:, :-1], (1, 0), value=-1)  # what stood one earlier
        aim = (before[:, None, :] == read[:, :, None]) & (places[None, :] <= places[:, None])
        return Batch(read[..., None], text[:, 1:], places[None] >= periods, aim)

    def labels(self, ids: Int[Tensor, "length fields"]) -> list[str]:
        """What a person reads at each place."""
        return [SYMBOLS[number] for number in ids[:, 0].tolist()]


@dataclass(frozen=True)
class AssociativeRecall:
    """`pairs` places with a key and a value each, then `questions` places with a key alone."""

    pairs: int = 16
    questions: int = 8
    vocabulary: int = 32
    """Keys there are, and values there are."""

    def __post_init__(self) -> None:
        if not 1 <= self.questions <= self.pairs:
            raise ValueError(
                f"questions: got {self.questions}; each asks for another of {self.pairs} pairs."
            )
        _check_vocabulary(self.vocabulary, self.pairs)

    @property
    def length(self) -> int:
        """Places in a row."""
        return self.pairs + self.questions

    @property
    def answers(self) -> int:
        """How many different answers there are."""
        return self.vocabulary

    @property
    def fields(self) -> int:
        """How many symbols stand at one place."""
        return 2

    def draw(self, rows: int, generator: torch.Generator) -> Batch:
        """Some rows; the generator alone decides them."""
        blank = self.vocabulary  # the value of a question
        keys = torch.rand(rows, self.vocabulary, generator=generator).argsort(-1)[:, : self.pairs]
        values = torch.randint(0, self.vocabulary, (rows, self.pairs), generator=generator)
        asked = torch.rand(rows, self.pairs, generator=generator).argsort(-1)[:, : self.questions]
        all_keys = torch.cat([keys, keys.gather(1, asked)], 1)  # (rows, length)
        answer = torch.cat([values, values.gather(1, asked)], 1)
        shown = torch.cat([values, torch.full((rows, self.questions), blank)], 1)
        counts = (torch.arange(self.length) >= self.pairs).expand(rows, -1)
        aim = all_keys[:, :, None] == all_keys[:, None, :]
        aim = aim & counts[:, :, None] & ~counts[:, None, :]
        # Keys and values are different symbols: values are counted after the keys.
        ids = torch.stack([all_keys, shown + self.vocabulary], -1)
        return Batch(ids, answer, counts, aim)

    def labels(self, ids: Int[Tensor, "length fields"]) -> list[str]:
        """What a person reads at each place: key and value, or key and a question mark."""
        shown = []
        for key, value in ids.tolist():
            at = value - self.vocabulary
            shown.append(SYMBOLS[key] + ("?" if at == self.vocabulary else str(at)))
        return shown


Task = RepeatedSegment | AssociativeRecall


def symbols(task: Task) -> int:
    """How many different symbols can stand at a place."""
    return task.vocabulary if task.fields == 1 else 2 * task.vocabulary + 1


def _check_vocabulary(vocabulary: int, needed: int) -> None:
    if not needed <= vocabulary <= len(SYMBOLS):
        raise ValueError(
            f"vocabulary: got {vocabulary}; it must be {needed} (each symbol once) to "
            f"{len(SYMBOLS)}."
        )
