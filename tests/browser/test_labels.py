"""Labels in a browser: those of a row of controls on one line, and both ends of a colour bar."""

from __future__ import annotations

from itertools import combinations

import pytest
from playwright.sync_api import Page

from scripts.browser import Server, settled
from tests.browser.checks import on_a_phone_and_a_desk

ROWS = """() => [...document.querySelectorAll('[data-testid=stMain] [data-testid=stWidgetLabel]')]
    .filter(label => label.offsetParent)
    .map(label => {
        const box = label.getBoundingClientRect();
        return [label.innerText.split('\\n')[0], Math.round(box.top), Math.round(box.bottom)];
    })"""
NUMBERS = """() => [...document.querySelectorAll('.js-plotly-plot .colorbar')].map(
    bar => [...bar.querySelectorAll('.cbaxis text')]
        .filter(text => text.style.opacity !== '0' && text.checkVisibility())
        .map(text => text.textContent))"""


@on_a_phone_and_a_desk
@pytest.mark.parametrize(
    "link", ["step_by_step", "masks?mask=padding&join=and", "masks?join=or", "two_sequences"]
)
def test_labels_that_stand_side_by_side_are_on_one_line(
    link: str, watched_page: Page, server: Server
) -> None:
    watched_page.goto(f"{server.url}/{link}")
    settled(watched_page)
    labels = watched_page.evaluate(ROWS)
    assert len(labels) >= 6
    for (one, top, bottom), (other, above, below) in combinations(labels, 2):
        if top < below and above < bottom:  # a row
            assert abs(top - above) <= 2, (one, top, other, above)


@on_a_phone_and_a_desk
def test_both_ends_of_a_colour_bar_have_their_number(watched_page: Page, server: Server) -> None:
    watched_page.goto(f"{server.url}/step_by_step?station=join")
    settled(watched_page)
    shown = watched_page.evaluate(NUMBERS)
    assert [[texts[0], texts[-1]] for texts in shown] == [
        ["−0.96", "0.49"],
        ["−0.62", "0.67"],
        ["−0.72", "0.74"],
    ]
