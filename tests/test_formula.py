"""The formula marks each station's part, and only that."""

from __future__ import annotations

import pytest

from explorer.formula import STATIONS, formula

MARKED = {
    "qkv": ["Q", "K", "V"],
    "dots": [r"Q\,K^{\top}"],
    "scale": [r"\sqrt{d_k}"],
    "mask": [r"\text{mask}"],
    "softmax": [r"\operatorname{softmax}"],
    "values": [r"\cdot V"],
    "join": ["W_O"],
}


def test_there_are_seven_stations_in_the_order_of_the_arithmetic() -> None:
    assert [station.name for station in STATIONS] == list(MARKED)


@pytest.mark.parametrize("station", MARKED)
def test_the_stations_part_is_boxed_and_nothing_else(station: str) -> None:
    found = formula(station, "#d9480f")
    for part in MARKED[station]:
        assert rf"\textcolor{{#d9480f}}{{\boxed{{{part}}}}}" in found
    assert found.count(r"\boxed") == len(MARKED[station])
    assert found.count("{") == found.count("}")


def test_a_factor_on_the_scale_is_written() -> None:
    assert r"\sqrt{d_k}{\scriptstyle\,/2.5}" in formula("qkv", "#000000", 2.5)
    assert "/" not in formula("qkv", "#000000")


def test_an_unknown_station_is_refused() -> None:
    with pytest.raises(ValueError, match="one of qkv"):
        formula("nowhere", "#000000")
