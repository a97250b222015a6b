"""A reader's changes as a code: written, read again, and refused with a sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.changes import (
    MOST,
    RULES,
    Change,
    decode_changes,
    encode_changes,
    numbers_written,
)
from explorer.painting import encode_painted

MASKS = [encode_painted(torch.ones(n, n).tril().bool()) for n in range(1, 6)]
places = st.sets(st.integers(0, 60), min_size=1, max_size=6).map(lambda s: tuple(sorted(s)))
some = st.none() | places
number = st.integers(0, 10**7).map(lambda n: n / 10**4)
where = {"layers": some, "heads": some, "stack": st.integers(0, 3)}


def of(what: str, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The fields of a change; it is made in the test, as beartype's checks draw at random."""
    return st.fixed_dictionaries({"what": st.just(what), **where, **more})


changes = st.one_of(
    of("times", number=number),
    of("rule", how=st.sampled_from(list(RULES))),
    of("causal", how=st.sampled_from(["on", "off"])),
    of("window", keys=st.integers(1, 512).map(lambda n: (n,))),
    of("nokeys", keys=places),
    of("novalue", keys=places),
    of("paint", how=st.sampled_from(MASKS)),
    of(
        "set",
        keys=st.tuples(st.integers(0, 99), st.integers(0, 99)),
        number=st.integers(0, 10**4).map(lambda n: n / 10**4),
        how=st.sampled_from(["", "raw"]),
    ),
    *(of(what) for what in ("off", "uniform", "mean", "nofirst", "nospecial", "patch")),
)


@given(st.lists(changes, max_size=MOST))
def test_a_code_reads_as_the_changes_that_were_written(fields: list[dict[str, Any]]) -> None:
    made = [Change(**each) for each in fields]
    code = encode_changes(made)
    assert decode_changes(code) == made
    assert set(code) <= set("abcdefghijklmnopqrstuvwxyzSLH0123456789._- ")  # an address keeps them


def test_a_code_is_short_and_can_be_read() -> None:
    made = [
        Change("off", (2,), (1,)),
        Change("times", (0, 1, 2, 3), number=0.5),
        Change("set", (1,), (0, 2), number=0.25, how="raw", keys=(4, 3)),
        Change("window", stack=1, keys=(3,)),
    ]
    assert encode_changes(made) == "off_L2H1 times_0.5_L0-3 setraw_4_3_0.25_L1H0.2 window_3_S1"


def test_runs_of_numbers_are_joined() -> None:
    assert numbers_written([5, 0, 1, 2, 3]) == "0-3.5"
    assert decode_changes("nokeys_3-5.1")[0].keys == (1, 3, 4, 5)


def test_no_change_is_an_empty_code() -> None:
    assert encode_changes([]) == ""
    assert decode_changes("") == decode_changes("   ") == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("explode_L1", "is no change"),
        ("off_L2X1", "no place such as"),
        ("off_", "no place such as"),
        ("times", "1 values"),
        ("times_two", "no number"),
        ("times_nan", "no number"),
        ("times_-1", "no number"),
        ("times_1e9", "no number"),
        ("rule_2", "none of 1, root, d"),
        ("causal_maybe", "none of on, off"),
        ("window_0", "at least 1"),
        ("window_2.5", "at least 1"),
        ("nokeys_", "no whole number"),
        ("nokeys_5-2", "runs backwards"),
        ("nokeys_99999", "no whole number"),
        ("set_1_2_1.5", "between 0 and 1"),
        ("set_1_0.5", "3 values"),
        ("paint_3-zzz", "hexadecimal"),
        ("off_L1_L2", "0 values"),
        ("off_L1²", "no place such as"),
        ("<script>", "is no change"),
        (" ".join(["off"] * (MOST + 1)), f"at most {MOST}"),
    ],
)
def test_a_bad_code_is_refused_with_a_sentence(code: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        decode_changes(code)
