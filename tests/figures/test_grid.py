"""The picture of all heads: right pixels in right places, its bar, its key, its size."""

from __future__ import annotations

import base64
import io
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import pytest
from PIL import Image

from explorer.figures import png
from explorer.figures.colors import Theme
from explorer.figures.grid import grid_alt, heads_grid
from explorer.figures.montage import PICTURE


def random_weights(*shape: int) -> npt.NDArray[np.float32]:
    scores = np.random.default_rng(0).normal(0, 2, shape)
    weights = np.exp(scores)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def grid(weights: npt.NDArray[Any], theme: Theme = "light", **options: Any) -> go.Figure:
    return heads_grid(weights, layer_numbers=range(len(weights)), theme=theme, **options)


def codes_of(figure: go.Figure) -> npt.NDArray[np.uint8]:
    data = base64.b64decode(figure.data[0].source.split(",")[1])
    image = Image.open(io.BytesIO(data))
    assert image.mode == "P"
    return np.asarray(image)


def cell_code(figure: go.Figure, layer: int, head: int, query: int, key: int, n: int) -> int:
    """The code at the middle of a cell, found through the picture's own coordinates."""
    picture, codes = figure.data[0], codes_of(figure)
    gap = np.flatnonzero(codes[codes.shape[0] // (2 * 2)] != png.GAP)[0] * picture.dx
    x = head - 0.5 + gap + (key + 0.5) / n * (1 - 2 * gap)
    y = layer - 0.5 + gap + (query + 0.5) / n * (1 - 2 * gap)
    column, row = round((x - picture.x0) / picture.dx), round((y - picture.y0) / picture.dy)
    return int(codes[row, column])


def bar_of(figure: go.Figure) -> Any:
    """The marker that carries the colour bar."""
    markers = [trace.marker for trace in figure.data if trace.type == "scatter"]
    return next(marker for marker in markers if marker.showscale)


def legend(figure: go.Figure) -> list[str]:
    return [trace.name for trace in figure.data if getattr(trace, "showlegend", False)]


def test_each_weight_is_drawn_in_its_own_layer_head_row_and_column() -> None:
    for place in [(0, 0, 0, 0), (0, 2, 1, 3), (1, 0, 3, 0), (1, 2, 2, 1)]:
        weights = np.zeros((2, 3, 4, 4))
        weights[place] = 1
        figure = grid(weights)
        assert cell_code(figure, *place, n=4) == png.LEVELS - 1
        assert (codes_of(figure) == png.LEVELS - 1).sum() == (40 // 4) ** 2


def test_colour_follows_the_root_of_the_weight() -> None:
    weights = np.array([[[[0.0, 0.25], [1.0, 0.01]]]])
    figure = grid(weights)
    found = [cell_code(figure, 0, 0, q, k, n=2) for q, k in [(0, 0), (0, 1), (1, 0), (1, 1)]]
    assert found == [0, round(0.5 * 63), 63, round(0.1 * 63)]


def test_a_shared_scale_ends_at_the_largest_weight_and_the_bar_says_so() -> None:
    weights = np.full((1, 2, 2, 2), 0.1)
    weights[0, 1] = 0.4
    figure = grid(weights)
    assert cell_code(figure, 0, 1, 0, 0, n=2) == 63
    assert cell_code(figure, 0, 0, 0, 0, n=2) in (31, 32)  # the root of a quarter
    bar = next(
        trace.marker for trace in figure.data if trace.type == "scatter" and trace.marker.showscale
    )
    assert (bar.cmin, bar.cmax) == (0, 1)
    assert bar.colorbar.ticktext[0] == "0" and bar.colorbar.ticktext[-1] == "0.4"
    middle = bar.colorbar.ticktext.index("0.1")
    assert bar.colorbar.tickvals[middle] == pytest.approx(0.5)
    assert "√" in bar.colorbar.title.text


def test_a_given_maximum_is_used() -> None:
    figure = grid(np.full((1, 1, 2, 2), 0.25), max_value=1.0)
    assert cell_code(figure, 0, 0, 0, 0, n=2) == round(0.5 * 63)


def test_forbidden_cells_are_drawn_as_forbidden_and_named() -> None:
    weights = np.eye(4)[None, None]
    forbidden = np.triu(np.ones((4, 4), bool), 1)
    figure = grid(weights, forbidden=forbidden)
    assert cell_code(figure, 0, 0, 0, 1, n=4) == png.FORBIDDEN
    assert cell_code(figure, 0, 0, 1, 0, n=4) == 0
    assert legend(figure) == ["forbidden by the mask"]


def test_a_mask_may_differ_by_layer() -> None:
    forbidden = np.zeros((2, 1, 4, 4), bool)
    forbidden[1] = True
    codes = codes_of(grid(np.ones((2, 3, 4, 4)), forbidden=forbidden))
    half = len(codes) // 2
    assert (codes[half:] == png.FORBIDDEN).any() and not (codes[:half] == png.FORBIDDEN).any()


def test_padded_rows_are_hatched_and_left_out_of_the_scale() -> None:
    weights = np.full((1, 1, 4, 4), 0.1)
    weights[0, 0, 3] = 0.9
    padded = np.array([False, False, False, True])
    figure = grid(weights, padded=padded)
    codes = codes_of(figure)
    assert {png.PADDED, png.HATCH} <= set(np.unique(codes[-10:-1]).tolist())
    assert cell_code(figure, 0, 0, 0, 0, n=4) == 63
    assert legend(figure) == ["padding, not a query"]


def test_cells_that_are_not_numbers_are_hatched_and_counted() -> None:
    weights = np.full((1, 1, 4, 4), 0.25)
    weights[0, 0, 1, 2:] = np.nan
    figure = grid(weights)
    assert legend(figure) == ["not a finite number: 2 cells"]
    assert (codes_of(figure) == png.HATCH).any()


def test_a_layer_without_attention_is_grey_named_and_gives_no_head_when_clicked() -> None:
    figure = heads_grid(
        np.ones((3, 2, 4, 4)),
        layer_numbers=[0, 1, 2],
        theme="dark",
        present=np.array([True, False, True]),
    )
    codes = codes_of(figure)
    third = len(codes) // 3
    assert set(np.unique(codes[third : 2 * third])) == {png.ABSENT, png.GAP}
    markers = [trace for trace in figure.data if trace.text is not None]
    assert markers[0].customdata == ([0, 0], [0, 1], [2, 0], [2, 1])
    assert markers[1].customdata is None
    assert markers[1].y == (1, 1) and "no attention" in markers[1].text[0]


def test_true_layer_numbers_stand_on_the_axis_and_in_the_clicks() -> None:
    figure = heads_grid(np.ones((2, 1, 2, 2)), layer_numbers=[3, 7], theme="light")
    assert figure.layout.yaxis.ticktext == ("3", "7")
    assert figure.layout.yaxis.tickvals == (0, 1)
    assert figure.data[1].customdata == ([3, 0], [7, 0])
    assert figure.data[1].text[1].startswith("<b>L7H0</b>")


def test_axes_are_named_numeric_and_layer_zero_is_on_top() -> None:
    layout = grid(np.ones((6, 12, 3, 3))).layout
    assert (layout.xaxis.title.text, layout.yaxis.title.text) == ("Head", "Layer")
    assert layout.xaxis.type == layout.yaxis.type == "linear"
    assert layout.xaxis.range == (-0.5, 11.5)
    assert layout.yaxis.range == (5.5, -0.5)


@pytest.mark.parametrize("n", [1, 3, 12, 32, 40, 64])
def test_the_picture_covers_the_axes_exactly_so_cells_are_centred(n: int) -> None:
    figure = grid(np.ones((2, 3, n, n)))
    picture, codes = figure.data[0], codes_of(figure)
    assert picture.x0 - picture.dx / 2 == pytest.approx(-0.5)
    assert picture.x0 + (codes.shape[1] - 0.5) * picture.dx == pytest.approx(2.5)
    assert picture.y0 + (codes.shape[0] - 0.5) * picture.dy == pytest.approx(1.5)
    assert (codes[0] == png.GAP).all() and (codes[:, -1] == png.GAP).all()
    assert (codes == codes[::-1, ::-1]).all()


def test_queries_and_keys_may_differ_in_number() -> None:
    weights = np.zeros((1, 1, 2, 40))
    weights[0, 0, 1, 39] = 1
    codes = codes_of(grid(weights))
    assert (codes == 63).sum() == 20  # one key wide, its query enlarged twentyfold
    assert codes[-2, -2] == 63


def test_gaps_are_transparent_so_the_page_shows_through() -> None:
    data = base64.b64decode(grid(np.ones((1, 2, 2, 2))).data[0].source.split(",")[1])
    assert np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))[0, 0, 3] == 0


def test_long_maps_show_the_largest_weight_of_each_block() -> None:
    weights = np.zeros((12, 12, 300, 300), np.float32)
    weights[4, 5, 123, 200] = 1
    figure = grid(weights)
    codes = codes_of(figure)
    assert max(codes.shape) <= PICTURE
    assert (codes == 63).sum() == 1
    assert "largest of 4 by 4 cells" in bar_of(figure).colorbar.title.text


def test_a_block_is_forbidden_only_where_all_of_it_is() -> None:
    forbidden = np.triu(np.ones((300, 300), bool), 1)
    codes = codes_of(grid(np.zeros((12, 12, 300, 300), np.float32), forbidden=forbidden))
    one = codes[: len(codes) // 12, : codes.shape[1] // 12]
    kept = one[one != png.GAP].reshape(75, 75)
    assert (kept == png.FORBIDDEN).tolist() == np.triu(np.ones((75, 75), bool), 1).tolist()


def test_the_selected_head_is_outlined() -> None:
    shape = grid(np.ones((3, 4, 2, 2)), selected=(2, 1)).layout.shapes[0]
    assert (shape.x0, shape.x1, shape.y0, shape.y1) == (0.5, 1.5, 1.5, 2.5)
    with pytest.raises(ValueError, match="selected"):
        grid(np.ones((3, 4, 2, 2)), selected=(3, 0))


def test_markers_cannot_overlap_so_the_nearest_head_answers() -> None:
    figure = grid(random_weights(24, 16, 8, 8), width_px=300)
    assert figure.data[1].marker.size < 300 / 16
    assert figure.layout.hoverdistance == -1


@pytest.mark.parametrize(
    ("shape", "megabytes"),
    [((6, 12, 12, 12), 0.1), ((12, 12, 32, 32), 0.2), ((12, 12, 128, 128), 1.5)],
)
def test_the_grid_is_light(shape: tuple[int, ...], megabytes: float) -> None:
    assert len(grid(random_weights(*shape)).to_json()) / 1e6 < megabytes


def test_the_grid_is_quick() -> None:
    weights = random_weights(12, 12, 32, 32)
    grid(weights)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        grid(weights)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.1  # 17 ms measured on two shared cores; bound for a busy machine


def test_one_layer_one_head_one_token_is_drawn() -> None:
    figure = grid(np.ones((1, 1, 1, 1)))
    assert cell_code(figure, 0, 0, 0, 0, n=1) == 63


def test_zero_weights_throughout_are_drawn_as_zero() -> None:
    assert set(np.unique(codes_of(grid(np.zeros((1, 1, 2, 2)))))) == {0, png.GAP}


@pytest.mark.parametrize(
    ("weights", "options", "named"),
    [
        (np.ones((2, 2)), {}, "weights"),
        (np.ones((1, 1, 0, 2)), {}, "weights"),
        (np.ones((1, 1, 2, 2)), {"padded": np.zeros(3, bool)}, "padded"),
        (np.ones((1, 1, 2, 2)), {"present": np.zeros(3, bool)}, "present"),
    ],
)
def test_wrong_shapes_are_named(
    weights: npt.NDArray[Any], options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        grid(weights, **options)


def test_the_words_say_how_many_heads_there_are_and_which_is_chosen() -> None:
    words = grid_alt(6, 12, 10, 10, selected="L5H1")
    assert "6 layers by 12 heads" in words and "L5H1 is selected" in words
    assert "1 layer by 1 head:" in grid_alt(1, 1, 1, 1)
