"""A mask painted cell by cell: short enough for an address, and fitted when the text changes."""

from __future__ import annotations

import re

import torch
from jaxtyping import Bool
from torch import Tensor

LARGEST = 32
"""Tokens a painted mask may have: 256 hexadecimal digits in an address."""

_FORM = re.compile(r"([1-9][0-9]?)-([0-9a-f]{1,256})")


def encode_painted(allowed: Bool[Tensor, "n n"]) -> str:
    """The size, a hyphen, and the cells row by row, four to a hexadecimal digit: "2-b" is 10 11."""
    n = len(allowed)
    if not 1 <= n <= LARGEST:
        raise ValueError(f"allowed: got {n} rows; 1 to {LARGEST} would work.")
    bits = "".join("1" if cell else "0" for cell in allowed.flatten().tolist())
    return f"{n}-{int(bits, 2):0{_digits(n)}x}"


def decode_painted(text: str) -> Bool[Tensor, "n n"]:
    """The mask that `encode_painted` wrote. Raises ValueError for anything it could not write."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("It is not a size, a hyphen and hexadecimal digits, as in “2-b”.")
    n, number = int(found[1]), int(found[2], 16)
    if n > LARGEST:
        raise ValueError(f"It has {n} tokens; at most {LARGEST} can be painted.")
    if len(found[2]) != _digits(n) or number >= 1 << n * n:
        raise ValueError(f"A mask of {n} × {n} cells has {_digits(n)} hexadecimal digits.")
    bits = f"{number:0{n * n}b}"
    return torch.tensor([bit == "1" for bit in bits]).reshape(n, n)


def fitted(allowed: Bool[Tensor, "n n"], length: int) -> Bool[Tensor, "length length"]:
    """The same cells for a text of another length: what fits is kept, what is new is allowed."""
    table = torch.ones(length, length, dtype=torch.bool)
    kept = min(length, len(allowed))
    table[:kept, :kept] = allowed[:kept, :kept]
    return table


def flipped(allowed: Bool[Tensor, "n n"], query: int, key: int) -> Bool[Tensor, "n n"]:
    """A copy with one cell the other way round."""
    table = allowed.clone()
    table[query, key] = ~table[query, key]
    return table


def _digits(n: int) -> int:
    return -(-n * n // 4)
