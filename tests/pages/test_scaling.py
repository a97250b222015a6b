"""The page Scaling: each view, its numbers, its words, and links that ask for too much."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from explorer.ui.scaling import VIEWS
from explorer.ui.scaling_questions import QUESTIONS
from tests.pages import driven
from tests.pages.driven import answer_all, said

opened = partial(driven.opened, "scaling")


def metric(app: AppTest, number: int) -> tuple[float, float]:
    """A headline: without the scale, and with it."""
    without, with_scale = app.metric[number].value.replace("\N{MINUS SIGN}", "-").split(" → ")
    return float(without), float(with_scale)


def test_at_512_the_scores_deviate_by_23_unscaled_and_1_scaled() -> None:
    app = opened(scaling_d_k="512")
    unscaled, scaled = metric(app, 0)
    assert unscaled == pytest.approx(22.6, rel=0.05)
    assert scaled == pytest.approx(1, rel=0.05)
    assert "standard deviation √d_k = 22.6" in said(app)
    largest, keys, gradient = (metric(app, number) for number in (1, 2, 3))
    assert largest == pytest.approx((0.95, 0.25), abs=0.03)
    assert keys == pytest.approx((1.17, 10.8), rel=0.05)
    assert gradient[0] < 1e-3 < 0.25 < gradient[1]


def test_dragging_the_slider_saturates_softmax() -> None:
    app = opened()
    largest = []
    for d_k in (1, 64, 4096):
        app.select_slider(key="scaling_d_k").set_value(d_k).run()
        assert not app.exception
        largest.append(metric(app, 1))
    unscaled, scaled = zip(*largest, strict=True)
    assert unscaled[0] < unscaled[1] < unscaled[2]
    assert max(scaled) < 0.3
    assert unscaled[0] == scaled[0]  # 1/√1 is 1


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_opens_from_a_link_and_has_its_numbers_as_a_table(view: str) -> None:
    app = opened(scaling_view=view, scaling_keys="4")
    table = app.dataframe[-1].value
    assert len(table) == 24 and list(table["d_k"][:3]) == [1, 2, 3]
    assert np.isfinite(table.to_numpy(dtype=float)).all()
    row = table[table["d_k"] == 512].iloc[0]
    assert row["variance, theory"] == 512
    assert abs(row["variance, measured"] - 512) < 4 * row["± standard error"]
    assert 1 <= row["effective keys, unscaled"] <= row["effective keys, scaled"] <= 4


def test_the_gradients_median_and_mean_are_named_at_the_chosen_size() -> None:
    app = opened(scaling_view="gradient", scaling_d_k="4096")
    sentence = next(e.value for e in app.markdown if "median example's gradient" in e.value)
    assert sentence.startswith("At d_k = 4,096")
    medians = re.findall(r"\*\*([\d.e−]+)\*\*", sentence)
    without, with_scale = (float(found.replace("\N{MINUS SIGN}", "-")) for found in medians)
    assert without < 1e-5 < 0.05 < with_scale
    app.segmented_control(key="gradient_at").set_value("key").run()
    assert not app.exception
    assert "**∂loss/∂k** of our own" in said(app)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ({"shared": "0.1"}, "scaling is no guarantee"),
        ({"rho": "0.6"}, "the mean score is 13.6 after scaling"),  # 0.6·√512
        ({"component_mean": "0.5"}, "a variance of 768, so 1.50 after scaling"),
        ({"component_mean": "0.5"}, "keys of one query: 1.25 after scaling"),
        ({"component_variance": "4"}, "a variance of 8,192, so 16.0 after scaling"),
        ({"family": "student"}, "Heavy tails change nothing"),
        ({"family": "signs"}, "Components are independent"),
    ],
    ids=str,
)
def test_the_page_says_what_the_components_do_to_the_argument(
    address: dict[str, str], words: str
) -> None:
    assert words in said(opened(scaling_d_k="512", **address))


def test_other_scales_stand_side_by_side() -> None:
    app = opened(scaling_view="scales", scaling_d_k="64", learned="0.3")
    table = app.dataframe[0].value.set_index("scale, at d_k = 64")["standard deviation"]
    assert table["1"] == pytest.approx(8, rel=0.02)
    assert table["1/√d_k"] == pytest.approx(1, rel=0.02)
    assert table["1/d_k"] == pytest.approx(1 / 8, rel=0.02)
    assert table["one learned number"] == pytest.approx(0.3 * 8, rel=0.02)
    assert table["cosine (QK-norm)"] == pytest.approx(10 / 8, rel=0.03)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scaling_d_k", "999999999"),
        ("scaling_keys", "-1"),
        ("scaling_pairs", "1e9"),
        ("scaling_seed", "<b>"),
        ("scaling_row", "500"),
        ("family", "cauchy"),
        ("rho", "2"),
        ("scaling_view", "nothing"),
    ],
)
def test_a_link_that_asks_for_too_much_falls_back_with_a_word(name: str, value: str) -> None:
    app = opened(**{name: value})
    assert app.warning and "The link asks for" in app.warning[0].value
    assert app.select_slider(key="scaling_d_k").value == 64


def test_the_largest_sizes_stay_within_bounds() -> None:
    app = opened(scaling_d_k="4096", scaling_keys="1024", scaling_pairs="8000", shared="0.5")
    assert "16 queries with 1,024 keys each" in said(app)


def test_another_seed_gives_other_numbers_and_says_so() -> None:
    first, other = opened(), opened(scaling_seed="7")
    assert metric(first, 0) != metric(other, 0)
    assert "Drawn with seed 7" in said(other)


def test_every_answer_of_the_questions_gives_its_reason() -> None:
    answer_all(opened(), "scaling", QUESTIONS)
