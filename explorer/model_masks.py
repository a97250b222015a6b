"""transformers' masks as rules: what a model's attention gets in place of an n × n table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function

from explorer.masks import Mask, causal, only_keys, sliding_window, within


class CannotStandIn(Exception):
    """A model's own code does with attention what ours can't stand in for."""


@dataclass(frozen=True, eq=False)
class ModelMask:
    """transformers' own mask rule with the padding, for a whole batch, as a rule still."""

    mask_function: Callable[..., Any]
    padding: Tensor | None  # (batch, n_k), True for a real key
    query_offset: int
    key_offset: int
    by_index: bool

    def sequence(self, number: int, query_length: int, key_length: int) -> Mask | None:
        """The mask of one sequence of the batch; None where every query may use every key."""
        shift = int(self.query_offset) - int(self.key_offset)
        base = self._base(number, shift if shift == key_length - query_length else None)
        if self.padding is None:
            return base
        real = self.padding[number].bool()
        keys = real[self.key_offset : self.key_offset + key_length]
        if len(keys) == key_length and bool(keys.all()):
            return base
        padded = only_keys(keys, "padding")
        return padded if base is None else base & padded

    def _base(self, number: int, aligned: int | None) -> Mask | None:
        """The rule without the padding: one of our own where it is the same, else theirs."""
        if self.mask_function is bidirectional_mask_function:
            return None
        if aligned is not None:
            if self.mask_function is causal_mask_function:
                return causal()
            window = _window_of(self.mask_function)
            if window is not None:
                return window
        return Mask("the model's own mask", partial(self._rule, number))

    def _rule(self, number: int, q: Tensor, k: Tensor, n_q: int, n_k: int) -> Tensor:
        queries, keys = q + self.query_offset, k + self.key_offset
        batch = torch.full((), number, device=q.device)
        head = torch.zeros_like(batch)
        if self.by_index:
            table: Tensor = self.mask_function(batch[None, None], head[None, None], queries, keys)
            return table
        # Rules given by the model's own code may be written for one cell, with its numbers.
        with TransformGetItemToIndex():  # vmap can't index a tensor by a tensor without it
            if queries.shape == keys.shape:  # a key for each query
                by_cell = torch.vmap(self.mask_function, in_dims=(None, None, 0, 0))
                cells: Tensor = by_cell(batch, head, queries[:, 0], keys[:, 0])
                return cells[:, None]
            by_keys = torch.vmap(self.mask_function, in_dims=(None, None, None, 0))
            by_rows = torch.vmap(by_keys, in_dims=(None, None, 0, None))
            table = by_rows(batch, head, queries[:, 0], keys[0])
        return table

    def to(self, device: Any, *, non_blocking: bool = False) -> ModelMask:
        """The same mask: its blocks are made on the device of who asks. For accelerate, which
        sends a layer's arguments to the layer's device."""
        if not isinstance(device, torch.device | str | int):
            raise CannotStandIn("its code turns the mask into numbers")
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise CannotStandIn(f"its code asks the mask for {name!r}")

    def __getitem__(self, part: Any) -> Any:
        raise CannotStandIn("its code takes a part of the mask")

    @classmethod
    def __torch_function__(cls, function: Any, *others: Any, **more: Any) -> Any:
        raise CannotStandIn("its code computes with the mask")


def _window_of(mask_function: Callable[..., Any]) -> Mask | None:
    """A mask of our own for one of transformers' plain sliding windows; None for another rule."""
    parts = _enclosed(mask_function).get("mask_functions", ())
    if len(parts) != 2:
        return None
    window, direction = parts
    width = _enclosed(window).get("sliding_window")
    kind = getattr(window, "__qualname__", "").partition(".")[0]
    if width is None:
        return None
    if kind == "sliding_window_overlay" and direction is causal_mask_function:
        return sliding_window(int(width))
    two_sided = kind == "sliding_window_bidirectional_overlay"
    if two_sided and direction is bidirectional_mask_function:
        return _window_both_ways(int(width))
    return None


def _enclosed(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function has taken from the function around it."""
    if not inspect.isfunction(function):
        return {}
    cells = function.__closure__ or ()
    return {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True)
    }


def _window_both_ways(reach: int) -> Mask:
    """A query may use its own position and `reach` on either side, as in ModernBERT."""

    def key_range(first: int, last: int, n_q: int, n_k: int) -> tuple[int, int]:
        return within(first + n_k - n_q - reach, last + n_k - n_q + reach + 1, n_k)

    def open_range(first: int, last: int, n_q: int, n_k: int) -> tuple[int, int]:
        return within(last + n_k - n_q - reach, first + n_k - n_q + reach + 1, n_k)

    return Mask(
        f"sliding window of {reach} on either side",
        lambda q, k, n_q, n_k: (k - q - (n_k - n_q)).abs() <= reach,
        key_range,
        open_range,
    )
