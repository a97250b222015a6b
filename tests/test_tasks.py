"""The tasks: what is drawn, what can be answered, and that position alone does not tell."""

from __future__ import annotations

import pytest
import torch

from explorer.tasks import AssociativeRecall, RepeatedSegment, symbols


def drawn(task: RepeatedSegment | AssociativeRecall, rows: int = 400, seed: int = 0):  # type: ignore[no-untyped-def]
    return task.draw(rows, torch.Generator().manual_seed(seed))


def period_of(row: list[int]) -> int:
    """The distance at which a row repeats itself, found by trying."""
    return next(p for p in range(1, len(row)) if row[p:] == row[:-p])


def test_every_row_repeats_a_segment_of_its_own_length() -> None:
    batch = drawn(RepeatedSegment(32))
    periods = [period_of(row) for row in batch.ids[..., 0].tolist()]
    assert set(periods) == set(range(8, 17))  # a quarter to half of 32, each of them
    share = torch.tensor(periods).bincount()[8:] / len(periods)
    assert (share - 1 / 9).abs().max() < 0.06  # 4 standard errors of 400 rows


def test_a_segment_has_each_symbol_once_so_a_perfect_answer_exists() -> None:
    batch = drawn(RepeatedSegment(32), rows=50)
    for row in batch.ids[..., 0].tolist():
        segment = row[: period_of(row)]
        assert len(set(segment)) == len(segment)


def test_the_answer_is_what_followed_the_same_symbol_before() -> None:
    batch = drawn(RepeatedSegment(32), rows=50)
    for ids, targets, counts in zip(batch.ids[..., 0], batch.targets, batch.counts, strict=True):
        row = ids.tolist()
        assert targets[:-1].tolist() == row[1:]
        for place, symbol in enumerate(row):
            before = [row[at + 1] for at in range(place) if row[at] == symbol]
            assert bool(counts[place]) == bool(before)
            if before:
                assert set(before) == {int(targets[place])}


def test_where_to_look_is_after_the_same_symbol() -> None:
    batch = drawn(RepeatedSegment(32), rows=20)
    for ids, aim in zip(batch.ids[..., 0], batch.aim, strict=True):
        row = ids.tolist()
        wanted = [
            [0 < key <= query and row[key - 1] == row[query] for key in range(32)]
            for query in range(32)
        ]
        assert aim.tolist() == wanted


def test_no_fixed_distance_tells_the_answer() -> None:
    """The best of all rules "say what stood d places ago" is right for about a period in nine."""
    batch = drawn(RepeatedSegment(32), rows=2000)
    row = torch.cat([batch.ids[..., 0], batch.targets[:, -1:]], 1)
    best = 0.0
    for back in range(1, 25):
        said = row[:, 32 - back : 33 - back].squeeze(1)  # for the last place
        best = max(best, float((said == batch.targets[:, -1]).float().mean()))
    assert best < 0.25  # a period 8 also repeats at 16: two periods share that distance


def test_an_asked_key_has_its_own_pair_and_the_value_is_the_answer() -> None:
    task = AssociativeRecall(pairs=6, questions=3, vocabulary=10)
    batch = drawn(task, rows=50)
    for ids, targets, counts, aim in zip(
        batch.ids, batch.targets, batch.counts, batch.aim, strict=True
    ):
        pairs = {key: value - 10 for key, value in ids[:6].tolist()}
        assert len(pairs) == 6
        assert counts.tolist() == [False] * 6 + [True] * 3
        for place, (key, value) in enumerate(ids[6:].tolist(), 6):
            assert value == 20  # the blank, after 10 keys and 10 values
            assert targets[place] == pairs[key]
            assert aim[place].nonzero().flatten().tolist() == [list(pairs).index(key)]
        assert len({key for key, _ in ids[6:].tolist()}) == 3


def test_symbols_are_counted_with_the_blank() -> None:
    assert symbols(RepeatedSegment(32, 40)) == 40
    assert symbols(AssociativeRecall(vocabulary=32)) == 65
    assert int(drawn(AssociativeRecall()).ids.max()) == 64


def test_labels_are_what_a_person_reads() -> None:
    assert RepeatedSegment(8).labels(torch.tensor([[0], [1], [26]])) == ["a", "b", "A"]
    recall = AssociativeRecall(vocabulary=32)
    assert recall.labels(torch.tensor([[0, 39], [3, 64]])) == ["a7", "d?"]


def test_the_generator_alone_decides_the_rows() -> None:
    torch.manual_seed(1)
    first = drawn(RepeatedSegment(16), rows=5, seed=7)
    torch.manual_seed(2)
    again, other = (drawn(RepeatedSegment(16), rows=5, seed=seed) for seed in (7, 8))
    assert first.ids.equal(again.ids)
    assert not first.ids.equal(other.ids)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: RepeatedSegment(10), "length"),
        (lambda: RepeatedSegment(32, 15), "vocabulary"),
        (lambda: RepeatedSegment(32, 65), "vocabulary"),
        (lambda: AssociativeRecall(pairs=4, questions=5), "questions"),
        (lambda: AssociativeRecall(vocabulary=8), "vocabulary"),
    ],
)
def test_impossible_sizes_are_refused_by_name(make, argument) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=f"^{argument}: got"):
        make()
