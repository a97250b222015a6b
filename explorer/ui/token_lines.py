"""Tokens left and right with a line for each weight: a component of our own, drawn on a canvas.

Python sends one block of bytes, a header and the weights; the browser draws, and sends back which
heads are shown, from which weight on, and which token is pinned.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt
import streamlit as st

from explorer.tokens import Tokens

HERE = Path(__file__).parent
HTML = """
<div class="lines">
  <div class="bar">
    <div class="group heads" role="group" aria-label="Heads"></div>
    <div class="group">
      <button type="button" class="all">All heads</button>
      <button type="button" class="none">No head</button>
    </div>
    <label>From weight <input type="range" class="least" min="0" max="100" step="1">
      <output class="least-says"></output></label>
  </div>
  <p class="said" aria-live="polite"></p>
  <div class="titles"><span>Queries</span><span></span><span>Keys</span></div>
  <div class="stage">
    <ul class="queries" role="listbox" tabindex="0"></ul>
    <div class="between"><canvas class="base"></canvas><canvas class="over"></canvas></div>
    <ul class="keys" role="listbox" tabindex="0"></ul>
  </div>
</div>
"""
NOTHING = "Point at a token for its lines alone; click it to keep them."


class Pinned(NamedTuple):
    """A token that keeps its lines: "q" or "k" for its side, and its place there."""

    side: str
    at: int


class LinesView(NamedTuple):
    """What the reader has chosen in the picture."""

    heads: tuple[int, ...]
    least: float
    """Weights below it have no line."""
    token: Pinned | None

    @classmethod
    def from_browser(cls, value: object, n_heads: int, n_q: int, n_k: int) -> LinesView | None:
        """What a browser reports, or None where it does not fit: it is not trusted."""
        if not isinstance(value, dict):
            return None
        heads, least, token = value.get("heads"), value.get("least"), value.get("token")
        if not isinstance(heads, list) or not all(_whole(head, n_heads) for head in heads):
            return None
        if isinstance(least, bool) or not isinstance(least, int | float):
            return None
        if not math.isfinite(least) or not 0 <= least <= 1:
            return None
        pinned = None
        if isinstance(token, dict):
            side, at = token.get("side"), token.get("at")
            if side not in ("q", "k") or not _whole(at, n_q if side == "q" else n_k):
                return None
            pinned = Pinned(side, at)
        return cls(tuple(sorted(set(heads))), float(least), pinned)


def token_lines(
    weights: npt.NDArray[np.float32],  # (n_heads, n_q, n_k)
    queries: Tokens,
    keys: Tokens,
    colors: Sequence[str],
    view: LinesView,
    *,
    key: str,
    pair: tuple[int, int] | None = None,
    on_change: Callable[[LinesView], None],
) -> None:
    """Draws the lines; `on_change` is called with what the reader then chooses in the picture.

    With a pair (a, b) only lines from text a's queries to text b's keys are drawn.
    """
    n_heads, n_q, n_k = weights.shape

    def changed() -> None:
        found = LinesView.from_browser(st.session_state[key].view, n_heads, n_q, n_k)
        if found is not None:
            on_change(found)

    _component()(
        key=key,
        data=packed(weights, queries, keys, colors, view, pair),
        default={"view": None},
        on_view_change=changed,
    )


def packed(
    weights: npt.NDArray[np.float32],
    queries: Tokens,
    keys: Tokens,
    colors: Sequence[str],
    view: LinesView,
    pair: tuple[int, int] | None = None,
) -> bytes:
    """The header's length, the header as JSON, and a byte for each weight: 255·√w.

    The root keeps small weights apart: near 0 the steps are 1.5e-5, at 1 they are 0.008.
    """
    head = {
        "queries": _named(queries),
        "keys": _named(keys),
        "colors": list(colors),
        "pair": pair,
        "nothing": NOTHING,
        "view": {
            "heads": list(view.heads),
            "least": view.least,
            "token": view.token and view.token._asdict(),
        },
    }
    text = json.dumps(head).encode()
    rooted = 255 * np.sqrt(np.clip(np.nan_to_num(weights), 0, 1))
    codes: bytes = np.rint(rooted).astype(np.uint8).tobytes()
    return struct.pack("<I", len(text)) + text + codes


def _named(tokens: Tokens) -> list[dict[str, object]]:
    return [
        {"text": text, "raw": raw, "special": special, "padding": padding, "source": source}
        for text, raw, special, padding, source in zip(
            tokens.texts, tokens.raws, tokens.special, tokens.padding, tokens.sources, strict=True
        )
    ]


def _whole(value: object, below: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


@st.cache_resource
def _component() -> Callable[..., Any]:
    return st.components.v2.component(
        "token_lines",
        html=HTML,
        css=(HERE / "token_lines.css").read_text("utf-8"),
        js=(HERE / "token_lines.js").read_text("utf-8"),
    )
