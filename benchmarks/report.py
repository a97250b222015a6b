"""Tables of what was measured, with the goal and a plain verdict beside each figure."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.timing import Spread

VERSIONS = ("torch", "transformers", "streamlit", "plotly", "bertviz", "circuitsvis", "playwright")


@dataclass(frozen=True)
class Column:
    """A measured quantity. A figure is judged against its goal as printed, to `digits`."""

    name: str
    unit: str
    digits: int


@dataclass(frozen=True)
class Row:
    """What was measured of one thing: a figure, or a word why there is none, for each column.

    goals are upper bounds, None where none was set.
    """

    labels: tuple[str, ...]
    figures: tuple[Spread | str, ...]
    goals: tuple[float | None, ...] = ()

    @property
    def judged(self) -> list[tuple[int, Spread | str, float]]:
        """(column, figure, goal) of each figure that has a goal."""
        paired = enumerate(zip(self.figures, self.goals, strict=bool(self.goals)))
        return [(place, figure, goal) for place, (figure, goal) in paired if goal is not None]


@dataclass(frozen=True)
class Table:
    """Rows that belong together. Notes say how they were measured."""

    title: str
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    notes: tuple[str, ...] = ()

    def misses(self, row: Row) -> list[str]:
        """By how much each figure of a row is above its goal; empty where all are met."""
        missed = []
        for place, figure, goal in row.judged:
            column = self.columns[place]
            if isinstance(figure, str):
                missed.append("not measured")
                continue
            excess = round(figure.median, column.digits) - goal
            if excess > 1e-9:
                where = f" ({column.name})" if len(row.judged) > 1 else ""
                missed.append(f"missed by {excess:.{column.digits}f} {column.unit}{where}")
        return missed

    @property
    def verdicts(self) -> list[bool]:
        """Of each row with a goal, whether it is met."""
        return [not self.misses(row) for row in self.rows if row.judged]

    def lines(self) -> list[str]:
        """The table as aligned Markdown."""
        goals = any(row.judged for row in self.rows)
        head = [*self.labels, *(f"{column.name}, {column.unit}" for column in self.columns)]
        body = [[*row.labels, *self._figures(row)] for row in self.rows]
        if goals:
            head += ["goal", "verdict"]
            for cells, row in zip(body, self.rows, strict=True):
                cells += [self._goal(row), self._verdict(row)]
        right = range(len(self.labels), len(self.labels) + len(self.columns) + goals)
        return aligned([head, *body], right)

    def _figures(self, row: Row) -> list[str]:
        paired = zip(row.figures, self.columns, strict=True)
        return [written(figure, column.digits) for figure, column in paired]

    def _goal(self, row: Row) -> str:
        found = {f"≤ {goal:g} {self.columns[place].unit}" for place, _, goal in row.judged}
        return ", ".join(sorted(found))

    def _verdict(self, row: Row) -> str:
        if not row.judged:
            return ""
        return "; ".join(self.misses(row)) or "met"


def written(figure: Spread | str, digits: int) -> str:
    """A median with its quartiles: "0.57 (0.55–0.60)"; one number where nothing varies."""
    if isinstance(figure, str):
        return figure
    parts = [f"{value:.{digits}f}" for value in (figure.median, figure.low, figure.high)]
    return parts[0] if figure.low == figure.high else f"{parts[0]} ({parts[1]}–{parts[2]})"


def aligned(cells: list[list[str]], right: Iterable[int]) -> list[str]:
    """Markdown table lines with columns of equal width; those in `right` end at the right."""
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    to_right = set(right)

    def line(row: list[str]) -> str:
        padded = [
            cell.rjust(width) if place in to_right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rules = [
        "-" * (width - 1) + ":" if place in to_right else "-" * width
        for place, width in enumerate(widths)
    ]
    return [line(cells[0]), line(rules), *(line(row) for row in cells[1:])]


@dataclass
class Report:
    """Everything one run has measured."""

    command: str
    machine: list[str]
    tables: list[Table] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def summary(self) -> list[str]:
        """How many goals are met, and each that is not."""
        verdicts = [met for table in self.tables for met in table.verdicts]
        lines = [f"{sum(verdicts)} of {len(verdicts)} goals are met."] if verdicts else []
        for table in self.tables:
            for row in table.rows:
                for miss in table.misses(row):
                    lines.append(f"- {table.title}, {', '.join(row.labels)}: {miss}")
        return lines + [f"- Skipped: {reason}" for reason in self.skipped]

    def markdown(self) -> str:
        """The whole report as the text of benchmarks/README.md."""
        lines = [
            "# What was measured",
            "",
            f"Written by `{self.command}`. Every comparison is one process in which the "
            "contestants take turns, A B C A B C …; a figure is the median of the ratios of each "
            "round, with the quartiles in brackets. Goals are those that the project set itself.",
            "",
            *(f"- {fact}" for fact in self.machine),
            "",
            *self.summary(),
        ]
        for table in self.tables:
            lines += ["", f"## {table.title}", "", *table.lines()]
            if table.notes:
                lines += ["", *(f"- {note}" for note in table.notes)]
        return "\n".join(lines) + "\n"

    def plain(self) -> dict[str, Any]:
        """The same as numbers, for a file."""
        return {
            "command": self.command,
            "machine": self.machine,
            "skipped": self.skipped,
            "tables": [
                asdict(table) | {"misses": [table.misses(row) for row in table.rows]}
                for table in self.tables
            ],
        }


def machine() -> list[str]:
    """Where and when this runs, without names of people or folders."""
    import torch

    now = datetime.datetime.now().astimezone()
    load = f", load {os.getloadavg()[0]:.1f} when it began" if hasattr(os, "getloadavg") else ""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in VERSIONS]
    cores = f"{os.cpu_count()} cores; torch uses {torch.get_num_threads()} threads"
    return [
        f"{now:%Y-%m-%d %H:%M}, {platform.system()} {platform.machine()}",
        f"{_processor()}, {cores}{load}",
        f"Python {platform.python_version()}, {', '.join(versions)}",
    ]


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
