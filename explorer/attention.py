"""The record that a layer is kept as: what its attention was computed from, not the n × n table.

`attend` in attention_steps.py defines its numbers, streaming.py computes them at length.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from explorer import inputs, streaming
from explorer.attention_steps import (
    AttentionSteps,
    FullyMaskedRowError,
    OnMaskedRow,
    attend,
    scored,
)
from explorer.masks import Mask, Positions, one_sequence, positions

__all__ = ["Attention", "AttentionSteps", "FullyMaskedRowError", "attend", "scored"]


@dataclass(frozen=True, eq=False)
class Attention:
    """One layer's attention on one sequence, kept as what it was computed from.

    Any weight, any window and any change of scale or mask is exact and on demand; memory is
    O(n·d) and never n × n. Shapes as in `attend`, without leading axes.
    """

    query: Float[Tensor, "n_heads query_length d_k"]
    key: Float[Tensor, "n_kv_heads key_length d_k"]
    value: Float[Tensor, "n_kv_heads key_length d_v"]
    mask: Mask | None = None
    scale: float | None = None
    bias: Tensor | None = None
    softcap: float | None = None
    sinks: Float[Tensor, " n_heads"] | None = None
    on_masked_row: OnMaskedRow = "error"
    prescale: float = 1.0
    """A factor the model had already put into the query (OPT, Whisper); 1 for the others."""
    row_lse: Float[Tensor, "n_heads query_length"] | None = None
    """log Σ exp(score) of each row, where a pass has been made: any weight is then O(d)."""
    output_weight: Tensor | None = None
    """W_O by heads, (n_heads, d_v, d_out); None where no such map takes the heads' output alone."""
    output_bias: Tensor | None = None
    """What the layer adds after W_O, (d_out,), where it has a bias."""

    def __post_init__(self) -> None:
        for name in ("query", "key", "value"):
            shape = tuple(getattr(self, name).shape)
            if len(shape) != 3:
                raise ValueError(
                    f"{name}: got the shape {shape}, but a record is one sequence: "
                    "(heads, positions, size)."
                )
        if not isinstance(self.mask, Mask | None):
            raise ValueError(
                f"mask: got a {type(self.mask).__name__}, but a record keeps a rule: a Mask, "
                "such as custom(matrix)."
            )
        inputs.check(
            self.query,
            self.key,
            self.value,
            self.scale,
            self.bias,
            self.softcap,
            self.sinks,
            self.on_masked_row,
        )
        W_O = self.output_weight
        if W_O is not None and tuple(W_O.shape[:2]) != (self.n_heads, self.d_v):
            raise ValueError(
                f"output_weight: got the shape {tuple(W_O.shape)}, but {self.n_heads} heads with "
                f"values of size {self.d_v} need ({self.n_heads}, {self.d_v}, d_out)."
            )
        if self.scale is None:
            object.__setattr__(self, "scale", 1 / math.sqrt(self.d_k))
        if self.bias is not None and self.bias.ndim < 3:
            missing = (1,) * (3 - self.bias.ndim)
            object.__setattr__(self, "bias", self.bias.reshape(*missing, *self.bias.shape))

    @property
    def n_heads(self) -> int:
        """Number of query heads."""
        return int(self.query.shape[0])

    @property
    def n_kv_heads(self) -> int:
        """Number of key/value heads; query head h uses number h // (n_heads / n_kv_heads)."""
        return int(self.key.shape[0])

    @property
    def query_length(self) -> int:
        """Number of queries, the rows."""
        return int(self.query.shape[1])

    @property
    def key_length(self) -> int:
        """Number of keys, the columns."""
        return int(self.key.shape[1])

    @property
    def d_k(self) -> int:
        """Size of a query and of a key."""
        return int(self.query.shape[2])

    @property
    def d_v(self) -> int:
        """Size of a value."""
        return int(self.value.shape[2])

    @property
    def effective_scale(self) -> float:
        """The whole factor on q·k: what the call was given times what was put in before it."""
        assert self.scale is not None  # set on construction
        return self.scale * self.prescale

    def replace(self, **changes: Any) -> Attention:
        """The same attention with another scale, mask, … The row sums are dropped with it."""
        if set(changes) - {"value", "output_weight", "output_bias"}:
            changes.setdefault("row_lse", None)
        return dataclasses.replace(self, **changes)

    def dots(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Tensor:
        """q·k for chosen heads, rows and keys, (heads, rows, keys)."""
        query, key = self.query, self.key  # the few rows and keys first: heads are copied
        if rows is not None:
            query = query[:, positions(rows, self.query_length, "rows", query.device)]
        if keys is not None:
            key = key[:, positions(keys, self.key_length, "keys", key.device)]
        chosen = positions(heads, self.n_heads, "heads", query.device)
        query = query[chosen]  # (heads, rows, d_k)
        key = key[chosen // (self.n_heads // self.n_kv_heads)]  # (heads, keys, d_k)
        compute = torch.promote_types(query.dtype, torch.float32)
        return query.to(compute) @ key.to(compute).transpose(1, 2)

    def scores(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Tensor:
        """Scaled scores before the mask, for chosen heads, rows and keys, (heads, rows, keys)."""
        assert self.scale is not None
        bias = self.bias
        if bias is not None:
            for axis, (chosen, name) in enumerate(
                ((heads, "heads"), (rows, "rows"), (keys, "keys"))
            ):
                if chosen is not None and bias.shape[axis] > 1:
                    which = positions(chosen, bias.shape[axis], name, bias.device)
                    bias = bias.index_select(axis, which)
        return scored(self.dots(heads, rows, keys), self.scale, bias, self.softcap)

    def allowed(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Tensor:
        """True where the query may use the key: (heads, rows, keys), or (1, rows, keys)."""
        device = self.query.device
        if self.mask is None:
            n_rows = len(positions(rows, self.query_length, "rows"))
            n_keys = len(positions(keys, self.key_length, "keys"))
            return torch.ones(1, n_rows, n_keys, dtype=torch.bool, device=device)
        table = self.mask.block(self.query_length, self.key_length, rows, keys, device)
        table = one_sequence(table, self.n_heads)
        if table.shape[0] == 1 or heads is None:
            return table
        return table[positions(heads, self.n_heads, "heads", device)]

    def masked_rows(self) -> Tensor:
        """True where a query has no key it may use, (n_heads or 1, n_q), found block by block."""
        if self.mask is None:
            return torch.zeros(1, self.query_length, dtype=torch.bool, device=self.query.device)
        n_q, n_k = self.query_length, self.key_length
        step = min(max(1, (1 << 22) // n_k), 512)
        parts = []
        for start in range(0, n_q, step):
            stop = min(start + step, n_q)
            first, last = self.mask.open_range(start, stop - 1, n_q, n_k)
            if first < last:  # keys that all these queries may use
                parts.append(
                    torch.zeros(1, stop - start, dtype=torch.bool, device=self.query.device)
                )
            else:
                parts.append(~self.allowed(rows=slice(start, stop)).any(-1))
        heads = max(len(part) for part in parts)
        return torch.cat([part.expand(heads, -1) for part in parts], -1)

    def weights(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Tensor:
        """Weights after softmax for chosen heads, rows and keys, (heads, rows, keys).

        Raises FullyMaskedRowError where a chosen row has no key and the record says "error".
        """
        if heads is None and rows is None and keys is None and self.row_lse is None:
            return self.weights_and_output()[0]
        masked = self.scores(heads, rows, keys).masked_fill(
            ~self.allowed(heads, rows, keys), -torch.inf
        )
        whole_rows = keys is None and self.sinks is None
        # Of a row's size: its largest score where the row is whole, else its log-sum-exp.
        size = masked.amax(-1, True) if whole_rows else self._lse(heads, rows, keys, masked)
        dead = size == -torch.inf  # (heads, rows, 1)
        if self.on_masked_row == "error" and bool(dead.any()):
            table = dead.new_zeros(self.n_heads, self.query_length)
            which = positions(heads, self.n_heads, "heads", dead.device)
            chosen = positions(rows, self.query_length, "rows", dead.device)
            table[which[:, None], chosen] = dead.squeeze(-1)
            raise FullyMaskedRowError(table)
        if whole_rows:  # softmax subtracts the maximum: huge scores lose nothing to rounding
            return torch.softmax(masked, -1).masked_fill_(dead, 0.0)
        size = size.masked_fill(dead, 0.0)
        # Where row_lse has more digits than the scores, its rest comes second: masked − size is
        # exact where a weight is large.
        first = size.to(masked.dtype)
        return torch.exp((masked - first).sub_((size - first).to(masked.dtype)))

    def _lse(self, heads: Positions, rows: Positions, keys: Positions, masked: Tensor) -> Tensor:
        """Each chosen row's log-sum-exp over *all* keys, (heads, rows, 1)."""
        which = positions(heads, self.n_heads, "heads", self.query.device)
        if self.row_lse is not None:
            lse = self.row_lse[which]
            chosen = positions(rows, self.query_length, "rows", lse.device)
            return lse[:, chosen, None]
        if keys is not None:
            whole = self.scores(heads, rows)
            masked = whole.masked_fill(~self.allowed(heads, rows), -torch.inf)
        lse = torch.logsumexp(masked, -1, keepdim=True)
        if self.sinks is None:
            return lse
        sinks = self.sinks[which].to(masked.dtype)[:, None, None]
        return torch.where(lse == -torch.inf, lse, torch.logaddexp(lse, sinks))

    def weights_and_output(self, weights_out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All weights (n_heads, n_q, n_k) and the output (n_heads, n_q, d_v) in one pass.

        `weights_out` is a buffer to reuse for the weights.
        """
        self._refuse_masked_rows()
        return streaming.weights_and_output(**self._inputs, weights_out=weights_out)

    def output(self) -> Tensor:
        """Weights · value for each head, before W_O, (n_heads, n_q, d_v); no n × n table."""
        self._refuse_masked_rows()
        return streaming.stream(**self._inputs).output

    def joined(self, output: Tensor | None = None) -> Tensor:
        """The layer's output, (n_q, d_out): the heads' outputs side by side times W_O.

        `output` stands in for the heads' own, (n_heads, n_q, d_v). Raises ValueError where the
        record has no W_O.
        """
        if self.output_weight is None:
            raise ValueError("output_weight: this record has no W_O, so its heads can't be joined.")
        heads = self.output() if output is None else output
        joined = torch.einsum("hqv,hvo->qo", heads, self.output_weight)
        return joined if self.output_bias is None else joined + self.output_bias

    def with_row_lse(self) -> tuple[Attention, Tensor]:
        """This record with each row's log-sum-exp kept, and the output of the same pass."""
        self._refuse_masked_rows()
        done = streaming.output_and_lse(**self._inputs)
        return dataclasses.replace(self, row_lse=done.lse), done.output

    def steps(self) -> AttentionSteps:
        """Every step for all heads and rows; this makes n × n tables."""
        mask = None if self.mask is None else self.allowed()
        return attend(
            self.query,
            self.key,
            self.value,
            mask,
            scale=self.scale,
            bias=self.bias,
            softcap=self.softcap,
            sinks=self.sinks,
            on_masked_row=self.on_masked_row,
        )

    @cached_property
    def _inputs(self) -> dict[str, Any]:
        names = ("query", "key", "value", "scale", "mask", "bias", "softcap", "sinks")
        return {name: getattr(self, name) for name in names}

    def _refuse_masked_rows(self) -> None:
        if self.on_masked_row == "error" and self.mask is not None:
            masked_rows = self.masked_rows()
            if bool(masked_rows.any()):
                raise FullyMaskedRowError(masked_rows.expand(self.n_heads, -1))
