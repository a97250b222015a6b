"""Which W_O a layer has, found by what its attention's output goes through next in the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


class OutputProjection(NamedTuple):
    """W_O of a layer and its bias, as views of the model's own parameters."""

    weight: Tensor
    """(n_heads, d_v, d_out)."""
    bias: Tensor | None
    """(d_out,)."""


class OutputWatch(TorchFunctionMode):
    """Sees the linear map that takes an attention's output, whatever the model calls it.

    Only a map that takes the output itself counts: where a gate or a norm stands between, there
    is no W_O that speaks for the heads alone. A mode is this thread's own, so that people who
    share a model don't see each other.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[int, OutputProjection] = {}
        """By the number of the call."""
        self._waiting: tuple[int, Tensor] | None = None

    def expect(self, call: int, output: Tensor) -> None:
        """From now on waits for the map that takes this output, (batch, n_q, n_heads, d_v)."""
        self._waiting = (call, output)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._waiting is not None and func in (F.linear, torch.addmm):
            call, output = self._waiting
            with torch._C.DisableTorchFunction():
                seen = _seen(func, output, *args, **(kwargs or {}))
            if seen is not None:
                self.found[call] = seen
                self._waiting = None
        return func(*args, **(kwargs or {}))


def _seen(
    func: Callable[..., Any], output: Tensor, *args: Any, **kwargs: Any
) -> OutputProjection | None:
    """The map as W_O, where it takes this output; None where it takes something else."""
    if func is F.linear:
        names = ("input", "weight", "bias")
    else:  # a Conv1D, as in GPT-2: addmm(bias, x, weight)
        names = ("bias", "input", "weight")
    given = dict(zip(names, args, strict=False)) | kwargs
    source, weight, bias = given.get("input"), given.get("weight"), given.get("bias")
    if not isinstance(source, Tensor) or not isinstance(weight, Tensor) or weight.ndim != 2:
        return None
    n_heads, d_v = output.shape[-2:]
    if func is F.linear:
        weight = weight.t()
    same = source.shape[-1] == weight.shape[0] == n_heads * d_v and source.numel() == output.numel()
    # The output of our function is contiguous, so that a reshape of it is a view.
    if not same or source.data_ptr() != output.data_ptr():
        return None
    if not weight.is_floating_point():
        return None  # quantised: its numbers are codes
    bias = bias if isinstance(bias, Tensor) and bias.ndim == 1 else None
    return OutputProjection(weight.view(n_heads, d_v, -1), bias)
