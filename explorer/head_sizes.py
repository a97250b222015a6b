"""How heads divide a layer: sizes, numbers of parameters, and what grouped queries share."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class HeadSizes:
    """A layer of d_model with n_heads heads, its keys and values in n_kv_heads.

    Without biases, d_k = d_v = d_model / n_heads: Vaswani et al. 2017, section 3.2.2; with fewer
    key/value heads than heads: Ainslie et al. 2023.
    """

    d_model: int
    n_heads: int
    n_kv_heads: int

    @property
    def d_k(self) -> int:
        """Size of a query, a key and a value in one head."""
        return self.d_model // self.n_heads

    @property
    def scale(self) -> float:
        """1/√d_k."""
        return 1 / math.sqrt(self.d_k)

    @property
    def parameters(self) -> dict[str, int]:
        """How many numbers each projection learns."""
        narrow = self.d_model * self.n_kv_heads * self.d_k
        wide = self.d_model * self.n_heads * self.d_k
        return {"W_Q": wide, "W_K": narrow, "W_V": narrow, "W_O": wide}

    @property
    def kept_per_token(self) -> int:
        """Numbers that a decoder keeps of each token: its keys and values."""
        return 2 * self.n_kv_heads * self.d_k

    def shared_by(self, kv_head: int) -> range:
        """The query heads that use this key/value head."""
        group = self.n_heads // self.n_kv_heads
        return range(kv_head * group, (kv_head + 1) * group)


def divisors(number: int, most: int) -> list[int]:
    """The whole numbers up to `most` that divide it."""
    return [candidate for candidate in range(1, most + 1) if number % candidate == 0]
