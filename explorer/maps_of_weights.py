"""Maps of layers that give weights alone: by blocks of rows, from each block's weights.

For models whose own weights are shown, for changed attention, and for a text read in pieces. A
layer that knows which keys some rows use (`used_keys`) is asked for these only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from explorer.metric_table import METRICS
from explorer.metrics import BLOCK_WEIGHTS, WeightedLayer
from explorer.pooled_pass import Found
from explorer.pooling import Progress
from explorer.row_measures import Rows, TokenMarks
from explorer.tiles import edges

Reduce = Literal["sum", "amax"]
QUICK_MEASURES = {
    metric.name: metric for metric in METRICS if metric.measure is not None and not metric.costly
}


def overview(
    layer: WeightedLayer,
    size: int,
    marks: TokenMarks | None,
    same_sequence: bool,
    progress: Progress | None,
) -> tuple[Found, dict[str, Tensor]]:
    """The whole map in bins and the quick metrics of each query."""
    per_query: dict[str, Tensor] = {}
    n_q, n_k = layer.query_length, layer.key_length
    measured = {
        name: metric
        for name, metric in QUICK_MEASURES.items()
        if same_sequence or not metric.same_sequence
    }

    def look(rows: slice, keys: slice, weights: Tensor, allowed: Tensor) -> None:
        places = torch.arange(rows.start, rows.stop, device=weights.device) + (n_k - n_q)
        block = Rows(
            weights,
            allowed.to(weights.device),
            (places - keys.start).to(weights.dtype),
            None if marks is None else marks.query_codes[rows].to(weights.device),
            None if marks is None else _marks_for(marks, keys),
        )
        dead = ~block.allowed.any(-1)
        for name, metric in measured.items():
            assert metric.measure is not None  # by the choice above
            values = metric.measure(block).masked_fill(dead, torch.nan)
            if name == "first" and keys.start:  # the first key is not among these
                values = torch.where(values.isnan(), values, 0.0)
            kept = per_query.setdefault(name, values.new_full((len(values), n_q), torch.nan))
            kept[:, rows] = values

    heads = list(range(layer.n_heads))
    found = pooled(layer, size, heads, (0, n_q), (0, n_k), progress, look)
    for name in QUICK_MEASURES:
        per_query.setdefault(name, torch.full((layer.n_heads, n_q), torch.nan))
    return found, per_query


def _marks_for(marks: TokenMarks, keys: slice) -> TokenMarks:
    return TokenMarks(
        marks.query_codes, marks.key_codes[keys], marks.special[keys], marks.punctuation[keys]
    )


Look = Callable[[slice, slice, Tensor, Tensor], None]
"""(rows, keys, weights (h, rows, keys), allowed (h or 1, rows, keys)) of one block."""


def pooled(
    layer: WeightedLayer,
    size: int,
    heads: Sequence[int],
    rows: tuple[int, int],
    keys: tuple[int, int],
    progress: Progress | None = None,
    look: Look | None = None,
) -> Found:
    """A window in at most size × size bins; `look` sees each block on the way."""
    row_bins, key_bins = _bins(rows, size), _bins(keys, size)
    n_rows, n_keys = int(row_bins[-1]) + 1, int(key_bins[-1]) + 1
    kept: Found | None = None
    left = torch.zeros(0)  # (h or 1, row bins, key bins): where the mask leaves anything
    for at, used in _blocks(layer, rows, keys):
        weights = layer.weights(heads, at, used)  # (h, rows, keys)
        allowed = layer.allowed(heads, at, used).to(weights.device)  # (h or 1, rows, keys)
        if kept is None:
            kept = _nothing(weights, len(allowed), rows[1] - rows[0], n_rows, n_keys)
            left = weights.new_zeros(len(allowed), n_rows, n_keys)
        inside = slice(at.start - rows[0], at.stop - rows[0])
        across = key_bins[used.start - keys[0] : used.stop - keys[0]].to(weights.device)
        down = row_bins[inside].to(weights.device)
        kept.counts[:, inside] = allowed.sum(-1)
        _put(weights, down, across, kept.mean, "sum")
        _put(weights, down, across, kept.largest, "amax")
        _put(allowed.to(weights.dtype), down, across, left, "amax")
        if look is not None:
            look(at, used, weights, allowed)
        if progress is not None:
            progress(inside.stop / (rows[1] - rows[0]))
    assert kept is not None  # a window has at least one row
    per_bin = torch.bincount(row_bins, minlength=n_rows).to(kept.mean)
    return kept._replace(mean=kept.mean / per_bin[:, None], forbidden=left == 0)


def forbidden(layer: WeightedLayer, size: int) -> Tensor:
    """True for the bins in which no query may use any key, (h or 1, row bins, key bins)."""
    rows, keys = (0, layer.query_length), (0, layer.key_length)
    row_bins, key_bins = _bins(rows, size), _bins(keys, size)
    left: Tensor | None = None
    for at, used in _blocks(layer, rows, keys):
        allowed = layer.allowed(None, at, used).float()  # (h or 1, rows, keys)
        if left is None:
            left = allowed.new_zeros(len(allowed), int(row_bins[-1]) + 1, int(key_bins[-1]) + 1)
        down, across = row_bins[at].to(left.device), key_bins[used].to(left.device)
        _put(allowed, down, across, left, "amax")
    assert left is not None  # a layer has at least one query
    return left == 0


def _nothing(like: Tensor, lead: int, length: int, n_rows: int, n_keys: int) -> Found:
    """Room for what is found."""
    empty, none = like.new_zeros(len(like), n_rows, n_keys), like.new_zeros(0)
    counts = torch.zeros(lead, length, dtype=torch.int64, device=like.device)
    return Found(none, counts, empty, empty.clone(), none > 0, {}, none)


def _blocks(
    layer: WeightedLayer, rows: tuple[int, int], keys: tuple[int, int]
) -> Iterator[tuple[slice, slice]]:
    """Runs of rows with the keys that they use, each with about as many weights as are looked at
    at once."""
    used_keys = getattr(layer, "used_keys", None)
    step = max(1, BLOCK_WEIGHTS // (layer.n_heads * (keys[1] - keys[0])))
    if used_keys is not None:
        step = 128
    for start in range(rows[0], rows[1], step):
        at = slice(start, min(start + step, rows[1]))
        used = slice(*keys)
        if used_keys is not None:
            own: slice = used_keys(at)
            first = min(max(own.start, keys[0]), keys[1])
            used = slice(first, min(max(own.stop, first), keys[1]))
        yield at, used


def _put(values: Tensor, down: Tensor, across: Tensor, kept: Tensor, how: Reduce) -> None:
    """Adds some rows' values to their bins, or keeps each bin's largest."""
    by_key = values.new_zeros(*values.shape[:2], kept.shape[-1])
    by_key.scatter_reduce_(2, across.expand_as(values), values, how)
    kept.scatter_reduce_(1, down[:, None].expand_as(by_key), by_key, how)


def _bins(span: tuple[int, int], size: int) -> Tensor:
    """The bin of each position of a span."""
    borders = torch.tensor(edges(span[1] - span[0], size))
    return torch.repeat_interleave(torch.arange(len(borders) - 1), borders.diff())
