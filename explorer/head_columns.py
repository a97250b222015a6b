"""What the numbers of the page "Real heads" are called, their units, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Column(NamedTuple):
    """One number of a head. Two of the same quantity can be compared along a line y = x."""

    title: str
    quantity: str
    unit: str
    meaning: str
    log: bool = False
    """Whether it reads best on a logarithmic axis."""
    format: str = "%.3g"


OTHER = "_compared"
"""What the names of softmax's numbers end with where they belong to the compared scale."""

_SCORES = ("score variance", "score²")
_DOTS = ("variance of q·k", "dot²")

_MEASURED: dict[str, Column] = {
    "scores_row_predicted": Column(
        "Score variance from size alone",
        *_SCORES,
        "What the score variance would be if the components of q and k kept their measured means "
        "and variances but were independent: scale² · Σᵢ (s²_qᵢ + m²_qᵢ) s²_kᵢ.",
        True,
    ),
    "scores_row_variance": Column(
        "Score variance",
        *_SCORES,
        "Variance of one query's scores over the keys it may use, the mean over queries: this is "
        "what softmax sees.",
        True,
    ),
    "scores_variance": Column(
        "Score variance, all pairs",
        *_SCORES,
        "Variance over all allowed pairs of query and key. It also holds how the rows' means "
        "differ, which softmax does not see.",
        True,
    ),
    "scores_predicted": Column(
        "Score variance from size alone, all pairs",
        *_SCORES,
        "The same prediction over all pairs: scale² · Σᵢ (s²_qᵢ + m²_qᵢ)(s²_kᵢ + m²_kᵢ) − "
        "m²_qᵢ m²_kᵢ.",
        True,
    ),
    "scores_assumed": Column(
        "Score variance, assumed",
        *_SCORES,
        "d_k · scale²: independent components with mean 0 and variance 1. It is 1 for 1/√d_k.",
    ),
    "scores_mean": Column("Mean score", "score", "score", "Over all allowed pairs."),
    "dots_row_variance": Column(
        "Variance of q·k",
        *_DOTS,
        "The same as the score variance, before any scale, bias or soft cap.",
        True,
    ),
    "dots_row_predicted": Column(
        "Variance of q·k from size alone",
        *_DOTS,
        "What the sizes of q's and k's components give, if these were independent.",
        True,
    ),
    "dots_variance": Column(
        "Variance of q·k, all pairs", *_DOTS, "Over all allowed pairs of query and key.", True
    ),
    "dots_predicted": Column(
        "Variance of q·k from size alone, all pairs", *_DOTS, "The prediction over all pairs.", True
    ),
    "dots_assumed": Column(
        "Variance of q·k, assumed",
        *_DOTS,
        "d_k: independent components with mean 0 and variance 1.",
    ),
    "dots_mean": Column("Mean of q·k", "dot", "dot", "Over all allowed pairs."),
}

_SOFTMAX: dict[str, Column] = {
    "entropy_share": Column(
        "Entropy",
        "entropy",
        "share of 1",
        "How widely a query spreads its weights, as a share of the log of the keys it may use: 1 "
        "for equal weights, 0 for one key. The mean over queries.",
        format="%.3f",
    ),
    "largest_weight": Column(
        "Largest weight",
        "weight",
        "share of 1",
        "The largest weight of a row, the mean over queries.",
        format="%.3f",
    ),
    "effective_keys": Column(
        "Effective keys",
        "keys",
        "keys",
        "exp of the entropy: as many keys with equal weights spread as widely. The mean over "
        "queries.",
        True,
        format="%.2f",
    ),
}

COLUMNS: Mapping[str, Column] = {
    **_MEASURED,
    **{
        name: column._replace(title=f"{column.title}, own scale")
        for name, column in _SOFTMAX.items()
    },
    **{
        f"{name}{OTHER}": column._replace(title=f"{column.title}, compared scale")
        for name, column in _SOFTMAX.items()
    },
    "layer": Column("Layer", "layer", "number", "The layer's number.", format="%d"),
}
"""By name in the tables of `head_scaling`; softmax's numbers for two scales."""

ASSUMED: Mapping[str, str] = {
    "score variance": "scores_assumed",
    "variance of q·k": "dots_assumed",
}
"""Which column holds what is assumed of a quantity."""

AXES: tuple[str, ...] = tuple(name for name in COLUMNS if not name.endswith("assumed"))
"""What a scatter can show: what is assumed is the same for all heads."""
