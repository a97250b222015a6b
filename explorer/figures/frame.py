"""What every picture shares: type, margins, axes, a colour bar below, and words for odd cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from explorer.figures.colors import ColorScale, Ink
from explorer.figures.labels import label_pixels, tick_stride

FONT = (
    "-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, 'Source Sans', 'Noto Sans CJK SC',"
    " sans-serif"
)
TICK_SIZE, TITLE_SIZE = 12, 13
BAR_HEIGHT, LEGEND_HEIGHT = 62, 26  # pixels the colour bar and the legend take below the plot
NOTHING: dict[str, Any] = {  # a trace without a point: it keeps axes drawn, or carries a bar
    "type": "scatter",
    "x": [None],
    "y": [None],
    "mode": "markers",
    "hoverinfo": "skip",
    "showlegend": False,
}
SLANT = 0.71  # sine and cosine of the 45 degrees that labels across are turned by


def font(ink: Ink, size: int = TICK_SIZE, strong: bool = False) -> dict[str, Any]:
    """Plotly's font, with the colour set: the default tick text fails AA on light pages."""
    return {"family": FONT, "size": size, "color": ink.text if strong else ink.muted}


def layout(
    ink: Ink,
    *,
    width: int | float,
    height: int | float,
    margin: Mapping[str, int | float],
    title: str | None = None,
) -> dict[str, Any]:
    """Layout of a figure whose plot area is `width` by `height` pixels inside the margins."""
    sides = {side: round(pixels) for side, pixels in margin.items()}
    shown: dict[str, Any] = {
        "width": round(width) + sides["l"] + sides["r"],
        "height": round(height) + sides["t"] + sides["b"],
        "margin": {**sides, "pad": 0, "autoexpand": False},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": font(ink),
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": ink.page,
            "bordercolor": ink.line,
            "font": font(ink, TITLE_SIZE, strong=True),
            "align": "left",
            "namelength": 0,
        },
        "showlegend": False,
        "legend": {
            "orientation": "v",
            "x": 0,
            "xanchor": "left",
            "xref": "paper",
            "y": -(BAR_HEIGHT - 2) / max(height, 1),
            "yanchor": "top",
            "font": font(ink),
            "itemclick": False,
            "itemdoubleclick": False,
            "bgcolor": "rgba(0,0,0,0)",
        },
    }
    if title is not None:
        shown["title"] = {
            "text": title,
            "font": font(ink, 15, strong=True),
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 4, "l": 4},
        }
    return shown


def axis(ink: Ink, title: str, n: int, *, down: bool = False, **more: Any) -> dict[str, Any]:
    """A numeric axis over `n` cells, from the top where it runs `down`, with tick text."""
    return {
        "title": {"text": title, "font": font(ink, TITLE_SIZE, strong=True), "standoff": 8},
        "type": "linear",
        "range": _cells(n, down),
        "tickmode": "array",
        "tickfont": font(ink),
        "showgrid": False,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": ink.line,
        "showline": False,
        "automargin": False,
        # Margins hold the labels; looking for those that reach out takes a third of the drawing.
        "ticklabeloverflow": "allow",
        **more,
    }


def hover_axis(over: str, texts: Sequence[str], *, down: bool = False) -> dict[str, Any]:
    """An unseen twin of axis `over` on which every position has its tooltip text.

    Traces drawn on it name both tokens in ``%{x}`` and ``%{y}`` at the cost of one text a token.
    """
    return {
        "overlaying": over,
        "matches": over,
        "type": "linear",
        "range": _cells(len(texts), down),
        "tickmode": "array",
        "tickvals": list(range(len(texts))),
        "ticktext": list(texts),
        "showticklabels": False,
        "showgrid": False,
        "zeroline": False,
        "showline": False,
        "ticks": "",
    }


def _cells(n: int, down: bool) -> list[float]:
    return [n - 0.5, -0.5] if down else [-0.5, n - 0.5]


