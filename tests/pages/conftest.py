"""Models for the pages, saved once for all page tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.page_models import save_page_models


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_page_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def local_models(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app lists the small models as local:NAME."""
    monkeypatch.setenv("EXPLORER_MODELS", str(model_folder))
