"""The heads' heatmap of signed numbers: 0 is neutral, wherever it lies in the range."""

from __future__ import annotations

import numpy as np

from explorer.figures.colors import diverging_colors, to_hex
from explorer.figures.heads_heatmap import heads_heatmap


def test_signed_numbers_have_a_neutral_zero() -> None:
    values = np.array([[-0.3, 0.1], [0.0, np.nan]])
    cells = next(
        trace
        for trace in heads_heatmap(
            values, title="change", unit="nats", theme="light", centred=True
        ).data
        if trace.type == "heatmap" and trace.zmin is not None
    )
    assert (cells.zmin, cells.zmax) == (-0.3, 0.1)
    places = [place for place, _ in cells.colorscale]
    at_zero = min(range(len(places)), key=lambda n: abs(places[n] - 0.75))
    neutral = np.array(diverging_colors("light")[128], int)
    found = cells.colorscale[at_zero][1]
    shade = np.array([int(found[n : n + 2], 16) for n in (1, 3, 5)])
    assert np.abs(shade - neutral).max() <= 8
    assert cells.colorscale[0][1] == to_hex(diverging_colors("light")[0])