def slanted_overhang(
    widths: Sequence[int | float], places: Sequence[int], cell: int | float, n: int
) -> float:
    """Pixels that labels at 45 degrees reach past the right edge of `n` cells."""
    pairs = zip(widths, places, strict=True)
    return max(0.0, *(SLANT * width - (n - 0.5 - place) * cell for width, place in pairs))


def color_bar(
    ink: Ink,
    title: str,
    *,
    plot_height: int | float,
    length: int | float,
    tickvals: Sequence[int | float],
    ticktext: Sequence[str] | None = None,
) -> dict[str, Any]:
    """A bar below the plot from its left edge, `length` (a share of 1) of its width.

    The ticks say their numbers unless `ticktext` says other words.
    """
    return {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "xpad": 0,
        "y": -8 / max(plot_height, 1),
        "yanchor": "top",
        "ypad": 0,
        "lenmode": "fraction",
        "len": length,
        "thickness": 12,
        "outlinewidth": 1,
        "outlinecolor": ink.line,
        "title": {"text": title, "side": "top", "font": font(ink, TICK_SIZE, strong=True)},
        "tickmode": "array",
        "tickvals": list(tickvals),
        "ticktext": [*map(number, tickvals)] if ticktext is None else list(ticktext),
        "tickfont": font(ink),
        "ticks": "outside",
        "ticklen": 3,
        "tickcolor": ink.line,
    }


def bar_overhang(last: int | float) -> float:
    """Pixels that a bar's last number reaches past it; Plotly leaves out what does not fit."""
    return label_pixels(number(last)) / 2 + 2


def color_bar_alone(
    scale: ColorScale, low: int | float, high: int | float, bar: dict[str, Any]
) -> dict[str, Any]:
    """A trace that shows nothing but its colour bar, for a picture that cannot have one."""
    return {
        **NOTHING,
        "marker": {
            "color": [low],
            "colorscale": scale,
            "cmin": low,
            "cmax": high,
            "showscale": True,
            "colorbar": bar,
        },
    }


def unseen_markers(
    places: Sequence[tuple[int | float, int | float]],
    customdata: Sequence[Sequence[int]] | None,
    texts: Sequence[str],
) -> dict[str, Any]:
    """Markers at (row, column), for the tooltip and the click of each; small, so none overlap."""
    return {
        "type": "scatter",
        "x": [column for _, column in places],
        "y": [row for row, _ in places],
        "mode": "markers",
        "marker": {"symbol": "square", "size": 6, "opacity": 0},
        "selected": {"marker": {"opacity": 0}},
        "unselected": {"marker": {"opacity": 0}},
        "customdata": customdata,
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def number(value: int | float) -> str:
    """A number for a colour bar: two significant digits, without a trail of zeros."""
    if value == 0:
        return "0"
    text = f"{value:.2g}"
    if "e" in text and 1e-4 < abs(value) < 1e6:
        text = f"{value:.0f}"
    return text.replace("-", "\N{MINUS SIGN}")


def layer_and_head(
    colors: Ink,
    layer_numbers: Sequence[int],
    n_heads: int,
    width: int | float,
    height: int | float,
) -> dict[str, Any]:
    """Both axes of a picture of all heads: heads across, their numbers on top, layers down."""
    across = _numbered(range(n_heads), width, 24)
    down = _numbered(layer_numbers, height, 16)
    return {
        "xaxis": axis(colors, "Head", n_heads, side="top", fixedrange=True, **across),
        "yaxis": axis(
            colors,
            "Layer",
            len(layer_numbers),
            down=True,
            fixedrange=True,
            scaleanchor=False,
            **down,
        ),
    }


def _numbered(numbers: Sequence[int], pixels: int | float, room: int) -> dict[str, Any]:
    places = list(range(0, len(numbers), tick_stride(len(numbers), pixels, room)))
    return {"tickvals": places, "ticktext": [str(numbers[place]) for place in places]}
