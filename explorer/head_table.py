"""All heads' numbers as one table: its headers with units, its filter, its extremes, its file."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from explorer.metric_table import BY_NAME, METRICS, REPEATED, Metric

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula."""


def on_segment(name: str) -> str:
    """The name of a metric where it is measured on a random segment that repeats."""
    return f"segment_{name}"


ON_SEGMENT: tuple[Metric, ...] = tuple(
    replace(
        BY_NAME[name],
        name=on_segment(name),
        title=f"{BY_NAME[name].title}, repeated segment",
        meaning=f"{BY_NAME[name].meaning} Here on random tokens that repeat, not on your text.",
    )
    for name in REPEATED
)
"""The metrics of repeated.py, under names of their own."""

ALL_METRICS: dict[str, Metric] = {metric.name: metric for metric in (*METRICS, *ON_SEGMENT)}


class Extreme(NamedTuple):
    """A head and its number."""

    layer: int
    head: int
    value: float

    @property
    def name(self) -> str:
        """L5H1 for layer 5, head 1."""
        return f"L{self.layer}H{self.head}"


def extremes(table: pd.DataFrame, name: str) -> tuple[Extreme, Extreme] | None:
    """The heads with the lowest and the highest number; None where no head has one.

    Of equal ones the first.
    """
    known = table[table[name].map(math.isfinite)]
    if known.empty:
        return None
    rows = [known.iloc[int(at)] for at in (known[name].argmin(), known[name].argmax())]
    low, high = (Extreme(int(row["layer"]), int(row["head"]), float(row[name])) for row in rows)
    return low, high


def filtered(
    table: pd.DataFrame,
    *,
    layers: Collection[int] | None = None,
    name: str | None = None,
    at_least: int | float | None = None,
    at_most: int | float | None = None,
) -> pd.DataFrame:
    """The heads of some layers whose number lies in a range, its ends included.

    Where a range is given, heads without a number are left out. Raises ValueError for an unknown
    name.
    """
    if name is not None and name not in table:
        raise ValueError(f'name: there is no column "{name}" in this table.')
    kept = pd.Series(True, index=table.index)
    if layers is not None:
        kept &= table["layer"].isin(list(layers))
    if name is not None and at_least is not None:
        kept &= table[name] >= at_least
    if name is not None and at_most is not None:
        kept &= table[name] <= at_most
    return table[kept]


def header(name: str) -> str:
    """A column's name as a reader sees it, with its unit."""
    metric = ALL_METRICS.get(name)
    return name.capitalize() if metric is None else f"{metric.title} ({metric.unit})"


def named(table: pd.DataFrame) -> pd.DataFrame:
    """The same with each head's name, such as L5H1, in front."""
    names = [f"L{layer}H{head}" for layer, head in table[["layer", "head"]].to_numpy()]
    shown = table.copy()
    shown.insert(0, "name", names)
    return shown


def as_csv(table: pd.DataFrame) -> str:
    """The table as a file for spreadsheets: units in the headers, nothing that acts as a formula.

    Numbers that are not known stay empty.
    """
    shown = table.rename(columns=header)
    shown.columns = pd.Index(neutral(list(map(str, shown.columns))))
    for at, kind in enumerate(shown.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            shown.isetitem(at, neutral(shown.iloc[:, at].map(str)))
    return shown.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def neutral(texts: Iterable[str]) -> list[str]:
    """The texts with a ' before those that a spreadsheet would read as a formula."""
    return [f"'{text}" if text.startswith(FORMULA) else text for text in texts]
