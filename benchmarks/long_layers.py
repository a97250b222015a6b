"""What the benchmarks of long texts look at: one layer of random heads, and tokens that repeat."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from explorer.attention import Attention
from explorer.masks import Mask, causal, sliding_window
from explorer.row_measures import TokenMarks

N_HEADS, HEAD_SIZE = 12, 64
WINDOW = 512  # keys of the sliding window
NONE, CAUSAL, SLIDING = "none", "causal", f"sliding window of {WINDOW}"
VOCABULARY = 5000


def layer(
    length: int,
    mask: str = NONE,
    n_heads: int = N_HEADS,
    *,
    deviation: int | float = 1,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Attention:
    """Random queries, keys and values whose scaled scores have this standard deviation."""
    generator = torch.Generator().manual_seed(length)
    query, key, value = (
        torch.randn(n_heads, length, HEAD_SIZE, generator=generator).to(device, dtype)
        for _ in range(3)
    )
    return Attention(query * deviation, key, value, rule(mask))


def rule(mask: str) -> Mask | None:
    return {NONE: None, CAUSAL: causal(), SLIDING: sliding_window(WINDOW)}[mask]


def marks(length: int) -> TokenMarks:
    """Tokens as frequent as the words of a language (Zipf): the commonest is every ninth."""
    generator = torch.Generator().manual_seed(length)
    frequency = 1 / torch.arange(1, VOCABULARY + 1)
    codes = torch.multinomial(frequency, length, replacement=True, generator=generator)
    special = torch.zeros(length, dtype=torch.bool)
    special[[0, -1]] = True
    return TokenMarks(codes, codes, special, (codes == 1) | (codes == 3))


def threads(one: bool) -> Callable[[], float]:
    """Sets torch's threads, and gives the clock that fits.

    Our workers add up in the process's CPU time, which busy neighbours do not change.
    """
    if one:
        torch.set_num_threads(1)
    return time.process_time if one else time.perf_counter
