"""Which keys a query may use, as a rule that yields any block: no mask is ever n × n in memory.

A mask is True where the query may use the key. Queries and keys are counted from 0; where there
are fewer queries than keys, the queries are the *last* ones, as when decoding with a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

Positions = slice | Sequence[int] | Tensor | None
"""Chosen rows, keys or heads: a slice, a list of numbers, or None for all."""

Rule = Callable[[Tensor, Tensor, int, int], Tensor]
"""(queries (rows, 1), keys (1, keys), query_length, key_length) -> bool, fits (..., rows, keys).

It works cell by cell: keys may as well be (rows, 1), one for each query.
"""

KeyRange = Callable[[int, int, int, int], tuple[int, int]]
"""(first query, last query, query_length, key_length) -> [start, stop) of the keys.

As `key_range` a rule is False outside it, as `open_range` it is True inside it for each of these
queries. Whoever works in blocks skips the one and needs no mask for the other.
"""


def _all_keys(first: int, last: int, query_length: int, key_length: int) -> tuple[int, int]:
    return 0, key_length


def _no_keys(first: int, last: int, query_length: int, key_length: int) -> tuple[int, int]:
    return 0, 0


def within(start: int, stop: int, key_length: int) -> tuple[int, int]:
    """The part of a range that holds keys."""
    start = min(max(0, start), key_length)
    return start, min(max(start, stop), key_length)


@dataclass(frozen=True, eq=False)
class Mask:
    """Which keys a query may use. Combine masks with `&` (and), `|` (or) and `~` (not)."""

    name: str
    rule: Rule
    key_range: KeyRange = _all_keys
    open_range: KeyRange = _no_keys

    def block(
        self,
        query_length: int,
        key_length: int,
        rows: Positions = None,
        keys: Positions = None,
        device: torch.device | str | None = None,
    ) -> Bool[Tensor, "*lead rows keys"]:
        """The mask for some rows and keys; only this block is made.

        Leading axes are there only where the rule has them (one length for each sequence of a
        batch, one matrix for each head); they broadcast against (..., n_heads, rows, keys).
        """
        queries = positions(rows, query_length, "rows", device)[:, None]  # (rows, 1)
        chosen = positions(keys, key_length, "keys", device)[None, :]  # (1, keys)
        allowed = self.rule(queries, chosen, query_length, key_length)
        shape = (*allowed.shape[:-2], queries.shape[0], chosen.shape[1])
        return allowed.expand(shape)

    def at(
        self, queries: Tensor, keys: Tensor, query_length: int, key_length: int
    ) -> Bool[Tensor, "*lead_and_cells"]:
        """The mask at cells anywhere: queries and keys are positions that broadcast to the cells.

        The rule's own leading axes come first.
        """
        cells = (queries + keys).shape
        q, k = (each.expand(cells).reshape(-1, 1) for each in (queries, keys))
        allowed = self.rule(q, k, query_length, key_length)  # (..., cells, 1)
        lead = allowed.shape[:-2]
        return allowed.expand(*lead, cells.numel(), 1).reshape(*lead, *cells)

    def __and__(self, other: Mask) -> Mask:
        def both(a: KeyRange, b: KeyRange) -> KeyRange:
            def in_both(first: int, last: int, n_q: int, n_k: int) -> tuple[int, int]:
                (a0, a1), (b0, b1) = a(first, last, n_q, n_k), b(first, last, n_q, n_k)
                return max(a0, b0), max(a0, b0, min(a1, b1))

            return in_both

        return Mask(
            f"({self.name} and {other.name})",
            lambda q, k, n_q, n_k: self.rule(q, k, n_q, n_k) & other.rule(q, k, n_q, n_k),
            both(self.key_range, other.key_range),
            both(self.open_range, other.open_range),
        )

    def __or__(self, other: Mask) -> Mask:
        def key_range(first: int, last: int, n_q: int, n_k: int) -> tuple[int, int]:
            a, b = self.key_range(first, last, n_q, n_k), other.key_range(first, last, n_q, n_k)
            return min(a[0], b[0]), max(a[1], b[1])

        def open_range(first: int, last: int, n_q: int, n_k: int) -> tuple[int, int]:
            a, b = self.open_range(first, last, n_q, n_k), other.open_range(first, last, n_q, n_k)
            return max(a, b, key=lambda found: found[1] - found[0])  # the two may lie apart

        return Mask(
            f"({self.name} or {other.name})",
            lambda q, k, n_q, n_k: self.rule(q, k, n_q, n_k) | other.rule(q, k, n_q, n_k),
            key_range,
            open_range,
        )

    def __invert__(self) -> Mask:
        return Mask(f"not {self.name}", lambda q, k, n_q, n_k: ~self.rule(q, k, n_q, n_k))


def positions(
    chosen: Positions, length: int, name: str, device: torch.device | str | None = None
) -> Int[Tensor, " n"]:
    """The chosen positions as numbers from 0 to length - 1.

    Raises ValueError where one lies outside, negative numbers included.
    """
    if chosen is None:
        return torch.arange(length, device=device)
    if isinstance(chosen, slice):
        return torch.arange(*chosen.indices(length), device=device)
    given = torch.as_tensor(chosen, device=device).reshape(-1)
    if given.numel() and (given.dtype == torch.bool or given.is_floating_point()):
        raise ValueError(f"{name}: got {given.dtype}; give the positions as whole numbers.")
    numbers = given.to(torch.int64)
    if numbers.numel() and (int(numbers.min()) < 0 or int(numbers.max()) >= length):
        raise ValueError(
            f"{name}: got {numbers.tolist()}, but positions run from 0 to {length - 1}."
        )
    return numbers


def one_sequence(
    table: Bool[Tensor, "*lead rows keys"], n_heads: int
) -> Bool[Tensor, "heads rows keys"]:
    """A mask's block for one sequence: (n_heads, rows, keys), or (1, rows, keys) for all heads.

    Raises ValueError where its leading axes are those of a batch, or of other heads.
    """
    lead = tuple(table.shape[:-2])
    if any(size != 1 for size in lead[:-1]) or (lead and lead[-1] not in (1, n_heads)):
        raise ValueError(
            f"mask: got the leading axes {lead}, but one sequence with {n_heads} heads has none, "
            f"(1,) or ({n_heads},)."
        )
    return table.reshape(lead[-1] if lead else 1, *table.shape[-2:])


def everything() -> Mask:
    """Every query may use every key: the same as no mask."""
    return Mask("everything", lambda q, k, n_q, n_k: (q >= 0) & (k >= 0), open_range=_all_keys)


def up_to_own_position(q: Tensor, k: Tensor, n_q: int, n_k: int) -> Tensor:
    """The rule of `causal`, by name: fused kernels know it as a flag."""
    return k <= q + (n_k - n_q)


def causal() -> Mask:
    """A query may use the keys up to its own position, none after it.

    Aligned at the end: the last query sees all keys, whatever the two lengths are.
    """
    return Mask(
        "causal",
        up_to_own_position,
        lambda first, last, n_q, n_k: within(0, last + n_k - n_q + 1, n_k),
        lambda first, last, n_q, n_k: within(0, first + n_k - n_q + 1, n_k),
    )


def sliding_window(w: int) -> Mask:
    """A query may use its own position and the w - 1 before it: row i has min(i + 1, w) keys.

    Raises ValueError for w < 1, which would leave every row without a key.
    """
    if w < 1:
        raise ValueError(f"w: got {w}, but a window holds at least 1 key (the query's own).")

    def key_range(first: int, last: int, n_q: int, n_k: int) -> tuple[int, int]:
        return within(first + n_k - n_q - w + 1, last + n_k - n_q + 1, n_k)

    def open_range(first: int, last: int, n_q: int, n_k: int) -> tuple[int, int]:
        return within(last + n_k - n_q - w + 1, first + n_k - n_q + 1, n_k)

    return Mask(
        f"sliding window of {w}",
        lambda q, k, n_q, n_k: (k <= q + (n_k - n_q)) & (k > q + (n_k - n_q) - w),
        key_range,
        open_range,
    )


def prefix(p: int) -> Mask:
    """Every query may use the first p keys; after them the mask is causal (a prefix LM).

    Raises ValueError for p < 0. A p beyond the last key allows everything.
    """
    if p < 0:
        raise ValueError(f"p: got {p}, but a prefix has 0 keys or more.")
    return Mask(
        f"prefix of {p}",
        lambda q, k, n_q, n_k: (k < p) | (k <= q + (n_k - n_q)),
        lambda first, last, n_q, n_k: within(0, max(p, last + n_k - n_q + 1), n_k),
        lambda first, last, n_q, n_k: within(0, max(p, first + n_k - n_q + 1), n_k),
    )


def padding(lengths: int | Sequence[int] | Tensor, side: str = "right") -> Mask:
    """Only the real keys may be used: the first `lengths` keys, or the last ones for side="left".

    One length gives a mask for one sequence; a list gives leading axes (batch, 1, rows, keys).
    Rows of padded queries are not touched: they mean nothing and must be left out by the reader.
    Raises ValueError for an unknown side, and for a length below 0 or beyond the keys.
    """
    if side not in ("left", "right"):
        raise ValueError(f'side: got "{side}", but padding stands "left" or "right".')
    real = torch.as_tensor(lengths, dtype=torch.int64)
    if real.ndim > 1:
        raise ValueError(f"lengths: got the shape {tuple(real.shape)}; give one number or a list.")
    if real.numel() and int(real.min()) < 0:
        raise ValueError(f"lengths: got {real.tolist()}, but a length is 0 or more.")

    def rule(q: Tensor, k: Tensor, n_q: int, n_k: int) -> Tensor:
        if real.numel() and int(real.max()) > n_k:
            raise ValueError(f"lengths: got {real.tolist()}, but there are only {n_k} keys.")
        length = real.to(k.device)
        length = length[:, None, None, None] if length.ndim else length  # (batch, 1, 1, 1)
        allowed = k < length if side == "right" else k >= n_k - length
        return allowed & (q >= 0)

    def real_keys(length: int, n_k: int) -> tuple[int, int]:
        return (0, length) if side == "right" else (n_k - length, n_k)

    shortest, longest = (int(real.min()), int(real.max())) if real.numel() else (0, 0)

    def key_range(first: int, last: int, n_q: int, n_k: int) -> tuple[int, int]:
        return real_keys(longest, n_k) if longest <= n_k else (0, n_k)  # the rule will raise

    def open_range(first: int, last: int, n_q: int, n_k: int) -> tuple[int, int]:
        return real_keys(shortest, n_k) if longest <= n_k else (0, 0)

    return Mask(f"padding on the {side}", rule, key_range, open_range)


def only_keys(chosen: Bool[Tensor, " key_length"], name: str) -> Mask:
    """Every query may use the keys marked True, and no other."""
    used = chosen.nonzero().flatten()
    first, stop = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
    open_stop = stop if stop - first == len(used) else first  # none is known where there are gaps
    return Mask(
        name,
        lambda q, k, n_q, n_k: (q >= 0) & chosen.to(k.device)[k],
        lambda *_: (first, stop),
        lambda *_: (first, open_stop),
    )


def custom(matrix: Tensor | Sequence[Sequence[bool]]) -> Mask:
    """A written-out mask, (..., query_length, key_length): True where the query may use the key.

    Raises ValueError where it is not bool, or is used for other lengths than its own.
    """
    table = torch.as_tensor(matrix)
    if table.dtype != torch.bool:
        raise ValueError(
            f"matrix: got {table.dtype}; a mask is bool, True where a key may be used."
        )
    if table.ndim < 2:
        raise ValueError(f"matrix: got the shape {tuple(table.shape)}; it needs (..., n_q, n_k).")

    def rule(q: Tensor, k: Tensor, n_q: int, n_k: int) -> Tensor:
        if table.shape[-2:] != (n_q, n_k):
            raise ValueError(
                f"matrix: got the shape {tuple(table.shape)}, "
                f"but {n_q} queries and {n_k} keys need (..., {n_q}, {n_k})."
            )
        return table.to(q.device)[..., q, k]

    return Mask("custom", rule)
