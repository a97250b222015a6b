"""Attention laid over a picture: each patch covered the more, the more weight it gets."""

from __future__ import annotations

import base64
import io

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
from PIL import Image

from explorer.figures.colors import Theme, ink

COVER = ((0.0, "rgba(230, 60, 0, 0)"), (1.0, "rgba(230, 60, 0, 0.92)"))
CHOSEN = "#00e5ff"


def over_picture(
    picture: npt.NDArray[np.uint8],
    weights: npt.NDArray[np.floating] | None,
    rows: int,
    columns: int,
    *,
    theme: Theme,
    chosen: tuple[int, int] | None = None,
    width_px: int = 480,
) -> go.Figure:
    """The picture (height, width, 3) in grey with its weights (rows, columns) over it.

    Without weights: the picture in colour, with the borders of its patches. `chosen` is the row
    and column of the query's patch.
    """
    shown = picture if weights is None else _grey(picture)
    figure = go.Figure()
    figure.add_layout_image(
        source=_png(shown),
        xref="x",
        yref="y",
        x=-0.5,
        y=-0.5,
        sizex=columns,
        sizey=rows,
        sizing="stretch",
        layer="below",
    )
    names = [[f"row {r + 1}, column {c + 1}" for c in range(columns)] for r in range(rows)]
    values = np.zeros((rows, columns)) if weights is None else weights
    figure.add_heatmap(
        z=values.astype(np.float32),
        text=names,
        zmin=0.0,
        zmax=max(float(np.nanmax(values)), 1e-9),
        colorscale=[list(stop) for stop in COVER],
        xgap=1 if weights is None else 0,
        ygap=1 if weights is None else 0,
        showscale=weights is not None,
        colorbar={
            "title": {"text": "Weight", "font": {"color": ink(theme).text}},
            "tickfont": {"color": ink(theme).text},
            "thickness": 12,
        },
        hovertemplate="%{text}<extra></extra>"
        if weights is None
        else "%{text}<br>weight %{z:.4f}<extra></extra>",
    )
    if weights is None:
        _borders(figure, rows, columns)
    if chosen is not None:
        row, column = chosen
        figure.add_shape(
            type="rect",
            x0=column - 0.5,
            x1=column + 0.5,
            y0=row - 0.5,
            y1=row + 0.5,
            line={"color": CHOSEN, "width": 3},
        )
    room = 0 if weights is None else 90
    plain = {"showgrid": False, "zeroline": False, "showticklabels": False, "constrain": "domain"}
    figure.update_layout(
        width=width_px,
        height=round((width_px - room) * rows / columns),
        margin={"l": 0, "r": room, "t": 0, "b": 0},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        dragmode=False,
        xaxis={**plain, "range": [-0.5, columns - 0.5], "fixedrange": True},
        yaxis={**plain, "range": [rows - 0.5, -0.5], "fixedrange": True},
    )
    return figure


def picture_alt(names: list[str], weights: npt.NDArray[np.floating], query: str) -> str:
    """The picture in words: where the most weight of this query goes."""
    best = int(np.nanargmax(weights))
    return (
        f"The picture with the weights of the query {query} over it: most on {names[best]}, "
        f"{float(weights.flat[best]):.4f}."
    )


def _borders(figure: go.Figure, rows: int, columns: int) -> None:
    line = {"color": "rgba(255, 255, 255, 0.7)", "width": 1}
    for n in range(1, columns):
        figure.add_shape(type="line", x0=n - 0.5, x1=n - 0.5, y0=-0.5, y1=rows - 0.5, line=line)
    for n in range(1, rows):
        figure.add_shape(type="line", x0=-0.5, x1=columns - 0.5, y0=n - 0.5, y1=n - 0.5, line=line)


def _grey(picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Grey and a little pale, so that the cover stands out on dark and light parts alike."""
    grey = np.asarray(Image.fromarray(picture).convert("L"), np.float32)
    pale = (90 + grey * 0.6).astype(np.uint8)
    return np.repeat(pale[..., None], 3, -1)


def _png(picture: npt.NDArray[np.uint8]) -> str:
    image = Image.fromarray(picture)
    if image.width < 448:  # sharp squares rather than a blur
        times = 448 // image.width
        image = image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
