"""A page as AppTest opens it from a link, and what it says."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from streamlit.testing.v1 import AppTest

PAGES = Path(__file__).parents[2] / "pages"


def opened(page: str, **address: str) -> AppTest:
    """The page of this name, opened from a link with these values."""
    app = AppTest.from_file(PAGES / f"{page}.py", default_timeout=120)
    for name, value in address.items():
        app.query_params[name] = value
    return app.run()


def said(app: AppTest) -> str:
    """All its running text."""
    return " ".join(element.value for element in (*app.markdown, *app.caption))


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
