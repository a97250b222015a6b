"""One layer over a long text, made of pieces that the model read one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer.attention import Attention
from explorer.masks import Positions, positions


@dataclass(frozen=True, eq=False)
class Piece:
    """A run of the text through the model, with the rows that are shown as it sees them."""

    start: int
    """Where its first token stands in the text."""
    stop: int
    """Where the text goes on after it."""
    lead: int
    """How many special tokens stand before it."""
    rows: tuple[int, int]
    """The queries it owns, from the first to before the last, by their places in the text."""
    attention: Attention
    """Its record, specials included."""

    def own(self, places: Tensor) -> Tensor:
        """Places in the text as places in the piece."""
        return places - self.start + self.lead


@dataclass(frozen=True, eq=False)
class PiecewiseAttention:
    """One layer over a whole text, made of pieces: exact weights inside, none outside.

    A row sums to 1 less what its piece's special tokens were given: `special_weight`.
    """

    pieces: tuple[Piece, ...]
    special_weight: Float[Tensor, "n_heads query_length"]
    """The share of each row that went to special tokens, such as [CLS] and [SEP]."""

    @property
    def n_heads(self) -> int:
        """Number of heads."""
        return self.pieces[0].attention.n_heads

    @property
    def query_length(self) -> int:
        """Number of queries: the text's tokens."""
        return self.pieces[-1].stop

    @property
    def key_length(self) -> int:
        """Number of keys: the text's tokens."""
        return self.pieces[-1].stop

    @torch.no_grad()
    def weights(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Float[Tensor, "heads rows keys"]:
        """Weights for chosen heads, rows and keys; 0 where no piece holds both tokens."""
        n_heads = len(positions(heads, self.n_heads, "heads"))
        found, parts = self._parts(rows, keys, n_heads, self.special_weight.dtype)
        for piece, at, inside, own_rows, own_keys in parts:
            found[:, at[:, None], inside] = piece.attention.weights(heads, own_rows, own_keys)
        return found

    def allowed(
        self, heads: Positions = None, rows: Positions = None, keys: Positions = None
    ) -> Bool[Tensor, "heads rows keys"]:
        """True where the query's piece holds the key and the model's mask allows it."""
        found, parts = self._parts(rows, keys, 1, torch.bool)
        for piece, at, inside, own_rows, own_keys in parts:
            here = piece.attention.allowed(heads, own_rows, own_keys)
            if len(here) > len(found):  # a mask for each head
                found = found.expand(len(here), -1, -1).clone()
            found[:, at[:, None], inside] = here
        return found

    def masked_rows(self) -> Tensor:
        """True where a query has no key, (1, n_q): never, as each has itself."""
        return torch.zeros(1, self.query_length, dtype=torch.bool, device=self.device)

    def used_keys(self, rows: slice) -> slice:
        """The only keys that these rows may give weight to."""
        start, stop, _ = rows.indices(self.query_length)
        used = [
            _used(piece, max(start, piece.rows[0]), min(stop, piece.rows[1]))
            for piece in self.pieces
            if max(start, piece.rows[0]) < min(stop, piece.rows[1])
        ]
        if not used:
            return slice(0, 0)
        return slice(min(first for first, _ in used), max(last for _, last in used))

    @property
    def device(self) -> torch.device:
        """Where the weights are computed."""
        return self.special_weight.device

    def _parts(
        self, rows: Positions, keys: Positions, n_heads: int, dtype: torch.dtype
    ) -> tuple[Tensor, Iterator[tuple[Piece, Tensor, Tensor, Tensor, Tensor]]]:
        """An empty table, and for each piece: where in it, and which rows and keys of the piece."""
        chosen = positions(rows, self.query_length, "rows", self.device)
        columns = positions(keys, self.key_length, "keys", self.device)
        table = torch.zeros(n_heads, len(chosen), len(columns), dtype=dtype, device=self.device)

        def parts() -> Iterator[tuple[Piece, Tensor, Tensor, Tensor, Tensor]]:
            if not len(chosen):
                return
            first, last = int(chosen.min()), int(chosen.max())
            for piece in self.pieces:
                if last < piece.rows[0] or first >= piece.rows[1]:
                    continue
                at = _between(chosen, *piece.rows)
                inside = _between(columns, piece.start, piece.stop)
                if len(at) and len(inside):
                    yield piece, at, inside, piece.own(chosen[at]), piece.own(columns[inside])

        return table, parts()


def _used(piece: Piece, first: int, last: int) -> tuple[int, int]:
    """The text's keys that rows first to last - 1 of a piece may use."""
    record = piece.attention
    start, stop = 0, record.key_length
    if record.mask is not None:
        shift = piece.lead - piece.start
        start, stop = record.mask.key_range(
            first + shift, last - 1 + shift, record.query_length, record.key_length
        )
    start, stop = start - piece.lead + piece.start, stop - piece.lead + piece.start
    return max(start, piece.start), min(stop, piece.stop)


def _between(places: Tensor, start: int, stop: int) -> Tensor:
    return ((places >= start) & (places < stop)).nonzero().flatten()
