"""Panels of distributions and of sorted weights: drawn values, shared axes, names and notes."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt
import pytest

from explorer.figures.distribution import MOST_BARS, Panel, distributions, sorted_weights
from explorer.figures.still import Still

SVG = "{http://www.w3.org/2000/svg}"


def written(picture: Still) -> list[str]:
    return [node.text or "" for node in ET.fromstring(picture.svg).iter(f"{SVG}text")]


def filled(picture: Still) -> list[str]:
    """The colours of the paths that are filled: one a panel."""
    fills = [node.attrib["fill"] for node in ET.fromstring(picture.svg).iter(f"{SVG}path")]
    return [fill for fill in fills if fill != "none"]


def said(picture: Still, panel: int) -> npt.NDArray[np.float64]:
    """The numbers in a panel's tooltips; NaN where there is none."""
    (answer,) = picture.answers
    cells = np.array(answer.cells, dtype=object).reshape(picture.shape)[panel]
    return np.array([np.nan if cell is None else float(cell) for cell in cells])


def test_a_histograms_area_is_1_and_both_share_one_axis() -> None:
    values = np.random.default_rng(0).normal(size=20_000)
    panels = [Panel("wide", 8 * values, "sd 8"), Panel("narrow", values)]
    picture = distributions(panels, x_title="score", theme="light")
    places = np.array([float(name.replace("\N{MINUS SIGN}", "-")) for name in picture.x])
    step = np.ptp(places) / (len(places) - 1)
    wide, narrow = said(picture, 0), said(picture, 1)
    assert np.nansum(wide) * step == pytest.approx(1, abs=0.02)
    assert np.nansum(narrow) * step == pytest.approx(1, abs=0.05)
    assert np.ptp(places[np.isfinite(wide)]) > 7 * np.ptp(places[np.isfinite(narrow)])
    middle = int(np.argmin(np.abs(places)))  # the normal density at 0 is 1/√(2π)
    assert narrow[middle] == pytest.approx(0.399, abs=0.05)
    assert {"wide", "sd 8", "narrow", "score", "density", "0", "20", "−20"} <= set(written(picture))


def test_equal_values_have_a_histogram_too() -> None:
    picture = distributions([Panel("one", np.zeros(5))], x_title="score", theme="dark")
    assert np.nanmax(said(picture, 0)) == pytest.approx(36)  # all in one of 36 bins from -½ to ½


def test_weights_stand_from_the_largest_to_the_smallest_between_0_and_1() -> None:
    picture = sorted_weights([Panel("a", np.array([0.2, 0.7, 0.1]))], theme="light")
    assert said(picture, 0).tolist() == [0.7, 0.2, 0.1]
    assert picture.x == ["1", "2", "3"]
    assert picture.answers[0].lines == ("%{y}, key %{x} by weight", "%{cell}")
    assert {"0", "½", "1", "2", "3", "weight"} <= set(written(picture))


@pytest.mark.parametrize("n", [MOST_BARS, MOST_BARS + 1])
def test_each_weight_is_drawn_as_high_as_it_is(n: int) -> None:
    weights = np.linspace(1, 0, n)
    picture = sorted_weights([Panel("a", weights)], theme="light", height=300)
    paths = [node.attrib for node in ET.fromstring(picture.svg).iter(f"{SVG}path")]
    path = next(each["d"] for each in paths if each["fill"] != "none")
    tops = [float(top) for top in re.findall(r"V([\d.]+)H", path)]
    top, down = picture.area[1], picture.area[3]
    np.testing.assert_allclose(tops, top + down * (1 - weights), atol=0.01)
    assert path.count("Z") == (n if n <= MOST_BARS else 1)  # bars, or one outline


def test_panels_differ_in_colour_and_text_is_data() -> None:
    picture = sorted_weights(
        [Panel("<i>", np.ones(1)), Panel("b & c", np.ones(1))], theme="light", width=400
    )
    assert len(set(filled(picture))) == 2
    assert picture.width == 400
    assert "<i>" not in picture.svg
    assert {"<i>", "b & c"} <= set(written(picture))
    assert picture.y == ["<i>", "b & c"]


@pytest.mark.parametrize("n", [2, 3, 16, 64, 1000, 1024])
def test_keys_have_whole_numbers_at_their_ticks(n: int) -> None:
    picture = sorted_weights([Panel("a", np.full(n, 1 / n))], theme="dark")
    (foot,) = {
        node.attrib["y"]
        for node in ET.fromstring(picture.svg).iter(f"{SVG}text")
        if node.text == ("2" if n < 32 else "200" if n > 500 else "20")
    }
    texts = [node for node in ET.fromstring(picture.svg).iter(f"{SVG}text")]
    labels = [node.text or "" for node in texts if node.attrib["y"] == foot]
    assert 2 <= len(labels) <= 8
    assert all(1 <= int(label.replace(",", "")) <= n for label in labels)
