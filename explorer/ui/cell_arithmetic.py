"""The arithmetic behind the chosen cell, written out line by line."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from explorer import arithmetic
from explorer.arithmetic import Cell, Products
from explorer.ui import controls
from explorer.ui.scene import Scene, choose_at
from explorer.ui.stations import Place
from explorer.ui.words import plain

FEW = 8
"""Terms that are written out; the rest of a longer sum is one line, until all are asked for."""
LETTERS = {"Q": "Query", "K": "Key", "V": "Value"}
STEP_OF = {"dots": 0, "scale": 1, "mask": 2, "softmax": 3}
"""The first line of the way from dot to weight that belongs to the station."""


def number(value: float) -> str:
    """At most four decimals, without a trail of zeros; a tiny one keeps its size."""
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    if value != 0 and not 5e-5 <= abs(value) < 1e6:
        text = f"{value:.2e}"
    else:
        text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "0") else text.replace("-", "−")


def signed(value: float) -> str:
    """A number as a part of a sum or product: in brackets where it is negative."""
    return f"({number(value)})" if value < 0 else number(value)


def choose_dimension(scene: Scene, station: str) -> int:
    """Which number of a vector is computed, where the station has such."""
    attention = scene.attention
    if station == "join":
        size = 0 if attention.output_weight is None else attention.output_weight.shape[-1]
    elif station == "values":
        size = attention.d_v
    elif station == "qkv" and scene.layer is not None:
        size = attention.d_k if st.session_state.get("vector", "Q") != "V" else attention.d_v
    else:
        return 0
    if size == 0:
        return 0
    return choose_at("dimension", "Dimension", [str(n) for n in range(size)], 0)


def show(scene: Scene, station: str, place: Place) -> None:
    """The chosen cell's numbers at this station."""
    names = scene.tokens.texts[place.row], scene.key_tokens.texts[place.key]
    if station == "qkv":
        _projection(scene, place)
    elif station == "values":
        _output(scene, place, names[0])
    elif station == "join":
        _join(scene, place, names[0])
    else:
        cell = arithmetic.cell(scene.attention, scene.head, place.row, place.key)
        if station == "dots":
            _heading(f"“{names[0]}” · “{names[1]}”")
            labels = [str(n) for n in range(scene.attention.d_k)]
            terms(cell.dot, "dim.", labels, ("query", "key", "product"))
        else:
            _heading(f"“{names[0]}” on “{names[1]}”: from dot to weight")
            st.markdown(way(cell, station, scene))
            if station == "softmax":
                _row_sum(cell, scene)


def _heading(text: str) -> None:
    st.markdown(f"**{plain(text)}**")


def terms(
    products: Products,
    corner: str,
    labels: Sequence[str],
    heads: tuple[str, str, str],
    marked: int | None = None,
) -> None:
    """A sum of products as a table: a line a term, one of them marked, and the sum."""
    n = len(labels)
    everything = n <= FEW + 1 or st.toggle(f"All {n} terms", key="all_terms")
    first, second = products.first.tolist(), products.second.tolist()
    product = products.terms.tolist()
    shown = range(n if everything else FEW)
    lines = [f"| {corner} | {heads[0]} | {heads[1]} | {heads[2]} |", "| :-- | --: | --: | --: |"]
    for at in shown:
        cells = plain(labels[at]), number(first[at]), number(second[at]), number(product[at])
        lines.append(f"| {' | '.join(f'**{c}**' if at == marked else c for c in cells)} |")
    if not everything:
        rest = math.fsum(product[FEW:])
        lines.append(f"| {n - FEW} more | | | {number(rest)} |")
    if products.bias is not None:
        lines.append(f"| bias | | | {number(products.bias)} |")
    lines.append(f"| **sum** | | | **{number(products.total)}** |")
    st.markdown("\n".join(lines))


