"""Runs the benchmarks and prints their tables; `--write` puts them into benchmarks/README.md."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Report, Table, machine

# By name, so that a process which measures memory loads no more than it needs.
JOBS = (
    "attention",
    "memory",
    "capture",
    "grid",
    "browser",
    "long",
    "long_growth",
    "long_memory",
    "long_zoom",
    "long_error",
    "long_bytes",
    "long_page",
    "long_cuda",
)
README = Path(__file__).parent / "README.md"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=JOBS, action="append", help="may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also as numbers, to this file")
    parser.add_argument("--write", action="store_true", help="write benchmarks/README.md")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    words = ["python -m benchmarks", *(f"--only {name}" for name in options.only or ())]
    words += [f"--{flag}" for flag in ("quick", "write") if getattr(options, flag)]
    report = Report(" ".join(words), machine())
    print(*report.machine, sep="\n", flush=True)
    for name in options.only or JOBS:
        print(f"… {name}", file=sys.stderr, flush=True)
        job: Callable[[bool, list[str]], list[Table]]
        job = importlib.import_module(f"benchmarks.{name}").tables
        for table in job(options.quick, report.skipped):
            report.tables.append(table)
            print("", table.title, "", *table.lines(), *table.notes, sep="\n", flush=True)
    print("", *report.summary(), sep="\n")
    if options.json:
        options.json.write_text(json.dumps(report.plain(), indent=1, ensure_ascii=False) + "\n")
    if options.write:
        README.write_text(report.markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
