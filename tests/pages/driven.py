"""A page as AppTest opens it from a link, and what it says."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from streamlit.testing.v1 import AppTest

from explorer.ui.quiz import Question

PAGES = Path(__file__).parents[2] / "pages"


def opened(page: str, **address: str) -> AppTest:
    """The page of this name, opened from a link with these values."""
    app = AppTest.from_file(PAGES / f"{page}.py", default_timeout=120)
    app.query_params.update(address)
    return looked_at(app.run())


def visited(page: str, **address: str) -> AppTest:
    """The same opened from Home, so that it knows the other pages."""
    app = AppTest.from_file(PAGES.parent / "app.py", default_timeout=60)
    app.switch_page(f"pages/{page}.py")
    app.query_params.update(address)
    return looked_at(app.run())


def looked_at(app: AppTest) -> AppTest:
    """The same, with no error on it."""
    assert not app.exception, app.exception
    return app


def said(app: AppTest) -> str:
    """All sentences on the page, without the backslashes that keep text from being Markdown."""
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    text = "\n".join(element.value for kind in kinds for element in kind)
    return re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", text).replace("\N{NO-BREAK SPACE}", " ")


def said_plainly(app: AppTest) -> str:
    """The same without the marks of what is bold."""
    return said(app).replace("**", "")


def answer_all(app: AppTest, page: str, questions: Sequence[Question]) -> None:
    """Gives every answer to each question: one is right, and each tells its own reason."""
    for number, question in enumerate(questions):
        assert sum(choice.right for choice in question.choices) == 1
        for choice in question.choices:
            looked_at(app.radio(key=f"{page}_question_{number}").set_value(choice.text).run())
            shown = app.success if choice.right else app.warning
            assert choice.reason in [element.value for element in shown]


def spec(app: AppTest, key: str) -> dict[str, Any]:
    """The Plotly figure of the chart with this key."""
    (found,) = [e for e in app.get("plotly_chart") if e.proto.id.endswith(f"-{key}")]
    figure: dict[str, Any] = json.loads(found.proto.spec)
    return figure


def chart(app: AppTest, key: str) -> npt.NDArray[np.float64]:
    """The numbers of the heatmap with this key, (rows, columns)."""
    return decoded(spec(app, key)["data"][0]["z"])


def decoded(z: Any) -> npt.NDArray[np.float64]:
    """A table as Plotly sends it: lists, or bytes."""
    if isinstance(z, list):
        return np.array(z, float)
    numbers = np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"])
    return numbers.reshape([int(n) for n in z["shape"].split(",")]).astype(float)


def still(app: AppTest, key: str) -> npt.NDArray[np.float64]:
    """The numbers in the tooltips of the still picture with this key; NaN where there are none."""
    (found,) = [e for e in app.get("bidi_component") if e.proto.id.endswith(f"-{key}")]
    sent = json.loads(found.proto.json)
    cells = [np.nan if cell is None else cell for cell in sent["answers"][0]["cells"]]
    return np.array(cells, float).reshape(sent["rows"], sent["columns"])
