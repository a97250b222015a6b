"""Layers on different devices: every reader gives what it gives where all are on one.

The devices are pretended (see `pretended_devices`); the last test holds that mixing is noticed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import explorer.cores
import explorer.metrics
import explorer.similarity
from explorer.attention import Attention
from explorer.capture import Capture, Stack, capture
from explorer.checks import invariants
from explorer.effects import drift
from explorer.head_scaling import softmax_table, times, variance_table
from explorer.interventions import Intervention
from explorer.maps import pooled, pooled_forbidden, window
from explorer.metrics import head_metrics
from explorer.model_facts import model_facts
from explorer.models import LoadedModel
from explorer.sides import Look, seen
from explorer.similarity import head_distances
from explorer.weighing import WAYS, average, rollout
from tests.pretended_devices import PretendedDevices, put

TEXT = "The animal didn't cross the street."
APART = ("xla:0", "xla:1")
Reader = Callable[[Stack], Any]


class OneThread:
    """Work that is done at once, in the thread that knows the pretended devices."""

    def map(self, function: Callable[..., Any], *items: Iterable[Any]) -> Iterator[Any]:
        return map(function, *items)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*arguments))
        return done


@pytest.fixture
def pretended(whole: Capture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After the model has run, as the parts of a real one are on real devices."""
    for module in (explorer.metrics, explorer.similarity, explorer.cores):
        monkeypatch.setattr(module, "workers", OneThread)
    with PretendedDevices():
        yield


@pytest.fixture(scope="module")
def whole(minilm: LoadedModel) -> Capture:
    return capture(minilm, TEXT)


def moved(layer: Any, device: str) -> Any:
    """A record with all its tensors on a device."""
    return dataclasses.replace(
        layer,
        **{each.name: put(getattr(layer, each.name), device) for each in dataclasses.fields(layer)},
    )


def apart(stack: Stack) -> Stack:
    """The same layers, the even ones on one device and the odd ones on another."""
    layers = tuple(moved(layer, APART[n % 2]) for n, layer in enumerate(stack.layers))
    return dataclasses.replace(stack, layers=layers)


def each_layer(read: Callable[[Attention], torch.Tensor]) -> Reader:
    return lambda stack: [read(layer).cpu() for layer in stack.layers]  # type: ignore[arg-type]


READERS: dict[str, Reader] = {
    "weights": each_layer(lambda layer: layer.weights()),
    "one head's weights": each_layer(lambda layer: layer.weights([3], [1, 2], slice(0, 5))),
    "one head's scores": each_layer(lambda layer: layer.scores([3], [1, 2])),
    "allowed": each_layer(lambda layer: layer.allowed([3], [1, 2])),
    "outputs": each_layer(lambda layer: layer.output()),
    "grid": each_layer(lambda layer: pooled(layer, 4, "max")),
    "pooled": each_layer(lambda layer: pooled(layer, 4, "mean")),
    "forbidden bins": each_layer(lambda layer: pooled_forbidden(layer, 4)),
    "window": each_layer(lambda layer: window(layer, rows=(0, 4), keys=(2, 6))),
    "numbers per head": head_metrics,
    "checks": invariants,
    "distances between heads": lambda stack: head_distances(stack).matrix,
    "average": lambda stack: average(stack, [(0, 1), (1, 2), (3, 3)]).cpu(),
    "rollout": lambda stack: rollout(stack).cpu(),
    "weighing": lambda stack: [
        way.weigh(layer, None, None).cpu()  # type: ignore[arg-type]
        for way in WAYS
        for layer in stack.layers
    ],
    "score variances": variance_table,
    "softmax with another scale": lambda stack: softmax_table(stack, times(2)),
    "a side of Compare": lambda stack: seen(stack, Look(way="average", layer=1, head=2)).weights,
}


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_the_same_for_layers_on_two_devices(name: str, whole: Capture) -> None:
    stack = whole.stacks["encoder"]
    same(READERS[name](apart(stack)), READERS[name](stack))


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
    elif isinstance(expected, list | tuple):
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, torch.Tensor | np.ndarray):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=1e-6)
    else:
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.usefixtures("pretended")
def test_the_drift_is_the_same_for_states_on_two_devices(whole: Capture) -> None:
    runs = [whole.changed([Intervention("encoder", scale_times=t)]) for t in (1.0, 2.0)]
    expected = drift(runs[0], runs[1])
    spread = [
        dataclasses.replace(
            run,
            hidden_states=tuple(
                put(state, APART[n % 2]) for n, state in enumerate(run.hidden_states)
            ),
        )
        for run in runs
    ]
    same(drift(spread[0], spread[1]), expected)


@pytest.mark.usefixtures("pretended")
def test_the_facts_name_each_layers_device(minilm: LoadedModel, whole: Capture) -> None:
    stack = apart(whole.stacks["encoder"])
    facts = model_facts(minilm, dataclasses.replace(whole, stacks={"encoder": stack}))
    assert [layer.device for layer in facts.layers] == [*APART] * 3


@pytest.mark.usefixtures("pretended")
def test_a_reader_that_mixes_devices_would_be_noticed(whole: Capture) -> None:
    first, second = apart(whole.stacks["encoder"]).layers[:2]
    with pytest.raises(RuntimeError, match="expected all tensors on one device"):
        first.weights() + second.weights()
    with pytest.raises(RuntimeError, match="expected all tensors on one device"):
        torch.cat([first.weights(), second.weights()])
    with pytest.raises(TypeError, match=r"use \.cpu\(\) first"):
        first.weights().numpy()
