"""How one head's scores are spread about their row's mean, which softmax does not see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool
from torch import Tensor

from explorer.attention import Attention
from explorer.head_scaling import blocks


class Histogram(NamedTuple):
    """Bins of equal width, the middle one about 0, and the density in each: its area is 1."""

    edges: npt.NDArray[np.float64]
    density: npt.NDArray[np.float64]


@torch.no_grad()
def score_histogram(
    layer: Attention,
    head: int,
    padded_queries: Bool[Tensor, " query_length"] | None = None,
    bins: int = 41,
) -> Histogram | None:
    """A head's scores, each less the mean of its row; None where no row has two keys.

    Queries that are padding are left out, and keys that the mask forbids. The scores are computed
    twice, for the reach and for the counts, so that memory stays at a block of rows.
    """
    reach, any_row = 0.0, False
    for apart in _apart(layer, head, padded_queries):
        if apart.numel():
            reach, any_row = max(reach, float(apart.abs().max())), True
    if not any_row:
        return None
    reach = reach or 0.5  # all scores of a row are equal
    edges = np.linspace(-reach, reach, bins + 1)
    counts = np.zeros(bins)
    for apart in _apart(layer, head, padded_queries):
        counts += np.histogram(apart.cpu().double().numpy().clip(-reach, reach), edges)[0]
    return Histogram(edges, counts / counts.sum() / (edges[1] - edges[0]))


def _apart(layer: Attention, head: int, padded: Tensor | None) -> Iterator[Tensor]:
    """The scores less their row's mean, a block of rows at a time, flat."""
    for block in blocks(layer, padded, [head]):
        scores = layer.scores([head], block.rows)[0]  # (rows, n_k)
        allowed = block.allowed[0]
        mean = scores.masked_fill(~allowed, 0.0).sum(-1) / allowed.sum(-1).clamp(min=1)
        counted = block.counted[0] & mean.isfinite()
        yield (scores - mean[:, None])[counted[:, None] & allowed]
