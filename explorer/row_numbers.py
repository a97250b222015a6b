"""The quick metrics of each query, from what one pass over the tiles has kept.

What each number says stands in metric_table.py. They are the same numbers as in row_measures.py,
found without a row of weights: tests hold the two together.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.attention import Attention
from explorer.metric_table import BY_NAME, QUICK
from explorer.pooling import NEIGHBOURS, Found
from explorer.row_measures import TokenMarks
from explorer.streaming import over_cores

ROWS = 128
"""Queries looked at together for the weight on their own token."""
CELLS = 1 << 20
"""Weights made at once there: 4 MiB."""

PerQuery = Float[Tensor, "n_heads query_length"]


def numbers_of(
    attention: Attention, found: Found, marks: TokenMarks | None, same_sequence: bool
) -> dict[str, PerQuery]:
    """Every quick metric of every query. `attention` has its row_lse; `found` is of all of it."""
    sums, n_k = found.of_rows, attention.key_length
    own = torch.arange(attention.query_length, device=found.lse.device)
    own += n_k - attention.query_length  # each query's own place among the keys
    most = found.counts.to(found.lse.dtype).log()  # (h or 1, n_q)
    numbers = {
        "entropy": sums["entropy"],
        "entropy_share": torch.where(found.counts > 1, sums["entropy"] / most, torch.nan),
        "distance": sums["back"] + sums["ahead"],
        "reach_back": sums["back"],
        "reach_ahead": sums["ahead"],
        "largest_weight": sums["largest"],
        "first": sums["first"],
        "sink": 1 - sums["sum"],
    }
    for name, step in NEIGHBOURS.items():
        there = (own + step >= 0) & (own + step < n_k)
        numbers[name] = torch.where(there, sums[name], torch.nan)
    if marks is not None:
        for name, keys, values in (
            ("special", marks.special, found.on_features[0]),
            ("punctuation", marks.punctuation, found.on_features[1]),
        ):
            if bool(keys.any()):
                numbers[name] = values
        if same_sequence:
            numbers |= on_own_token(attention, marks)
    blank = torch.full_like(sums["sum"], torch.nan)
    kept = {
        name: blank
        if BY_NAME[name].same_sequence and not same_sequence
        else numbers.get(name, blank)
        for name in QUICK
    }
    dead = found.counts == 0
    return {name: values.masked_fill(dead, torch.nan) for name, values in kept.items()}


def on_own_token(attention: Attention, marks: TokenMarks) -> dict[str, PerQuery]:
    """The weight on other places of the query's own token, on earlier ones, and on what followed
    those: "same", "duplicate" and "induction". NaN where a query may use none of them.

    Queries are taken in the order of their tokens, so that only the few keys that are the same
    token, or follow it, are looked at: in a text some hundredth of all weights. `attention` has
    its row_lse.
    """
    assert attention.row_lse is not None
    device, shift = attention.query.device, attention.key_length - attention.query_length
    key_codes, query_codes = marks.key_codes.to(device), marks.query_codes.to(device)
    before = torch.cat([key_codes.new_full((1,), -1), key_codes[:-1]])  # the token before a key
    counts = torch.bincount(key_codes, minlength=int(query_codes.max()) + 1)
    queries = (counts[query_codes] > 1).nonzero().flatten()
    queries = queries[query_codes[queries].argsort(stable=True)]
    shape = (attention.n_heads, attention.query_length)
    dtype = torch.promote_types(attention.query.dtype, torch.float32)
    blank = torch.full(shape, torch.nan, dtype=dtype, device=device)
    found = {name: blank.clone() for name in ("same", "duplicate", "induction")}

    @torch.no_grad()
    def look(rows: Tensor) -> None:
        mine = torch.isin(key_codes, query_codes[rows])
        mine[1:] |= mine[:-1].clone()
        keys = mine.nonzero().flatten()
        for some in torch.split(rows, max(1, CELLS // (attention.n_heads * len(keys)))):
            weights = attention.weights(None, some, keys)  # (h, rows, keys)
            allowed = attention.allowed(None, some, keys)  # (h or 1, rows, keys)
            codes, ahead = query_codes[some, None], keys - (some[:, None] + shift)
            same, followed = codes == key_codes[keys], codes == before[keys]
            for name, cells in (
                ("same", same & (ahead != 0)),
                ("duplicate", same & (ahead < 0)),
                ("induction", followed & (ahead <= 0)),
            ):
                share = torch.where(cells, weights, 0.0).sum(-1)  # (h, rows)
                found[name][:, some] = torch.where((cells & allowed).any(-1), share, torch.nan)

    over_cores(look, torch.split(queries, ROWS))
    return found
