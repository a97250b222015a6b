"""A training run: settings in, measurements out; the same settings give the same numbers.

AdamW (Loshchilov and Hutter 2019) with betas 0.9 and 0.98, a warm-up of 20 steps and no clipping,
on fresh rows at every step. Everything random comes from generators of the run's own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.attention import AttentionSteps
from explorer.small_model import Initialisation, ModelShape, PositionKind, SmallModel
from explorer.tasks import AssociativeRecall, Batch, RepeatedSegment, Task, symbols

TaskName = Literal["repeat", "recall"]
WARM_UP = 20
"""Steps over which the learning rate grows to its value."""
MEASURED_ROWS = 32
"""Rows of every measurement: the same for all runs, and never drawn for training."""
MEASURED_SEED, EXAMPLE_SEED = 1_000_003, 1_000_033
MEASUREMENTS = 40
"""At most about so many in a run, the first before the first step, the last after the last."""
SATURATED = 0.99
"""A row counts as saturated where one key has more than this of its weight."""
QUANTILES = (0.1, 0.5, 0.9)
MOST_STEPS = 2000


class DivergedError(RuntimeError):
    """The loss is no number any more."""


@dataclass(frozen=True)
class RunSettings:
    """Everything a run depends on."""

    task: TaskName = "repeat"
    n_layers: int = 2
    n_heads: int = 4
    d_k: int = 16
    scale: float | None = None
    """The factor on q·k; 1/√d_k unless given."""
    initialisation: Initialisation = "unit"
    positions: PositionKind = "rotary"
    learning_rate: float = 0.01
    steps: int = 200
    rows: int = 48
    """Rows drawn for each step."""
    length: int = 32
    """Symbols in a row, of the task "repeat"."""
    d_model: int = 64
    seed: int = 0
    """Decides the first weights and the rows, whatever the scale is."""

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= MOST_STEPS:
            raise ValueError(f"steps: got {self.steps}; it must be 1 to {MOST_STEPS}.")
        if not 1 <= self.rows <= 256:
            raise ValueError(f"rows: got {self.rows}; it must be 1 to 256.")
        if not 0 < self.learning_rate <= 1:
            raise ValueError(f"learning_rate: got {self.learning_rate}; it must be above 0, to 1.")
        if self.length > 64:
            raise ValueError(f"length: got {self.length}; it must be at most 64.")
        _ = self.shape  # raises where the model's sizes do not fit

    @property
    def works_on(self) -> Task:
        """The task itself."""
        if self.task == "recall":
            return AssociativeRecall()
        return RepeatedSegment(self.length)

    @property
    def shape(self) -> ModelShape:
        """The model's sizes."""
        task = self.works_on
        return ModelShape(
            symbols(task),
            task.answers,
            task.length,
            d_model=self.d_model,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            d_k=self.d_k,
            scale=self.scale,
            initialisation=self.initialisation,
            positions=self.positions,
        )

    @property
    def measured_at(self) -> list[int]:
        """The steps after which the run is measured."""
        every = max(1, math.ceil(self.steps / MEASUREMENTS))
        return [*range(0, self.steps, every), self.steps]


class Measurement(NamedTuple):
    """What a model is like after some steps, on rows that it is not trained on.

    Per head: lists over layers of lists over heads, means over the rows of weights whose answer
    counts. "Last layer" numbers are over each of those rows and each of its heads.
    """

    step: int
    loss: float
    """Cross-entropy, in nats."""
    accuracy: float
    """Share of right answers among those that can be known."""
    gradient_q: float
    """Norm of the loss's gradient at all W_Q together."""
    gradient_k: float
    row_gradient: list[float]
    """Norm of the gradient of one answer's loss at its row of scores in the last layer: the
    quantiles 10 %, 50 %, 90 %."""
    score_deviation: float
    """Standard deviation of the last layer's scores that the mask allows."""
    saturated: float
    """Share of the last layer's rows in which one key has over 99 %."""
    entropy: list[list[float]]
    """In nats."""
    largest: list[list[float]]
    previous: list[list[float]]
    """Weight on the place before."""
    aim: list[list[float]]
    """Weight on the keys that hold the answer."""
    maps: npt.NDArray[np.float16]
    """The weights on the fixed example, (n_layers, n_heads, length, length)."""


