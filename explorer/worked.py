"""Worked examples: attention so small that a person can check every weight by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from explorer.attention import Attention

Vector = Sequence[int | float]
LOG_2, LOG_3 = math.log(2), math.log(3)


@dataclass(frozen=True, eq=False)
class Worked:
    """One example: who looks at whom, the vectors, and what a reader should find."""

    title: str
    about: str
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    attention: Attention
    """One head, no mask: the mask is chosen beside it."""
    mask: str = "none"
    """The mask it opens with: "none" or "causal"."""
    opens: tuple[int, int] = (0, 0)
    """The query and key it opens with."""


def _worked(
    title: str,
    about: str,
    query: dict[str, Vector],
    key: dict[str, Vector],
    value: list[Vector],
    mask: str = "none",
    opens: tuple[int, int] = (0, 0),
) -> Worked:
    def one_head(rows: list[Vector]) -> torch.Tensor:
        return torch.tensor(rows, dtype=torch.float32)[None]

    made = Attention(one_head(list(query.values())), one_head(list(key.values())), one_head(value))
    return Worked(title, about, tuple(query), tuple(key), made, mask, opens)


EXAMPLES: dict[str, Worked] = {
    "dots": _worked(
        "Two queries, three keys",
        "The dots are [1, 2, 0] and [2, 0, 6]. The last: 0·0 + 2·3 = 6. Each is then divided by "
        "√2, because the vectors have 2 numbers.",
        {"q0": [1, 0], "q1": [0, 2]},
        {"k0": [1, 1], "k1": [2, 0], "k2": [0, 3]},
        [[1, 0], [0, 1], [1, 1]],
        opens=(1, 2),
    ),
    "quarter": _worked(
        "Weights ¼ and ¾",
        "The scores are 0 and log 3. Their exponentials are 1 and 3, the sum is 4, so the weights "
        "are ¼ and ¾. The values are 2 and 6: the output is ¼·2 + ¾·6 = 5.",
        {"q0": [1]},
        {"k0": [0], "k1": [LOG_3]},
        [[2], [6]],
        opens=(0, 1),
    ),
    "equal": _worked(
        "Equal scores",
        "Four different keys, but each has the dot 2 with the query. Equal scores give equal "
        "weights, ¼ each, so the output is the mean of the values 1, 3, 5 and 7: 4.",
        {"q0": [1, 1]},
        {"k0": [2, 0], "k1": [0, 2], "k2": [1, 1], "k3": [3, -1]},
        [[1], [3], [5], [7]],
    ),
    "causal": _worked(
        "Causal",
        "Every query is 1; the keys are 0, log 2 and log 3, whose exponentials are 1, 2 and 3. "
        "With the causal mask the rows are [1, 0, 0], [⅓, ⅔, 0] and [⅙, ⅓, ½]. The values 6, 3 "
        "and 12 give the outputs 6, 4 and 8.",
        {"t0": [1], "t1": [1], "t2": [1]},
        {"t0": [0], "t1": [LOG_2], "t2": [LOG_3]},
        [[6], [3], [12]],
        mask="causal",
        opens=(1, 1),
    ),
    "scale": _worked(
        "What √dₖ does",
        "The dots are 0 and 2·log 3. Halved, because √4 = 2, they are 0 and log 3: weights ¼ and "
        "¾. Set the scale to 2× to undo the division: the weights become ⅒ and 9⁄10.",
        {"q0": [1, 1, 1, 1]},
        {"k0": [0, 0, 0, 0], "k1": [LOG_3, LOG_3, 0, 0]},
        [[0], [1]],
        opens=(0, 1),
    ),
}
"""By the name that stands in a link."""
