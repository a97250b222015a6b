"""Every page runs alone, without a browser.

The app's folder is known from `app.py`, which is named and not run: page links need it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from scripts.browser import ROOT, page_paths

TIMEOUT = 60  # seconds; the first run loads a model


@pytest.mark.parametrize("path", page_paths(), ids=lambda path: path.stem)
def test_a_page_opens_alone(path: Path) -> None:
    app = AppTest.from_file(ROOT / "app.py", default_timeout=TIMEOUT)
    app.switch_page(path.relative_to(ROOT).as_posix()).run()
    assert not app.exception, app.exception
    assert len(app.title) == 1
    assert app.title[0].value.strip()