class Run:
    """One model in training."""

    def __init__(self, settings: RunSettings) -> None:
        self.settings, self.task = settings, settings.works_on
        self.model = SmallModel(settings.shape, settings.seed)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.98), fused=True
        )
        self.data = torch.Generator().manual_seed(10_000 + settings.seed)
        self.steps_done = 0
        self._measured = measured_rows(self.task)
        self._example = example(self.task)

    def step(self) -> float:
        """One step of training; its loss. Raises DivergedError."""
        warm = min(1.0, (self.steps_done + 1) / WARM_UP)
        for group in self.optimizer.param_groups:
            group["lr"] = warm * self.settings.learning_rate
        batch = self.task.draw(self.settings.rows, self.data)
        loss = self._losses(batch)[0].mean()
        if not math.isfinite(float(loss.detach())):
            raise DivergedError(
                f"After {self.steps_done} steps the loss was no number any more. A smaller "
                "learning rate helps."
            )
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.steps_done += 1
        return float(loss.detach())

    def measure(self) -> Measurement:
        """The model as it is now; it changes nothing."""
        rows = self._measured
        losses, logits, steps = self._losses(rows)
        steps[-1].scores.retain_grad()
        self.optimizer.zero_grad()
        losses.sum().backward()  # type: ignore[no-untyped-call]
        at_rows = steps[-1].scores.grad
        assert at_rows is not None
        norms = _counted(at_rows, rows).norm(dim=-1).flatten()
        quantiles = norms.quantile(torch.tensor(QUANTILES)).tolist()
        right = (logits.argmax(-1) == rows.targets)[rows.counts].float().mean()
        weights = [_counted(each.weights.detach(), rows) for each in steps]  # (counted, heads, n)
        aim = rows.aim[rows.counts][:, None]  # (counted, 1, n)
        places = rows.counts.nonzero()[:, 1]  # (counted,)
        previous = (places[:, None] - 1 == torch.arange(aim.shape[-1]))[:, None]
        scores = steps[-1].masked_scores.detach()
        with torch.no_grad():
            found = Measurement(
                step=self.steps_done,
                loss=float(losses.detach().mean()),
                accuracy=float(right),
                gradient_q=self._gradient("W_Q") / len(losses),
                gradient_k=self._gradient("W_K") / len(losses),
                row_gradient=quantiles,
                score_deviation=float(scores[scores.isfinite()].std()),
                saturated=float((weights[-1].amax(-1) > SATURATED).float().mean()),
                entropy=[(-torch.special.xlogy(w, w)).sum(-1).mean(0).tolist() for w in weights],
                largest=[w.amax(-1).mean(0).tolist() for w in weights],
                previous=[(w * previous).sum(-1).mean(0).tolist() for w in weights],
                aim=[(w * aim).sum(-1).mean(0).tolist() for w in weights],
                maps=self.maps(),
            )
        self.optimizer.zero_grad()
        return found

    def maps(self) -> npt.NDArray[np.float16]:
        """The weights on the fixed example, (n_layers, n_heads, length, length)."""
        kept = [record.weights() for record in self.model.records(self._example.ids[0])]
        found: npt.NDArray[np.float16] = torch.stack(kept).half().numpy()
        return found

    def _losses(self, batch: Batch) -> tuple[Tensor, Tensor, list[AttentionSteps]]:
        """The loss of each answer that counts, all logits, and the layers' steps."""
        try:
            logits, steps = self.model(batch.ids)
        except ValueError as error:  # attention refuses numbers that are not finite
            raise DivergedError(
                f"After {self.steps_done} steps the model's numbers overflowed. A smaller "
                "learning rate helps."
            ) from error
        counted = batch.counts
        losses = F.cross_entropy(logits[counted], batch.targets[counted], reduction="none")
        return losses, logits, steps

    def _gradient(self, name: str) -> float:
        grads = [getattr(layer, name).weight.grad for layer in self.model.attention_layers]
        return math.sqrt(sum(float(grad.square().sum()) for grad in grads if grad is not None))


def _counted(table: Tensor, rows: Batch) -> Tensor:
    """Of (rows, heads, length, keys) the rows whose answer counts: (counted, heads, keys)."""
    return table.transpose(1, 2)[rows.counts]


def measured_rows(task: Task) -> Batch:
    """The rows of every measurement."""
    return task.draw(MEASURED_ROWS, torch.Generator().manual_seed(MEASURED_SEED))


def example(task: Task) -> Batch:
    """The one row whose maps are shown."""
    return task.draw(1, torch.Generator().manual_seed(EXAMPLE_SEED))


def train(settings: RunSettings) -> Iterator[Measurement]:
    """Trains a model and measures it on the way. Raises DivergedError."""
    run = Run(settings)
    for stop in settings.measured_at:
        while run.steps_done < stop:
            run.step()
        yield run.measure()


def seconds_per_step(settings: RunSettings, steps: int = 5) -> float:
    """What a step costs one core of this machine: the least of some, in this thread's own time.

    Right where the thread's operations have one thread each, as in `cores.workers()`.
    """
    run = Run(settings)
    least = math.inf
    for _ in range(steps):
        start = time.thread_time()
        run.step()
        least = min(least, time.thread_time() - start)
    return least
