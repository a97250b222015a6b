"""Imports point one way: arithmetic, models, figures, user interface, pages.

Read from the source of each file, lazy imports too. A second check imports the core in a fresh
process, and each is shown to fail where it should.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

ARITHMETIC = {"torch", "numpy", "jaxtyping"}
TABLES = ARITHMETIC | {"pandas"}
MODELS = ARITHMETIC | {"transformers", "tokenizers", "safetensors", "huggingface_hub"}
FIGURES = {"numpy", "pandas", "plotly", "PIL"}
PAGES = {"streamlit", "numpy", "pandas"}

# Modules with an allowance of their own; any other may import what models may.
NARROWER = {
    "explorer/attention.py": ARITHMETIC,
    "explorer/attention_steps.py": ARITHMETIC,
    "explorer/masks.py": ARITHMETIC,
    "explorer/multihead.py": ARITHMETIC,
    "explorer/maps.py": ARITHMETIC,
    "explorer/metrics.py": TABLES,
    "explorer/similarity.py": ARITHMETIC | {"scipy"},
    "explorer/scaling.py": TABLES,
    "explorer/training_summary.py": TABLES,
    "explorer/head_scaling.py": TABLES,
    "explorer/head_findings.py": TABLES,
    "explorer/head_table.py": TABLES,
    "explorer/images.py": MODELS | {"PIL"},
    "explorer/far_links.py": TABLES,
    "explorer/long_texts.py": MODELS | {"charset_normalizer"},
    "explorer/cost.py": ARITHMETIC | {"psutil"},
}


def imported(source: str) -> set[str]:
    """Dotted names a file imports, wherever in the file; relative ones start with a dot."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (f"{node.module}." if node.module else "")
            names |= {start + alias.name for alias in node.names}
    return names


def allowed(place: str) -> tuple[set[str], tuple[str, ...]]:
    """For a file, named from the root: packages it may import, and parts of `explorer`."""
    if place.startswith("explorer/ui/"):
        everything = {"streamlit"} | TABLES | MODELS | FIGURES
        return everything, ("explorer",)
    if place.startswith("explorer/figures/"):
        return FIGURES, ("explorer.figures",)
    if place.startswith("explorer/"):
        core = [f"explorer.{path.stem}" for path in (ROOT / "explorer").glob("*.py")]
        return NARROWER.get(place, MODELS), tuple(core)
    return PAGES, ("explorer",)


def faults(place: str, source: str) -> list[str]:
    """The imports of a file that go against the rules."""
    packages, parts = allowed(place)

    def fits(name: str) -> bool:
        package = name.partition(".")[0]
        if package == "explorer":
            return any(name == part or name.startswith(f"{part}.") for part in parts)
        return package in sys.stdlib_module_names or package in packages

    return sorted(name for name in imported(source) if not fits(name))


def files() -> list[str]:
    """Every file the rules speak of, named from the root."""
    found = [ROOT / "app.py", *ROOT.glob("pages/*.py"), *ROOT.glob("explorer/**/*.py")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found if path.exists())


@pytest.mark.parametrize("place", files())
def test_a_file_imports_only_what_its_layer_may(place: str) -> None:
    assert faults(place, (ROOT / place).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("place", "source", "fault"),
    [
        ("explorer/masks.py", "import streamlit as st", "streamlit"),
        ("explorer/masks.py", "def f():\n    from plotly import io", "plotly.io"),
        ("explorer/attention.py", "import transformers.models", "transformers.models"),
        ("explorer/capture.py", "import pandas", "pandas"),
        ("explorer/capture.py", "from explorer.ui import frame", "explorer.ui.frame"),
        ("explorer/capture.py", "from explorer import figures", "explorer.figures"),
        ("explorer/capture.py", "from . import masks", ".masks"),
        ("explorer/figures/grid.py", "import torch", "torch"),
        ("explorer/figures/grid.py", "from explorer.masks import causal", "explorer.masks.causal"),
        ("explorer/ui/frame.py", "from pages import heads", "pages.heads"),
        ("pages/heads.py", "import torch.nn as nn", "torch.nn"),
        ("app.py", "from plotly.graph_objects import Figure", "plotly.graph_objects.Figure"),
    ],
)
def test_a_wrong_import_is_found(place: str, source: str, fault: str) -> None:
    assert faults(place, source) == [fault]


def loaded(modules: list[str], package: str, first: str = "") -> bool:
    """Whether a fresh process that imports `modules` ends up with `package` loaded."""
    lines = [first, *(f"import {module}" for module in modules)]
    lines += ["import sys", f"print({package!r} in sys.modules)"]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().endswith("True")


def core() -> list[str]:
    paths = sorted((ROOT / "explorer").glob("*.py"))
    return [f"explorer.{path.stem}" for path in paths if path.stem != "__init__"]


def test_the_core_does_not_load_streamlit() -> None:
    assert not loaded(core(), "streamlit")


def test_the_arithmetic_does_not_load_transformers() -> None:
    names = ["explorer.attention", "explorer.masks", "explorer.multihead", "explorer.maps"]
    assert not loaded([name for name in names if name in core()], "transformers")


def test_a_core_that_loads_streamlit_would_be_found() -> None:
    assert loaded(["explorer.masks"], "streamlit", first="import streamlit")
