"""The four maps of a mask: what is forbidden, one range for both scores, one size for all."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.masks import MaskMaps, mask_maps

LABELS = ("the", "cat", "<b>sat</b>")
ALLOWED = np.tril(np.ones((3, 3), bool))
SCORES = np.array([[1, -4, 2], [0, 1, 2], [3, 0, -1]], np.float32)
WEIGHTS = np.array([[1, 0, 0], [0.4, 0.6, 0], [0.5, 0.3, 0.2]], np.float32)


def maps(**more: object) -> MaskMaps:
    given = {"labels": LABELS, "theme": "light", **more}
    return mask_maps(ALLOWED, SCORES, WEIGHTS, **given)  # type: ignore[arg-type]


def heatmap(figure: object) -> dict[str, object]:
    """The trace that holds the values: the last heatmap, over the ground of forbidden cells."""
    traces = [trace for trace in figure.data if trace.type == "heatmap"]  # type: ignore[attr-defined]
    return traces[-1].to_plotly_json()


def test_the_mask_holds_one_where_a_key_may_be_used_and_says_so() -> None:
    cells = heatmap(maps().mask)
    assert np.array_equal(np.asarray(cells["z"]), ALLOWED)
    assert cells["text"][0] == ["may be used", "forbidden by the mask", "forbidden by the mask"]  # type: ignore[index]


def test_forbidden_scores_and_weights_have_no_value() -> None:
    found = maps()
    assert np.array_equal(np.isnan(np.asarray(heatmap(found.masked_scores)["z"])), ~ALLOWED)
    assert np.array_equal(np.isnan(np.asarray(heatmap(found.weights)["z"])), ~ALLOWED)
    assert not np.isnan(np.asarray(heatmap(found.scores)["z"])).any()


def test_both_maps_of_scores_share_a_range_and_weights_begin_at_zero() -> None:
    found = maps()
    for figure in (found.scores, found.masked_scores):
        assert (heatmap(figure)["zmin"], heatmap(figure)["zmax"]) == (-4, 3)
    assert heatmap(found.weights)["zmin"] == 0


def test_all_four_have_one_size_and_named_axes() -> None:
    for padded in (None, np.array([False, False, True])):
        found = maps(padded=padded)
        assert len({(figure.layout.width, figure.layout.height) for figure in found}) == 1
        for figure in found:
            assert figure.layout.xaxis.title.text == "Key (column)"
            assert figure.layout.yaxis.title.text == "Query (row)"


def test_padded_queries_are_hatched_and_out_of_the_range() -> None:
    found = maps(padded=np.array([True, False, False]))
    for figure in found:
        assert any("padding" in (trace.name or "") for trace in figure.data)
    assert heatmap(found.scores)["zmin"] == -1  # −4 stands in the padded row


def test_user_text_is_escaped_on_the_axes() -> None:
    for figure in maps():
        assert "<b>" not in "".join(figure.layout.xaxis.ticktext)


def test_the_cell_to_paint_is_outlined() -> None:
    (box,) = maps(selected=(2, 0)).mask.layout.shapes
    assert (box.y0, box.y1, box.x0, box.x1) == (1.5, 2.5, -0.5, 0.5)
    assert not maps().mask.layout.shapes


@pytest.mark.parametrize("length", [3, 12])
def test_the_maps_keep_to_the_width_they_are_given(length: int) -> None:
    labels = ["[PAD]"] * length
    allowed = np.ones((length, length), bool)
    values = np.zeros((length, length), np.float32)
    found = mask_maps(allowed, values, values, labels=labels, theme="dark", width_px=250)
    assert max(figure.layout.width for figure in found) <= 250
