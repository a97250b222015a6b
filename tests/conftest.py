"""The same conditions for every test: offline, two threads, fixed seeds, bounded examples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

# Read by the libraries when they are imported, so set before the first import.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["STREAMLIT_BROWSER_GATHER_USAGE_STATS"] = "false"

import hypothesis
import pytest
import torch

if TYPE_CHECKING:
    from explorer.models import LoadedModel

torch.set_num_threads(2)

hypothesis.settings.register_profile(
    "ci",
    max_examples=50,
    deadline=None,  # shared cores: time says nothing
    derandomize=True,  # the same examples on every run
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    """Every test starts from the same random state, whichever ran before."""
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def minilm() -> LoadedModel:
    """The bundled model; one for each file, so that none sees what another did to it."""
    from explorer.models import load  # only now: jaxtyping's hook must come before it

    return load("minilm", "cpu")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For small models: two threads wait for each other, and round otherwise than one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
