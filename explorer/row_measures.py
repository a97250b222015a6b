"""What one block of a head's rows says: pure functions, one number for each head and query.

NaN where a row cannot be judged; whoever averages leaves it out. Their names, units and sources
are in metric_table.py.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PerQuery = Float[Tensor, "n_heads rows"]


@runtime_checkable
class ReadTokens(Protocol):
    """What a measure reads of tokens."""

    @property
    def texts(self) -> Sequence[str]: ...
    @property
    def raws(self) -> Sequence[str]: ...
    @property
    def special(self) -> Sequence[bool]: ...
    @property
    def padding(self) -> Sequence[bool]: ...


class TokenMarks(NamedTuple):
    """Tokens as numbers: equal tokens have equal codes."""

    query_codes: Int[Tensor, " query_length"]
    key_codes: Int[Tensor, " key_length"]
    special: Bool[Tensor, " key_length"]
    punctuation: Bool[Tensor, " key_length"]


class Rows(NamedTuple):
    """Some rows of a layer, as a metric sees them."""

    weights: Float[Tensor, "n_heads rows key_length"]
    allowed: Bool[Tensor, "#n_heads rows key_length"]
    positions: Float[Tensor, " rows"]
    """Each query's own position among the keys; the queries are the last ones."""
    codes: Int[Tensor, " rows"] | None = None
    """The queries' tokens, where they are known."""
    marks: TokenMarks | None = None
    scores: Float[Tensor, "n_heads rows key_length"] | None = None
    """Scaled scores, where a metric asks for them and the layer has them."""


def marks_of(query_tokens: ReadTokens, key_tokens: ReadTokens) -> TokenMarks:
    """The tokens of a stack as numbers. Tokens are equal where their raw forms are."""
    code: dict[str, int] = {}
    for raw in (*query_tokens.raws, *key_tokens.raws):
        code.setdefault(raw, len(code))
    pairs = zip(key_tokens.texts, key_tokens.raws, key_tokens.special, strict=True)
    filling = zip(key_tokens.special, key_tokens.padding, strict=True)
    return TokenMarks(
        torch.tensor([code[raw] for raw in query_tokens.raws]),
        torch.tensor([code[raw] for raw in key_tokens.raws]),
        torch.tensor([special and not padding for special, padding in filling]),
        torch.tensor([not hide and is_punctuation(text, raw) for text, raw, hide in pairs]),
    )


def is_punctuation(text: str, raw: str) -> bool:
    """Whether a token is of punctuation only (Unicode's P), as a person reads it."""
    if "·" in text and "·" not in raw:
        return False  # a space made visible
    return all(unicodedata.category(letter)[0] == "P" for letter in text)


# How wide and how far


def entropy(rows: Rows) -> PerQuery:
    """How widely a query spreads its weights, in nats: 0 for one key, log n for n equal ones."""
    spread: Tensor = -torch.special.xlogy(rows.weights, rows.weights).sum(-1)
    return spread


def entropy_share(rows: Rows) -> PerQuery:
    """Entropy as a share of log(keys the query may use); NaN where it may use one only."""
    n_allowed = rows.allowed.sum(-1)  # (n_heads or 1, rows)
    largest = n_allowed.to(rows.weights.dtype).log()
    return torch.where(n_allowed > 1, entropy(rows) / largest, torch.nan)


def distance(rows: Rows) -> PerQuery:
    """How far from itself a query looks, in tokens: |query − key| averaged by weight."""
    return (rows.weights * _ahead(rows).abs()).sum(-1)


def reach_back(rows: Rows) -> PerQuery:
    """The part of the distance that lies before the query, in tokens."""
    return (rows.weights * _ahead(rows).clamp(max=0).neg()).sum(-1)


def reach_ahead(rows: Rows) -> PerQuery:
    """The part of the distance that lies after the query, in tokens."""
    return (rows.weights * _ahead(rows).clamp(min=0)).sum(-1)


def largest_weight(rows: Rows) -> PerQuery:
    """The query's largest weight, a share of 1."""
    return rows.weights.amax(-1)


def sink_weight(rows: Rows) -> PerQuery:
    """What a row lacks to 1: the share that a model's sink takes."""
    return 1 - rows.weights.sum(-1)


# Where to: places


def weight_on_first(rows: Rows) -> PerQuery:
    """The weight on the first key, a share of 1."""
    return rows.weights[..., 0]


def weight_on_self(rows: Rows) -> PerQuery:
    """The weight on the query's own position, a share of 1; NaN where it is not among the keys."""
    return _weight_at(rows, 0)


def weight_on_previous(rows: Rows) -> PerQuery:
    """The weight on the position before the query's, a share of 1; NaN for the first query."""
    return _weight_at(rows, -1)


