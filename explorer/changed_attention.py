"""A layer's attention with interventions: a record to read like `Attention`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from explorer.attention import Attention
from explorer.interventions import SCALE_RULES, Intervention
from explorer.masks import Mask, Positions, only_keys, positions


def changed(
    attention: Attention, place: tuple[str, int], interventions: Sequence[Intervention]
) -> ChangedAttention | None:
    """The layer's attention with those that apply at (stack, layer); None where none does.

    Raises ValueError where one names a head or a position that the layer does not have.
    """
    here = tuple(each for each in interventions if each.applies(*place))
    if not here:
        return None
    for each in here:
        positions(list(each.heads or ()), attention.n_heads, "heads")
        positions([*each.without_keys, *each.zero_values], attention.key_length, "keys")
        positions([query for query, _, _ in each.set_weights], attention.query_length, "queries")
        positions([key for _, key, _ in each.set_weights], attention.key_length, "keys")
    return ChangedAttention(attention, place, here)


@dataclass(frozen=True, eq=False)
class ChangedAttention:
    """One layer's attention on one sequence, with interventions: read like an `Attention`."""

    own: Attention
    """As the model makes it; its queries, keys and values come from the changed layers below."""
    place: tuple[str, int]
    interventions: tuple[Intervention, ...]

    @property
    def n_heads(self) -> int:
        """Number of query heads."""
        return self.own.n_heads

    @property
    def n_kv_heads(self) -> int:
        """Number of key/value heads."""
        return self.own.n_kv_heads

    @property
    def query_length(self) -> int:
        """Number of queries, the rows."""
        return self.own.query_length

    @property
    def key_length(self) -> int:
        """Number of keys, the columns."""
        return self.own.key_length

    @property
    def output_weight(self) -> Tensor | None:
        """W_O of the layer, as in `Attention`."""
        return self.own.output_weight

    def replace(self, **changes: Any) -> ChangedAttention:
        """The same with something of the model's own attention replaced."""
        return dataclasses.replace(self, own=self.own.replace(**changes))

    def part(self, head: int) -> Attention:
        """One head as a record of its own, after changes of scale, mask and values."""
        return self._parts[head]

    def scores(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Tensor:
        """Scaled scores before the mask, with the changed scale, (heads, rows, keys)."""
        return torch.cat([self.part(h).scores(None, rows, keys) for h in self._chosen(heads)])

    def dots(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Tensor:
        """q·k, (heads, rows, keys)."""
        return self.own.dots(heads, rows, keys)

    def allowed(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Tensor:
        """True where the query may use the key, (heads, rows, keys)."""
        return torch.cat([self.part(h).allowed(None, rows, keys) for h in self._chosen(heads)])

    def masked_rows(self) -> Tensor:
        """True where a query has no key that it may use, (n_heads, n_q)."""
        return ~self.allowed().any(-1)

    def weights(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Tensor:
        """The weights as they are used, (heads, rows, keys). A head switched off keeps its own."""
        every_key = torch.cat([self._weights(h, rows) for h in self._chosen(heads)])
        return every_key if keys is None else every_key[..., positions(keys, self.key_length, "k")]

    def output(self, unchanged: Tensor | None = None) -> Tensor:
        """What each head puts out, before W_O, (n_heads, n_q, d_v).

        `unchanged` is the output without the interventions, where it is known: heads that no
        intervention touches keep it to the last bit.
        """
        output = (self.own.output() if unchanged is None else unchanged).clone()
        for head in range(self.n_heads):
            if self._of(head):
                output[head] = self._output(head).to(output.dtype)
        return output

    def joined(self) -> Tensor:
        """The layer's output, (n_q, d_out), as `Attention.joined`."""
        return self.own.joined(self.output())

    def _chosen(self, heads: Positions) -> list[int]:
        chosen: list[int] = positions(heads, self.n_heads, "heads").tolist()
        return chosen

    def _of(self, head: int) -> tuple[Intervention, ...]:
        return tuple(i for i in self.interventions if i.heads is None or head in i.heads)

    @cached_property
    def _parts(self) -> list[Attention]:
        return [self._part(head) for head in range(self.n_heads)]

    def _part(self, head: int) -> Attention:
        own, here = self.own, self._of(head)
        kv_head = head // (own.n_heads // own.n_kv_heads)
        value = own.value[kv_head : kv_head + 1]
        scale, mask = own.scale, _of_head(own.mask, head)
        assert scale is not None  # set on construction
        for each in here:
            if each.scale_rule is not None:  # the rule is for the whole factor
                scale = SCALE_RULES[each.scale_rule](own.d_k) / own.prescale
            scale *= each.scale_times
            mask = self._masked(mask, each)
            if each.zero_values:
                value = value.index_fill(1, torch.tensor(each.zero_values, device=value.device), 0)
        return Attention(
            own.query[head : head + 1],
            own.key[kv_head : kv_head + 1],
            value,
            mask,
            scale=scale,
            bias=own.bias if own.bias is None or own.bias.shape[0] == 1 else own.bias[[head]],
            softcap=own.softcap,
            sinks=None if own.sinks is None else own.sinks[head : head + 1],
            on_masked_row="zero",
            prescale=own.prescale,
        )

    def _masked(self, mask: Mask | None, change: Intervention) -> Mask | None:
        if change.mask is not None:
            padded = ~self.own.allowed().any(0).any(0)  # (n_k,): no query may use it
            mask = change.mask if not bool(padded.any()) else change.mask & _without(padded)
        if change.and_mask is not None:
            mask = change.and_mask if mask is None else mask & change.and_mask
        if change.without_keys:
            barred = torch.zeros(self.key_length, dtype=torch.bool)
            barred[list(change.without_keys)] = True
            mask = _without(barred) if mask is None else mask & _without(barred)
        return mask

    def _weights(self, head: int, rows: Positions) -> Tensor:
        """One head's weights with every key, (1, rows, n_k)."""
        part = self.part(head)
        weights = part.weights(rows=rows)
        chosen = positions(rows, self.query_length, "rows").tolist()
        for each in self._of(head):
            if each.uniform:
                allowed = part.allowed(rows=rows)
                count = allowed.sum(-1, keepdim=True).clamp(min=1)
                weights = allowed.to(weights.dtype) / count
            cells = [(chosen.index(q), k, w) for q, k, w in each.set_weights if q in chosen]
            if cells:
                weights = _with_cells(weights, cells, each.renormalise)
        return weights

    def _output(self, head: int) -> Tensor:
        """One changed head's output, (n_q, d_v)."""
        here, part = self._of(head), self.part(head)
        if any(each.uniform or each.set_weights for each in here):
            output = (self._weights(head, None) @ part.value.float())[0]
        else:
            output = part.output()[0]
        for each in here:
            if each.output_of is not None:
                output = _patched(each.output_of, self.place, head, output)
            if each.output == "off":
                output = torch.zeros_like(output)
            elif each.output == "mean":
                live = ~part.masked_rows()[0]
                output = output[live].mean(0, keepdim=True).expand_as(output) * live[:, None]
        return output


def _without(barred: Tensor) -> Mask:
    """No query may use the keys marked True."""
    return only_keys(~barred, "without some keys")


def _of_head(mask: Mask | None, head: int) -> Mask | None:
    """A mask as one head sees it: a written-out mask may have a table for each head."""
    if mask is None:
        return None

    def rule(q: Tensor, k: Tensor, n_q: int, n_k: int) -> Tensor:
        table = mask.rule(q, k, n_q, n_k)
        if table.ndim < 3:
            return table
        return table[..., head if table.shape[-3] > 1 else 0, :, :]

    return Mask(mask.name, rule, mask.key_range)


def _with_cells(
    weights: Tensor, cells: Sequence[tuple[int, int, float]], renormalise: bool
) -> Tensor:
    """Weights (1, rows, n_k) with some set; the others of their rows share the rest, or stay."""
    weights = weights.clone()
    for row in {row for row, _, _ in cells}:
        set_here = {key: weight for at, key, weight in cells if at == row}
        keys = torch.tensor(list(set_here), device=weights.device)
        given = weights.new_tensor(list(set_here.values()))
        line = weights[0, row]
        total = line.sum()  # below 1 where a sink has the rest
        if renormalise:
            others = total - line[keys].sum()
            line *= torch.where(others > 0, (total - given.sum()).clamp(min=0) / others, 0.0)
        line[keys] = given
    return weights


def _patched(
    output_of: Mapping[tuple[str, int], Attention],
    place: tuple[str, int],
    head: int,
    output: Tensor,
) -> Tensor:
    if place not in output_of:
        raise ValueError(f"output_of: the other text has no layer {place[1]} of the {place[0]}.")
    other = output_of[place]
    if other.query_length != output.shape[0]:
        raise ValueError(
            f"output_of: the other text has {other.query_length} tokens, this one "
            f"{output.shape[0]}. A head's output can be taken over between texts of equal length."
        )
    return other.output()[head].to(output.dtype)
