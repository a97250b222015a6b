"""The same row several times, side by side: what each way of computing it makes of the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from explorer.figures import frame
from explorer.figures.colors import Ink, Theme, ink
from explorer.figures.labels import hover_texts, label_pixels, ticks
from explorer.figures.odd import Flags, key_entry

LARGEST_BAR, SMALLEST_BAR = 24, 9  # pixels a token takes
NUMBER_HEIGHT = 14  # pixels: below this bars stand without their numbers
GAP = 0.03  # share of the width between two panels
TITLE_PIXELS = 44


class Panel(NamedTuple):
    """One way of computing the row."""

    title: str
    note: str
    """What all of it comes to, as its sum."""
    values: npt.NDArray[np.floating]


def compared_rows(
    panels: Sequence[Panel],
    labels: Sequence[str],
    *,
    unit: str,
    theme: Theme,
    marked: Flags | None = None,
    marked_name: str = "",
    raw: Sequence[str] | None = None,
    what: str = "Key",
) -> go.Figure:
    """Bars on one scale, a panel for each way; as wide as the place it is put in.

    Bars of `marked` tokens have another colour, named in the legend; NaN is written out.
    """
    n = len(labels)
    for panel in panels:
        if panel.values.shape != (n,):
            raise ValueError(f"values: shape {panel.values.shape} given; ({n},) would work")
    colors = ink(theme)
    special = np.zeros(n, bool) if marked is None else marked
    finite = np.concatenate([panel.values[np.isfinite(panel.values)] for panel in panels])
    top = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    bar = min(LARGEST_BAR, max(SMALLEST_BAR, 320 / n))
    height = max(bar * n, 60)
    numbered = bar >= NUMBER_HEIGHT
    places, texts = ticks(labels, height, vertical=True)
    longest = max(label_pixels(labels[place]) for place in places)
    width = (1 - GAP * (len(panels) - 1)) / len(panels)

    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    titles: list[dict[str, Any]] = []
    fills = [colors.accent if flag else colors.bar for flag in special]
    for number, panel in enumerate(panels):
        suffix = "" if number == 0 else str(number + 1)
        start = number * (width + GAP)
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": panel.values.astype(np.float32),
                "y": np.arange(n, dtype=np.int32),
                "xaxis": f"x{suffix}",
                "marker": {"color": fills, "line": {"width": 0}},
                "text": [bar_number(float(value)) for value in panel.values] if numbered else None,
                "textposition": "outside",
                "textfont": frame.font(colors),
                "cliponaxis": False,
                "hovertext": hover_texts(labels, raw),
                "hovertemplate": f"{what} %{{hovertext}}<br>%{{x:.4~g}}<extra></extra>",
                "showlegend": False,
            }
        )
        traces += _not_numbers(panel, places, f"x{suffix}", colors)
        titles.append(_said(panel, start, colors.text))
        axes[f"xaxis{suffix}"] = frame.axis(colors, "", 1, fixedrange=True) | {
            "domain": [start, start + width],
            "range": [0, 1.45 * top],  # room for the numbers
            "tickmode": "array",
            "tickvals": [0, top],
            "ticktext": ["0", frame.number(top)],
            "side": "bottom",
            "zeroline": True,
            "zerolinecolor": colors.line,
            "title": {"text": unit if number == 0 else "", "font": frame.font(colors)},
        }
    keyed = bool(special.any()) and bool(marked_name)
    margin = {
        "l": longest + 14,
        "r": 8,
        "t": TITLE_PIXELS,
        "b": 46 + frame.LEGEND_HEIGHT * keyed,
    }
    layout = frame.layout(colors, width=300, height=height, margin=margin)
    del layout["width"]  # the place decides
    layout["legend"] |= {"y": -44 / height}
    layout |= {"bargap": 0.28, "dragmode": False, "annotations": titles, "showlegend": keyed}
    layout["yaxis"] = frame.axis(
        colors, "", n, down=True, fixedrange=True, tickvals=places, ticktext=texts
    )
    named = [key_entry(marked_name, colors.accent, colors.line)] if keyed else []
    return go.Figure(data=[*traces, *named], layout={**layout, **axes})


def bar_number(value: float) -> str:
    """A number beside its bar: an exact 0 is "0", and nothing else is."""
    return "" if np.isnan(value) else "0" if value == 0 else f"{value:.3f}"


def _said(panel: Panel, start: float, color: str) -> dict[str, Any]:
    return {
        "text": f"<b>{panel.title}</b><br>{panel.note}",
        "x": start,
        "y": 1,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 4,
        "align": "left",
        "showarrow": False,
        "font": {"family": frame.FONT, "size": frame.TITLE_SIZE, "color": color},
    }


def _not_numbers(
    panel: Panel, places: Sequence[int], axis: str, colors: Ink
) -> list[dict[str, Any]]:
    """NaN written out where the bar would be; one trace, as an annotation each is slow."""
    missing = [place for place in places if np.isnan(panel.values[place])]
    if not missing:
        return []
    return [
        frame.NOTHING
        | {
            "mode": "text",
            "x": [0] * len(missing),
            "y": missing,
            "xaxis": axis,
            "text": [" NaN"] * len(missing),
            "textposition": "middle right",
            "textfont": frame.font(colors),
            "cliponaxis": False,
        }
    ]