def weight_on_next(rows: Rows) -> PerQuery:
    """The weight on the position after the query's, a share of 1; NaN for the last query."""
    return _weight_at(rows, 1)


# Where to: tokens


def weight_on_special(rows: Rows) -> PerQuery:
    """The weight on special tokens, a share of 1; NaN where the keys hold none."""
    return _weight_on(rows, None if rows.marks is None else rows.marks.special)


def weight_on_punctuation(rows: Rows) -> PerQuery:
    """The weight on punctuation, a share of 1; NaN where the keys hold none."""
    return _weight_on(rows, None if rows.marks is None else rows.marks.punctuation)


def weight_on_same(rows: Rows) -> PerQuery:
    """The weight on other places of the query's own token; NaN where it stands there once."""
    return _weight_where(rows, _same(rows), _ahead(rows) != 0)


def weight_on_duplicate(rows: Rows) -> PerQuery:
    """The weight on earlier places of the query's own token; NaN where there is none."""
    return _weight_where(rows, _same(rows), _ahead(rows) < 0)


def weight_on_induction(rows: Rows) -> PerQuery:
    """The weight on what followed the query's token earlier; NaN where it was not there before."""
    same = _same(rows)
    if same is None:
        return _unknown(rows)
    followed = torch.zeros_like(same)
    followed[:, 1:] = same[:, :-1]  # the key before this one is the query's own token …
    return _weight_where(rows, followed, _ahead(rows) <= 0)  # … and stands before the query


# Before softmax, and the whole map


def score_variance(rows: Rows) -> PerQuery:
    """The variance of a query's scaled scores over the keys it may use; NaN for one key."""
    if rows.scores is None:
        return _unknown(rows)
    n_allowed = rows.allowed.sum(-1)  # (n_heads or 1, rows)
    scores = torch.where(rows.allowed, rows.scores, 0.0)
    mean = scores.sum(-1) / n_allowed
    squares = torch.where(rows.allowed, (rows.scores - mean[..., None]).square(), 0.0)
    return torch.where(n_allowed > 1, squares.sum(-1) / n_allowed, torch.nan)


def effective_rank(
    weights: Float[Tensor, "n_heads query_length key_length"],
) -> Float[Tensor, " n_heads"]:
    """How many directions a map has: exp of the entropy of its singular values' shares.

    1 where all rows are alike, n for n rows that share nothing; NaN for a map of zeros. Rows of
    zeros change nothing.
    """
    values = torch.linalg.svdvals(weights.double())  # (h, min(n_q, n_k))
    shares = values / values.sum(-1, keepdim=True)
    spread: Tensor = -torch.special.xlogy(shares, shares).sum(-1)
    return spread.exp()


def _ahead(rows: Rows) -> Float[Tensor, "rows key_length"]:
    """How many places each key stands after the query; negative before it."""
    keys = torch.arange(rows.weights.shape[-1], device=rows.weights.device)
    return keys - rows.positions[:, None]


def _weight_at(rows: Rows, offset: int) -> PerQuery:
    """The weight on the key `offset` places from the query, NaN where there is none."""
    key = rows.positions.long() + offset  # (rows,)
    there = (key >= 0) & (key < rows.weights.shape[-1])
    index = key.clamp(0, rows.weights.shape[-1] - 1).expand(rows.weights.shape[0], -1)
    found = rows.weights.gather(-1, index[..., None])[..., 0]
    return torch.where(there, found, torch.nan)


def _weight_on(rows: Rows, keys: Bool[Tensor, " key_length"] | None) -> PerQuery:
    """The weight on some keys, the same for all queries; NaN where there are none."""
    if keys is None or not bool(keys.any()):
        return _unknown(rows)
    return rows.weights[..., keys.to(rows.weights.device)].sum(-1)


def _same(rows: Rows) -> Bool[Tensor, "rows key_length"] | None:
    """True where the key is the query's own token."""
    if rows.marks is None or rows.codes is None:
        return None
    return rows.codes[:, None] == rows.marks.key_codes.to(rows.codes.device)


def _weight_where(
    rows: Rows,
    cells: Bool[Tensor, "rows key_length"] | None,
    place: Bool[Tensor, "rows key_length"],
) -> PerQuery:
    """The weight on the cells at a place; NaN for a query that may use none of them."""
    if cells is None:
        return _unknown(rows)
    cells = cells & place
    found = torch.where(cells, rows.weights, 0.0).sum(-1)  # (n_heads, rows)
    return torch.where((cells & rows.allowed).any(-1), found, torch.nan)


def _unknown(rows: Rows) -> PerQuery:
    return rows.weights.new_full(rows.weights.shape[:2], torch.nan)
