"""Colour scales: even in lightness, centred on the page, and readable text on both themes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from explorer.figures.colors import (
    Theme,
    contrast,
    diverging_colors,
    diverging_scale,
    from_hex,
    head_colors,
    ink,
    sequential_colors,
    sequential_scale,
)
from explorer.figures.numbers import INKS
from explorer.figures.oklab import Colors, oklab_to_rgb, rgb_to_oklab

THEMES: list[Theme] = ["light", "dark"]
both_themes = pytest.mark.parametrize("theme", THEMES)


@both_themes
def test_larger_weights_lie_further_from_the_page(theme: Theme) -> None:
    lightness = rgb_to_oklab(sequential_colors(theme, 33))[:, 0]
    page = rgb_to_oklab(np.array([from_hex(ink(theme).page)], np.uint8))[0, 0]
    away = -1 if theme == "light" else 1
    assert np.all(np.diff(lightness) * away > 0)
    assert abs(lightness[0] - page) < 0.1 and abs(lightness[-1] - page) > 0.7


@both_themes
@pytest.mark.parametrize("colors", [sequential_colors, diverging_colors])
def test_steps_look_about_equal(theme: Theme, colors: Callable[[Theme, int], Colors]) -> None:
    steps = np.linalg.norm(np.diff(rgb_to_oklab(colors(theme, 33)), axis=0), axis=1)
    assert steps.max() / steps.min() < 2


@both_themes
def test_equal_sizes_of_either_sign_are_equally_light(theme: Theme) -> None:
    lightness = rgb_to_oklab(diverging_colors(theme))[:, 0]
    assert np.allclose(lightness, lightness[::-1], atol=0.03)
    middle = diverging_colors(theme)[128].astype(int)
    assert np.ptp(middle) <= 3  # grey


@both_themes
def test_negative_and_positive_differ_for_every_kind_of_colour_sight(theme: Theme) -> None:
    # Blue against orange differ along the yellow-blue axis, which red-green blindness keeps.
    lab = rgb_to_oklab(diverging_colors(theme))
    assert lab[64, 2] < -0.05 and lab[192, 2] > 0.05


@both_themes
def test_text_reaches_the_strict_contrast_on_its_page(theme: Theme) -> None:
    colors = ink(theme)
    for text in (colors.text, colors.muted):
        assert contrast(from_hex(text), from_hex(colors.page)) >= 7
    for graphic in (colors.accent, colors.bar):
        assert contrast(from_hex(graphic), from_hex(colors.page)) >= 3


@both_themes
def test_numbers_can_be_read_on_every_colour(theme: Theme) -> None:
    for color in (*sequential_colors(theme), *diverging_colors(theme)):
        assert max(contrast(color, from_hex(text)) for text in INKS) >= 4.5


@both_themes
def test_a_forbidden_cell_has_no_colour_of_the_scales(theme: Theme) -> None:
    forbidden = rgb_to_oklab(np.array([from_hex(ink(theme).forbidden)], np.uint8))
    for colors in (sequential_colors(theme), diverging_colors(theme)):
        assert np.linalg.norm(rgb_to_oklab(colors) - forbidden, axis=1).min() > 0.02


@both_themes
def test_twenty_heads_have_twenty_colours(theme: Theme) -> None:
    colors = head_colors(20, theme)
    lab = rgb_to_oklab(np.array([from_hex(color) for color in colors], np.uint8))
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
    assert apart[~np.eye(20, dtype=bool)].min() > 0.03
    page = from_hex(ink(theme).page)
    assert min(contrast(from_hex(color), page) for color in colors) >= 3


def test_the_root_scale_gives_a_quarter_of_the_largest_the_middle_colour() -> None:
    scale = sequential_scale("light", root=True)
    places = [place for place, _ in scale]
    assert places[0] == 0 and places[-1] == 1
    assert places[16] == pytest.approx(0.25)
    assert scale[16][1] == sequential_scale("light", root=False)[16][1]


def test_a_one_sided_range_uses_one_side_of_the_scale() -> None:
    whole = dict(map(tuple, diverging_scale("light", -1, 1)))
    positive = diverging_scale("light", 0, 5)
    assert positive[0][1] == whole[0.5]
    assert positive[-1][1] == whole[1.0]


def test_a_lopsided_range_keeps_zero_neutral() -> None:
    scale = diverging_scale("light", -3, 1)
    assert scale[30] == [0.75, diverging_scale("light", -1, 1)[20][1]]


def test_a_range_without_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="holds 0"):
        diverging_scale("light", 1, 2)


def test_oklab_gives_white_lightness_one_and_inverts() -> None:
    rgb = np.array([[255, 255, 255], [0, 0, 0], [18, 130, 200]], np.uint8)
    lab = rgb_to_oklab(rgb)
    assert np.allclose(lab[:2], [[1, 0, 0], [0, 0, 0]], atol=1e-4)
    assert (oklab_to_rgb(lab) == rgb).all()
