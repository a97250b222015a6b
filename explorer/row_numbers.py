"""The quick metrics of each query, from what one pass over the tiles has kept.

What each number says stands in metric_table.py. They are the same numbers as in row_measures.py,
found without a row of weights: tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from explorer.attention import Attention, scored
from explorer.cores import over_cores
from explorer.masks import Mask
from explorer.metric_table import BY_NAME, QUICK
from explorer.pooled_pass import NEIGHBOURS, Found
from explorer.pooling import Progress
from explorer.row_measures import TokenMarks

CELLS = 1 << 19
"""Numbers looked at at once for the weight on queries' own tokens: 2 MiB."""

PerQuery = Float[Tensor, "n_heads query_length"]


def _kinds(marks: TokenMarks) -> dict[str, Tensor]:
    """The kinds of keys of which there are any, (n_k,) each."""
    kinds = {"special": marks.special, "punctuation": marks.punctuation}
    return {name: keys for name, keys in kinds.items() if bool(keys.any())}


def marked_keys(marks: TokenMarks) -> Bool[Tensor, "kinds key_length"] | None:
    """The keys whose weight a pass has to sum for `numbers_of`, a row for each kind."""
    there = list(_kinds(marks).values())
    return torch.stack(there) if there else None


def numbers_of(
    attention: Attention,
    found: Found,
    marks: TokenMarks | None,
    same_sequence: bool,
    progress: Progress | None = None,
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
        numbers |= zip(_kinds(marks), found.on_marked, strict=True)
        if same_sequence:
            numbers |= on_own_token(attention, marks, progress)
    blank = torch.full_like(sums["sum"], torch.nan)
    kept = {
        name: blank
        if BY_NAME[name].same_sequence and not same_sequence
        else numbers.get(name, blank)
        for name in QUICK
    }
    dead = found.counts == 0
    if not bool(dead.any()):
        return kept
    return {name: values.masked_fill(dead, torch.nan) for name, values in kept.items()}


class _Group(NamedTuple):
    """Tokens that stand equally often: G of them, at `a` queries and `c` keys each."""

    queries: Tensor  # (G, a)
    keys: Tensor  # (G, c)
    heads: int
    """How many heads are looked at at once."""


def on_own_token(
    attention: Attention, marks: TokenMarks, progress: Progress | None = None
) -> dict[str, PerQuery]:
    """The weight on other places of the query's own token, on earlier ones, and on what followed
    those: "same", "duplicate" and "induction". NaN where a query may use none of them.

    Only the keys that are the same token, or follow it, are looked at: in a text some hundredth
    of all weights. `attention` has its row_lse.
    """
    n_q, n_k = attention.query_length, attention.key_length
    dtype = torch.promote_types(attention.query.dtype, torch.float32)
    shape = (attention.n_heads, n_q)
    blank = torch.full(shape, torch.nan, dtype=dtype, device=attention.query.device)
    found = {name: blank.clone() for name in ("same", "duplicate", "induction")}

    finite = bool(attention.key.sum(dtype=dtype).isfinite())  # isfinite() of all is a copy

    @torch.no_grad()
    def look(group: _Group) -> None:
        queries, keys = group.queries[..., None], group.keys[:, None]  # (G, a, 1), (G, 1, c)
        both = torch.cat([keys, (keys + 1).clamp(max=n_k - 1)], -1)  # the token, and what follows
        allowed = torch.ones_like(both, dtype=torch.bool)[None]  # (1, G, 1, 2c)
        if attention.mask is not None:
            allowed = attention.mask.at(queries, both, n_q, n_k)
            allowed = allowed.reshape(-1, *allowed.shape[-3:])  # (h or 1, G, a, 2c)
        ahead, c = keys - (queries + n_k - n_q), keys.shape[2]  # (G, a, c)
        same, followed = allowed[..., :c], allowed[..., c:]
        wanted = {
            "same": ((ahead != 0) & same, slice(0, c)),
            "duplicate": ((ahead < 0) & same, slice(0, c)),
            "induction": ((ahead < 0) & (keys + 1 < n_k) & followed, slice(c, 2 * c)),
        }
        for name, (cells, part) in wanted.items():
            there = cells.any(-1)  # (h or 1, G, a)
            found[name][:, group.queries] = torch.where(there, 0.0, torch.nan).to(dtype)
            wanted[name] = cells.to(dtype), part
        for start in range(0, attention.n_heads, group.heads):
            heads = slice(start, min(start + group.heads, attention.n_heads))
            weights = _weights(attention, heads, queries, both)  # (h, G, a, 2c)
            for name, (cells, part) in wanted.items():
                own = cells if len(cells) == 1 else cells[heads]
                counted = weights[..., part] * own
                if not finite:  # a forbidden key that is not a number is no part of the sum
                    counted = torch.where(own > 0, counted, 0.0)
                # NaN, where there is no such key, stays NaN.
                found[name][heads, group.queries] += counted.sum(-1)

    groups = list(_groups(attention, marks))
    for done, _ in enumerate(over_cores(look, groups), 1):
        if progress is not None:
            progress(done / len(groups))
    return found


def _groups(attention: Attention, marks: TokenMarks) -> Iterator[_Group]:
    """All tokens that stand more than once among the keys, in groups of at most CELLS weights."""
    device, n_q, n_k = attention.query.device, attention.query_length, attention.key_length
    codes = int(max(marks.query_codes.max(), marks.key_codes.max())) + 1
    at_queries, at_keys = (
        (each.argsort(stable=True), torch.bincount(each, minlength=codes))
        for each in (marks.query_codes, marks.key_codes)
    )
    starts = [counts.cumsum(0) - counts for _, counts in (at_queries, at_keys)]
    sizes = torch.stack([at_queries[1], at_keys[1]], 1)  # (codes, 2)
    repeated = ((sizes[:, 0] > 0) & (sizes[:, 1] > 1)).nonzero().flatten()
    for a, c in torch.unique(sizes[repeated], dim=0).tolist():
        alike = repeated[(sizes[repeated] == torch.tensor([a, c])).all(1)]  # (G,)
        queries = at_queries[0][starts[0][alike, None] + torch.arange(a)]  # (G, a)
        keys = at_keys[0][starts[1][alike, None] + torch.arange(c)]  # (G, c)
        queries, keys = queries.to(device), keys.to(device)
        # The vectors can be more than the weights.
        vectors, share = (a + 2 * c) * attention.d_k, attention.n_heads // attention.n_kv_heads
        heads = min(max(CELLS // vectors // share, 1) * share, attention.n_heads)
        cells = CELLS // max(heads, 8)  # the mask is asked with int64 for each
        if a * c > cells:
            for one, own in zip(queries, keys, strict=True):
                yield from _in_reach(attention.mask, one, own, (n_q, n_k), cells, heads)
            continue
        together = max(1, min(cells // (a * c), CELLS // (heads * vectors)))
        for some, some_keys in zip(
            torch.split(queries, together), torch.split(keys, together), strict=True
        ):
            yield _Group(some, some_keys, heads)


def _in_reach(
    mask: Mask | None,
    queries: Tensor,
    keys: Tensor,
    lengths: tuple[int, int],
    cells: int,
    heads: int,
) -> Iterator[_Group]:
    """A frequent token in parts of its queries, each with the keys that these can reach.

    Both are in the order of the text. Under a window a frequent token costs so what it would in
    a short text.
    """
    start = 0
    while start < len(queries):
        some = queries[start : start + 128]
        first, last = 0, len(keys)
        if mask is not None:
            low, high = mask.key_range(int(some[0]), int(some[-1]), *lengths)
            # The key before the first counts as well: what follows it may be in reach.
            first, last = torch.searchsorted(keys, torch.tensor([low - 1, high])).tolist()
        if first < last:
            some = some[: max(1, cells // (last - first))]
            yield _Group(some[None], keys[None, first:last], heads)
        start += len(some)


def _weights(attention: Attention, heads: slice, queries: Tensor, keys: Tensor) -> Tensor:
    """Weights at the cells of G groups, (h, G, a, c), as if no mask forbade them.

    The heads are those of whole key/value heads. A forbidden score may be far above the others
    of its row; what comes out is at most 1 there.
    """
    share = attention.n_heads // attention.n_kv_heads
    assert attention.scale is not None and attention.row_lse is not None
    q = _at(attention.query[heads], queries[..., 0])  # (h, G, a, d)
    k = _at(attention.key[heads.start // share : heads.stop // share], keys[:, 0])  # (…, G, c, d)
    k = k if share == 1 else k.repeat_interleave(share, 0)
    dtype = torch.promote_types(q.dtype, torch.float32)
    scores = (q.to(dtype) * attention.scale) @ k.to(dtype).transpose(2, 3)
    bias = attention.bias
    if bias is not None:
        bias = bias if bias.shape[0] == 1 else bias[heads]
        bias = bias[:, queries if bias.shape[1] > 1 else 0, keys if bias.shape[2] > 1 else 0]
    if bias is not None or attention.softcap is not None:
        scores = scored(scores, 1.0, bias, attention.softcap)
    lse = _at(attention.row_lse[heads, :, None], queries[..., 0]).to(dtype)  # (h, G, a, 1)
    return scores.sub_(lse.masked_fill(lse == -torch.inf, 0.0)).clamp_(max=0.0).exp_()


def _at(vectors: Tensor, places: Tensor) -> Tensor:
    """The vectors (h, n, d) at some places (G, c), as (h, G, c, d)."""
    chosen = vectors.index_select(1, places.flatten())
    return chosen.view(len(vectors), *places.shape, vectors.shape[2])
