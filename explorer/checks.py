"""What must hold for weights, measured: rows sum to 1, forbidden keys have none."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from explorer.metrics import BLOCK_WEIGHTS, MeasuredStack


@dataclass(frozen=True)
class Invariants:
    """What was found in all heads of a stack, padded queries left out."""

    row_sum_deviation: float
    """The largest |row sum − 1|; with sinks, by how much a row exceeds 1."""
    forbidden_weight: float
    """The largest weight on a key that the mask forbids."""
    masked_rows: int
    """Rows with no key at all, counted once for all heads."""
    not_finite: int
    """Weights that are NaN or infinite."""
    sink_weight: float
    """The mean share of a row that a learned sink takes; 0 for models without one."""


def invariants(stack: MeasuredStack) -> Invariants:
    """Measures every weight of a stack, in blocks of rows."""
    deviation = forbidden = sink = 0.0
    masked_rows = not_finite = 0
    live_queries = ~stack.padded_queries
    for layer in stack.layers:
        has_sink = getattr(layer, "sinks", None) is not None
        lacking, rows_seen, masked = 0.0, 0, 0
        step = max(1, BLOCK_WEIGHTS // (layer.n_heads * layer.key_length))
        for start in range(0, layer.query_length, step):
            rows = slice(start, min(start + step, layer.query_length))
            weights = layer.weights(rows=rows)
            allowed = layer.allowed(rows=rows)
            some_key = allowed.any(-1)  # (n_heads or 1, rows)
            live = live_queries[rows].to(weights.device)
            masked += int((~some_key & live).any(0).sum())
            live = (live & some_key).expand(weights.shape[:2])
            if not bool(live.any()):
                continue
            over = weights.sum(-1)[live] - 1
            deviation = max(deviation, float((over if has_sink else over.abs()).nan_to_num().max()))
            lacking += float(-over.sum()) if has_sink else 0.0
            rows_seen += int(live.sum())
            barred = torch.where(allowed | ~live[..., None], 0.0, weights)
            forbidden = max(forbidden, float(barred.nan_to_num().max()))
            not_finite += int((~weights[live].isfinite()).sum())
        masked_rows = max(masked_rows, masked)
        sink += lacking / max(rows_seen, 1) / len(stack.layers)
    return Invariants(deviation, forbidden, masked_rows, not_finite, sink)
