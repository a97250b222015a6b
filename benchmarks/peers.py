"""The peers' pages: the HTML that BertViz and CircuitsVis make, and the scripts it asks for."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

HEAD_VIEW, MODEL_VIEW = "BertViz head_view", "BertViz model_view"
CIRCUITSVIS = "CircuitsVis, a view for each layer"
NAMES = (HEAD_VIEW, MODEL_VIEW, CIRCUITSVIS)
BYTES_OF_MEMORY = 250
"""For each weight while a page is made: Python floats in lists, and the text twice."""

SCRIPTS = {
    "require": ("requirejs@2.3.6", "package/require.js"),
    "d3": ("d3@5.7.0", "package/dist/d3.min.js"),
    "jquery": ("jquery@2.2.4", "package/dist/jquery.min.js"),
}
"""What BertViz's pages fetch from a CDN: the package and the file in it, by a part of the name."""


class NoScriptsError(RuntimeError):
    """BertViz's pages cannot be drawn here; the message says why."""


def html(name: str, weights: npt.NDArray[np.float32]) -> str:
    """The peer's page for weights (n_layers, n_heads, n_q, n_k), as one text."""
    from bertviz import head_view, model_view
    from circuitsvis.attention import attention_heads

    tokens = [f"word{number}" for number in range(weights.shape[-1])]
    if name == CIRCUITSVIS:
        return "".join(str(attention_heads(layer, tokens)) for layer in weights)
    view = head_view if name == HEAD_VIEW else model_view
    layers = [torch.from_numpy(layer)[None] for layer in weights]
    return str(view(layers, tokens, html_action="return").data)


def lack_of_memory(weights: int) -> str | None:
    """Why a page for so many weights is not tried here; None where it can be."""
    facts = Path("/proc/meminfo")
    if not facts.exists():
        return None
    line = next(line for line in facts.read_text().splitlines() if line.startswith("MemAvail"))
    free, needed = int(line.split()[1]) * 1024, weights * BYTES_OF_MEMORY
    return None if needed < 0.6 * free else f"needs about {needed / 1e9:.0f} GB of memory"


def scripts(folder: Path) -> dict[str, str]:
    """The scripts' text by a part of their address, fetched by npm. Raises NoScriptsError."""
    npm = shutil.which("npm")
    if npm is None:
        raise NoScriptsError("BertViz's pages fetch their scripts, and there is no npm to get them")
    packages = [package for package, _ in SCRIPTS.values()]
    command = [npm, "pack", "--silent", "--pack-destination", str(folder), *packages]
    try:
        subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise NoScriptsError("npm could not fetch the scripts of BertViz's pages") from error
    found = {}
    for name, (package, member) in SCRIPTS.items():
        with tarfile.open(folder / f"{package.replace('@', '-')}.tgz") as archive:
            file = archive.extractfile(member)
            assert file is not None  # a plain file, by the pinned package
            found[name] = file.read().decode()
    return found
