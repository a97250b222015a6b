"""What the heads of a model have in common, read from the table of their variances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd


class Finding(NamedTuple):
    """What the heads of a stack have in common, from their row variances."""

    heads: int
    """Heads with a number."""
    low: tuple[float, int, int]
    """The smallest row variance of the scores, its layer and head."""
    high: tuple[float, int, int]
    above: int
    """Heads whose scores spread more than the assumption says."""
    more_than_size: int
    """Heads that spread more than the sizes of their queries and keys explain."""
    size: float
    """The middle head's predicted row variance, as a multiple of what is assumed."""
    together: float
    """The middle head's row variance of dots, as a multiple of what is predicted."""


def finding(table: pd.DataFrame) -> Finding | None:
    """What a `variance_table` says; None where no head has a number."""
    kept = table[np.isfinite(table["scores_row_variance"])]
    if kept.empty:
        return None
    ordered = kept.sort_values("scores_row_variance", kind="stable")
    ends = [
        (float(row["scores_row_variance"]), int(row["layer"]), int(row["head"]))
        for _, row in ordered.iloc[[0, -1]].iterrows()
    ]
    return Finding(
        len(kept),
        ends[0],
        ends[1],
        int((kept["scores_row_variance"] > kept["scores_assumed"]).sum()),
        int((kept["dots_row_variance"] > kept["dots_row_predicted"]).sum()),
        float((kept["dots_row_predicted"] / kept["dots_assumed"]).median()),
        float((kept["dots_row_variance"] / kept["dots_row_predicted"]).median()),
    )
