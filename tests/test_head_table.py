"""All heads as a table: headers, filters and the file, worked out by hand."""

from __future__ import annotations

import csv
import io
import math

import pandas as pd
import pytest

from explorer.head_table import (
    ALL_METRICS,
    ON_SEGMENT,
    as_csv,
    extremes,
    filtered,
    header,
    named,
    neutral,
    on_segment,
)
from explorer.metrics import METRICS, REPEATED

TABLE = pd.DataFrame(
    {
        "layer": [0, 0, 2, 2],
        "head": [0, 1, 0, 1],
        "entropy": [1.5, math.nan, 0.25, 2.0],
        "self": [0.5, 0.5, 0.125, 1.0],
    }
)


def names(table: pd.DataFrame) -> list[str]:
    return list(named(table)["name"])


def test_the_lowest_and_the_highest_head_are_found_past_unknown_numbers() -> None:
    found = extremes(TABLE, "entropy")
    assert found is not None
    low, high = found
    assert (low.name, low.value) == ("L2H0", 0.25)
    assert (high.name, high.value) == ("L2H1", 2.0)


def test_of_equal_heads_the_first_is_named_and_of_none_nothing() -> None:
    equal = TABLE.assign(entropy=1.0)
    found = extremes(equal, "entropy")
    assert found is not None and [each.name for each in found] == ["L0H0", "L0H0"]
    assert extremes(TABLE.assign(entropy=math.nan), "entropy") is None


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, ["L0H0", "L0H1", "L2H0", "L2H1"]),
        ({"layers": [2]}, ["L2H0", "L2H1"]),
        ({"layers": [1]}, []),
        ({"name": "self", "at_least": 0.5}, ["L0H0", "L0H1", "L2H1"]),
        ({"name": "self", "at_most": 0.5}, ["L0H0", "L0H1", "L2H0"]),
        ({"name": "self", "at_least": 0.2, "at_most": 0.5}, ["L0H0", "L0H1"]),
        ({"name": "entropy", "at_least": 0}, ["L0H0", "L2H0", "L2H1"]),
        ({"name": "entropy"}, ["L0H0", "L0H1", "L2H0", "L2H1"]),
        ({"layers": [0, 2], "name": "entropy", "at_most": 1}, ["L2H0"]),
    ],
)
def test_heads_are_filtered_by_layer_and_range(options: dict[str, object], kept: list[str]) -> None:
    assert names(filtered(TABLE, **options)) == kept  # type: ignore[arg-type]


def test_an_unknown_number_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        filtered(TABLE, name="nothing", at_least=0)


def test_every_header_has_its_unit() -> None:
    assert header("entropy") == "Entropy (nats)"
    assert header("layer") == "Layer"
    assert all(header(metric.name).endswith(f"({metric.unit})") for metric in METRICS)


def test_scores_on_a_segment_have_names_of_their_own() -> None:
    assert [metric.name for metric in ON_SEGMENT] == [on_segment(name) for name in REPEATED]
    assert len(ALL_METRICS) == len(METRICS) + len(REPEATED)
    assert {metric.title for metric in ON_SEGMENT}.isdisjoint(metric.title for metric in METRICS)


def test_the_file_reads_back_with_units_and_empty_cells() -> None:
    rows = list(csv.reader(io.StringIO(as_csv(named(TABLE)))))
    assert rows[0] == ["Name", "Layer", "Head", "Entropy (nats)", "On itself (share of 1)"]
    assert rows[1] == ["L0H0", "0", "0", "1.5", "0.5"]
    assert rows[2] == ["L0H1", "0", "1", "", "0.5"]
    assert len(rows) == 5


def test_nothing_in_the_file_acts_as_a_formula() -> None:
    odd = pd.DataFrame({"=1+1": ["@SUM(A1)", "-x", "fine"], "entropy": [-1.5, 0.0, 2.0]})
    rows = list(csv.reader(io.StringIO(as_csv(odd))))
    assert rows[0] == ["'=1+1", "Entropy (nats)"]
    assert [row[0] for row in rows[1:]] == ["'@SUM(A1)", "'-x", "fine"]
    assert [float(row[1]) for row in rows[1:]] == [-1.5, 0.0, 2.0]  # numbers stay numbers
    assert neutral(["\t=1", "+1", "1+1", ""]) == ["'\t=1", "'+1", "1+1", ""]


def test_the_table_itself_is_not_changed() -> None:
    before = TABLE.copy()
    named(TABLE)
    as_csv(TABLE)
    filtered(TABLE, layers=[0])
    pd.testing.assert_frame_equal(TABLE, before)
