"""A matrix as a picture: its numbers, its labels, its frames."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.matrix import matrix, matrix_alt

VALUES = np.array([[1.0, -2.0], [0.25, 0.0], [3.0, 0.5]])
LABELS = ["the", "<b>", "$x"]


def texts(figure: object) -> dict[tuple[int, int], str]:
    found = {}
    for trace in figure.data:  # type: ignore[attr-defined]
        if trace.type == "scatter" and trace.mode == "text":
            found |= {(y, x): t for y, x, t in zip(trace.y, trace.x, trace.text, strict=True)}
    return found


def test_the_cells_hold_the_matrix_and_its_numbers() -> None:
    figure = matrix(VALUES, row_labels=LABELS, theme="light")
    np.testing.assert_array_equal(figure.data[0].z, VALUES.astype(np.float32))
    found = texts(figure)
    assert len(found) == 6
    assert (found[0, 1], found[1, 0], found[2, 0]) == ("−2.0", ".25", "3.0")


def test_row_0_is_on_top_and_labels_are_data() -> None:
    figure = matrix(VALUES, row_labels=LABELS, theme="dark")
    assert figure.layout.yaxis.range == (2.5, -0.5)
    assert list(figure.layout.yaxis.ticktext) == ["the", "&#60;b&#62;", "&#36;x"]
    assert list(figure.layout.xaxis.ticktext) == ["0", "1"]


def test_the_colours_are_centred_on_0_or_as_they_are_told() -> None:
    own = matrix(VALUES, row_labels=LABELS, theme="light").data[0]
    assert (own.zmin, own.zmax) == (-2, 3)
    told = matrix(VALUES, row_labels=LABELS, theme="light", value_range=(-9.0, 9.0)).data[0]
    assert (told.zmin, told.zmax) == (-9, 9)


def test_past_what_fits_there_are_no_numbers() -> None:
    figure = matrix(np.ones((3, 40)), row_labels=LABELS, theme="light")
    assert texts(figure) == {}
    assert len(figure.layout.xaxis.ticktext) < 40


def test_a_cell_a_row_and_blocks_are_framed() -> None:
    figure = matrix(
        VALUES, row_labels=LABELS, theme="light", selected=(2, 1), selected_row=0, blocks=[1]
    )
    block, row, cell = figure.layout.shapes
    assert (block.x0, block.x1) == (0.5, 0.5)
    assert (row.x0, row.x1, row.y0, row.y1) == (-0.5, 1.5, -0.5, 0.5)
    assert (cell.x0, cell.x1, cell.y0, cell.y1) == (0.5, 1.5, 1.5, 2.5)


def test_a_single_zero_can_be_drawn() -> None:
    figure = matrix(np.zeros((1, 1)), row_labels=["a"], theme="light")
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-1, 1)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"row_labels": ["a"]}, "row_labels: 1 given; 3"),
        ({"column_labels": ["a"]}, "column_labels: 1 given; 2"),
        ({"blocks": [2]}, "blocks"),
        ({"selected": (3, 0)}, "selected"),
    ],
)
def test_what_does_not_fit_is_refused(more: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        matrix(VALUES, **({"row_labels": LABELS, "theme": "light"} | more))  # type: ignore[arg-type]


def test_the_words_name_the_shape_and_the_largest() -> None:
    words = matrix_alt("Q", LABELS, VALUES)
    assert "3 rows" in words and "2 columns" in words
    assert "from −2 to 3" in words
    assert "row 2 ($x), column 0" in words
