"""A painted mask in an address: written short, checked on the way in, kept where it fits."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.painting import LARGEST, decode_painted, encode_painted, fitted, flipped

TABLE = torch.tensor([[True, False], [True, True]])


def test_two_rows_make_one_digit() -> None:
    assert encode_painted(TABLE) == "2-b"  # 10 11 is 1011, which is b
    assert torch.equal(decode_painted("2-b"), TABLE)


@given(n=st.integers(1, LARGEST), seed=st.integers(0, 999))
def test_what_is_written_is_read_back(n: int, seed: int) -> None:
    table = torch.rand(n, n, generator=torch.Generator().manual_seed(seed)) < 0.5
    written = encode_painted(table)
    assert len(written) <= 259
    assert torch.equal(decode_painted(written), table)
    assert encode_painted(decode_painted(written)) == written


FORMS = "2|2-|-b|0-0|02-b|2-B|2-0b|2-b |3-f|1-2|33-f|99-ff|٢-b|2-b\n".split("|")


@pytest.mark.parametrize("text", ["", *FORMS, "2-" + "f" * 4000, "32-" + "0" * 255])
def test_anything_else_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"\."):
        decode_painted(text)


def test_a_longer_text_keeps_the_cells_and_allows_the_new_ones() -> None:
    table = fitted(TABLE, 3)
    assert table.tolist() == [[True, False, True], [True, True, True], [True, True, True]]


def test_a_shorter_text_shows_what_fits() -> None:
    assert fitted(torch.eye(4).bool(), 2).tolist() == [[True, False], [False, True]]


def test_flipping_a_cell_leaves_the_table_it_came_from() -> None:
    before = TABLE.clone()
    assert flipped(TABLE, 0, 1).tolist() == [[True, True], [True, True]]
    assert torch.equal(TABLE, before)


def test_a_mask_too_large_for_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 32"):
        encode_painted(torch.ones(33, 33, dtype=torch.bool))