def way(cell: Cell, station: str, scene: Scene) -> str:
    """The cell's way from dot to weight as a table, the station's lines in bold."""
    now = STEP_OF[station]
    lines = [(0, "dot", f"{_products(scene.attention.d_k)} added", number(cell.dot.total))]
    lines.append((1, "scaled", f"{signed(cell.dot.total)} {_scale(scene)}", number(cell.scaled)))
    if cell.softcap is not None:
        cap = number(cell.softcap)
        lines.append((1, "capped", f"{cap} · tanh(scaled ÷ {cap})", number(cell.capped)))
    if cell.bias is not None:
        lines.append(
            (1, "bias", f"{number(cell.capped)} + {signed(cell.bias)}", number(cell.score))
        )
    said = "allowed: as it is" if cell.allowed else "forbidden: becomes −∞"
    lines.append((2, "mask", said, number(cell.masked_score)))
    if cell.masked_row:
        lines.append((3, "weight", "the row has no key: 0 by choice", "0"))
    else:
        shift = f"{number(cell.masked_score)} − {signed(cell.row_max)}"
        share = f"{number(cell.exponential)} ÷ {number(cell.row_sum)}"
        lines += [
            (3, "minus the row's maximum", shift, number(cell.shifted)),
            (3, "exponential", f"e^{signed(cell.shifted)}", number(cell.exponential)),
            (3, "the row's sum", "over all keys", number(cell.row_sum)),
            (3, "weight", share, number(cell.weight)),
        ]
    table = ["| step | how | result |", "| :-- | :-- | --: |"]
    for step, name, how, result in lines:
        bold = "**" if step == now else ""
        how = plain(how)
        table.append(f"| {bold}{name}{bold} | {how} | {bold}{result}{bold} |")
    return "\n".join(table)


def _products(n: int) -> str:
    return "1 product" if n == 1 else f"{n} products"


def _scale(scene: Scene) -> str:
    """How the scale is written: as a division by √d_k where it is one."""
    d_k, times = scene.attention.d_k, scene.times
    usual = math.isclose(scene.plain_scale, 1 / math.sqrt(d_k), rel_tol=1e-6)
    written = f"÷ √{d_k}" if usual else f"× {number(scene.plain_scale)}"
    return written if times == "1" else f"{written} × {times}"


def _row_sum(cell: Cell, scene: Scene) -> None:
    if cell.masked_row or len(cell.row_exponentials) > FEW:
        return
    parts = [
        f"**{number(value)}**" if at == cell.key else number(value)
        for at, value in enumerate(cell.row_exponentials)
    ]
    sink = f" + {number(cell.sink_exponential)} (sink)" if cell.sink is not None else ""
    st.markdown(f"The row's sum: {' + '.join(parts)}{sink} = {number(cell.row_sum)}")


def _projection(scene: Scene, place: Place) -> None:
    """One number of a query, key or value: a row of X on a column of W."""
    layer, x = scene.layer, scene.x
    if layer is None or x is None:
        whose = "given by the example" if scene.is_example else "made by the model's own matrices"
        st.caption(f"These queries, keys and values are {whose}.")
        return
    letter = controls.choose_one("vector", LETTERS, label="Compute a number of", buttons=True)
    place = place._replace(dimension=_clamped(scene, letter, place.dimension))
    projection = {"Q": layer.W_Q, "K": layer.W_K, "V": layer.W_V}[letter]
    size = layer.d_v if letter == "V" else layer.d_k
    head = scene.head if letter == "Q" else scene.kv_head
    row = place.row if letter == "Q" else place.key
    token = (scene.tokens if letter == "Q" else scene.key_tokens).texts[row]
    found = arithmetic.projected(x, projection, row, head * size + place.dimension)
    _heading(f"{LETTERS[letter]} of “{token}”, dimension {place.dimension}")
    labels = [str(n) for n in range(layer.d_model)]
    terms(found, "dim.", labels, ("X", f"W_{letter}", "product"))


def _clamped(scene: Scene, letter: str, dimension: int) -> int:
    size = scene.attention.d_v if letter == "V" else scene.attention.d_k
    return min(dimension, size - 1)


def _output(scene: Scene, place: Place, query: str) -> None:
    """One number of the head's output: every weight times its value."""
    found = arithmetic.output(scene.attention, scene.head, place.row, place.dimension)
    _heading(f"Output of “{query}”, dimension {place.dimension}")
    heads = ("weight", "value", "product")
    terms(found, "key", scene.key_tokens.texts, heads, place.key)


def _join(scene: Scene, place: Place, query: str) -> None:
    """One number of the layer's output: the heads side by side on a column of W_O."""
    if scene.attention.output_weight is None:
        st.caption("The example has one head and no W_O: the head's output is the result.")
        return
    found = arithmetic.joined_number(scene.attention, place.row, place.dimension)
    _heading(f"Output of “{query}”, dimension {place.dimension}")
    d_v = scene.attention.d_v
    labels = [f"h{n // d_v} d{n % d_v}" for n in range(len(found.first))]
    terms(found, "head, dim.", labels, ("head's output", "W_O", "product"))
