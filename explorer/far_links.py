"""Who looks far away, and where: the largest weights beyond a distance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from explorer.maps import Overview
from explorer.masks import Positions, positions

ROUNDING = 1e-5
"""Share by which two computations of one weight may differ: what is nearer counts as equal."""


@torch.no_grad()
def far_links(
    overview: Overview, distance: int, most: int = 50, heads: Positions = None
) -> pd.DataFrame:
    """The largest weights with |query − key| ≥ distance, in both directions, the largest first.

    Columns: head, query, key, weight, distance (in tokens). Exact: a bin of the overview is
    passed over only where its largest weight can't enter the list; where weights are equal but
    for rounding, some of them are listed. Fewer than `most` rows where there are no more weights
    above 0. Raises ValueError for a distance below 0 or most < 1.
    """
    if distance < 0:
        raise ValueError(f"distance: got {distance}; it is 0 tokens or more.")
    if most < 1:
        raise ValueError(f"most: got {most}; a list has at least 1 row.")
    layer, picture = overview.attention, overview.picture
    which = positions(heads, layer.n_heads, "heads")
    shift = layer.key_length - layer.query_length  # the queries are the last positions
    rows, keys = (torch.tensor(edges) for edges in (picture.rows, picture.keys))
    bounds = picture.largest.cpu()[which]  # (h, R, K)
    no_number = bounds.isnan()
    # Beside a weight that is not a number others may stand; in a head of such alone none do.
    bounds = bounds.masked_fill(no_number, torch.inf)
    bounds = bounds.masked_fill(no_number.all(-1).all(-1)[:, None, None], 0.0)
    farthest = torch.maximum(
        (rows[1:] - 1 + shift)[:, None] - keys[:-1], (keys[1:] - 1) - (rows[:-1] + shift)[:, None]
    )  # (R, K)
    bounds = bounds.masked_fill(farthest < distance, 0.0)
    in_bin = bounds.amax(0).flatten()  # (R · K,): the largest over the heads
    found = _Found(most)
    for at in in_bin.argsort(descending=True, stable=True).tolist():
        row, key = divmod(at, len(keys) - 1)
        able = bounds[:, row, key] > found.least
        if not bool(able.any()):
            if float(in_bin[at]) <= found.least:
                break
            continue
        within = which[able]
        r, k = (int(rows[row]), int(rows[row + 1])), (int(keys[key]), int(keys[key + 1]))
        weights = layer.weights(within, slice(*r), slice(*k)).cpu()  # (h, rows, keys)
        found.add(weights, within, torch.arange(*r), torch.arange(*k), shift, distance)
    return found.table(shift)


class _Found:
    """The largest weights so far."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weights = torch.zeros(0)
        self._places = torch.zeros(0, 3, dtype=torch.int64)  # head, query, key

    @property
    def least(self) -> float:
        """What a weight must exceed to enter."""
        if len(self._weights) < self._most:
            return 0.0
        return float(self._weights[-1]) * (1 + ROUNDING)

    def add(
        self, weights: Tensor, heads: Tensor, rows: Tensor, keys: Tensor, shift: int, distance: int
    ) -> None:
        """Takes in a window of weights."""
        far = (rows[:, None] + shift - keys).abs() >= distance
        chosen = (weights > (self._weights[-1] if self.least else 0.0)) & far
        h, r, k = chosen.nonzero(as_tuple=True)
        places = torch.stack([heads[h], rows[r], keys[k]], 1)
        values = torch.cat([self._weights.to(weights), weights[h, r, k]])
        places = torch.cat([self._places, places])
        order = np.lexsort((*places.numpy().T[::-1], -values.numpy()))[: self._most]
        self._weights, self._places = values[order], places[order]

    def table(self, shift: int) -> pd.DataFrame:
        places = self._places.numpy()
        columns = dict(zip(("head", "query", "key"), places.T, strict=True))
        away = np.abs(places[:, 1] + shift - places[:, 2])
        return pd.DataFrame({**columns, "weight": self._weights.numpy(), "distance": away})
