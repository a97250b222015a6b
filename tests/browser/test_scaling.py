"""The page Scaling in a browser: the slider by keyboard, first view at a glance, phones."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from scripts.browser import Server, settled
from tests.browser.checks import overflow, serious_violations
from tests.browser.plots import box_of, tooltip


@pytest.mark.parametrize(
    "watched_page", [{"viewport": {"width": 1440, "height": 900}}], indirect=True
)
def test_the_slider_moves_by_keyboard_and_the_first_view_holds_both_pictures(
    watched_page: Page, server: Server
) -> None:
    watched_page.goto(f"{server.url}/scaling?scaling_d_k=384")
    settled(watched_page)
    watched_page.get_by_role("slider").first.focus()
    watched_page.keyboard.press("ArrowRight")
    watched_page.wait_for_url("**scaling_d_k=512**")
    settled(watched_page)
    expect(watched_page.get_by_text("standard deviation √d_k = 22.6")).to_be_visible()
    for name in ("scores", "weights"):
        box = box_of(watched_page, f".st-key-scaling_chart_{name} .still svg")
        assert box["y"] + box["height"] <= 900


def test_the_pointer_reads_a_weight_and_a_density(watched_page: Page, server: Server) -> None:
    watched_page.goto(f"{server.url}/scaling?scaling_d_k=512")
    settled(watched_page)
    said = []
    for name, across in (("weights", 0.17), ("scores", 0.5)):
        chart = f".st-key-scaling_chart_{name}"

        def aim(chart: str = chart, across: float = across) -> tuple[float, float]:
            box = box_of(watched_page, f"{chart} .still svg")
            return box["x"] + across * box["width"], box["y"] + 0.3 * box["height"]

        tip = watched_page.locator(f"{chart} .still-tip")
        said.append(tooltip(watched_page, aim, tip).split("\n"))
    weights, scores = said
    assert weights[0] == "unscaled, key 1 by weight"
    largest = watched_page.locator("svg text", has_text="largest weight").first.text_content()
    assert round(float(weights[1]), 3) == float((largest or "").split()[-1])
    assert scores[0] == "unscaled"
    assert scores[1].startswith("score ") and scores[2].startswith("density 0.0")


def test_the_upright_moves_to_the_chosen_size_and_redraws_no_curve(
    watched_page: Page, server: Server
) -> None:
    watched_page.goto(f"{server.url}/scaling?scaling_d_k=8")
    settled(watched_page)
    watched_page.evaluate(
        "() => document.querySelectorAll('.js-plotly-plot .main-svg').forEach(s => s.mark = 1)"
    )
    uprights = watched_page.locator(".js-plotly-plot .chart-upright")
    expect(uprights).to_have_text(["d_k = 8", "d_k = 8"])
    before = uprights.first.bounding_box()
    watched_page.get_by_role("slider").first.focus()
    watched_page.keyboard.press("End")
    watched_page.wait_for_url("**scaling_d_k=4096**")
    settled(watched_page)
    expect(uprights).to_have_text(["d_k = 4,096", "d_k = 4,096"])
    after = uprights.first.bounding_box()
    area = box_of(watched_page, ".st-key-scaling_chart_keys .nsewdrag")
    assert before is not None and after is not None
    for box, share in ((before, 3 / 12), (after, 1)):  # 2³ of 2¹²
        assert abs(box["x"] + 1 - area["x"] - share * area["width"]) < 1.5
    assert watched_page.evaluate(
        "() => [...document.querySelectorAll('.js-plotly-plot .main-svg')].every(s => s.mark)"
    )


@pytest.mark.parametrize(
    "watched_page",
    [{"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}],
    indirect=True,
)
@pytest.mark.parametrize("view", ["variance", "gradient", "scales"])
def test_a_phone_shows_all_of_it(watched_page: Page, server: Server, view: str) -> None:
    watched_page.goto(f"{server.url}/scaling?scaling_view={view}&rho=0.3&scaling_keys=1024")
    settled(watched_page)
    expect(watched_page.get_by_text("Test yourself")).to_be_attached()
    assert overflow(watched_page) == 0
    assert serious_violations(watched_page) == []
