"""Numbers per head: worked by hand, and against NumPy on random attention."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.attention import Attention
from explorer.capture import GivenWeights, Stack, capture, capture_batch, capture_inputs
from explorer.masks import causal, padding, sliding_window
from explorer.metrics import EVERY, METRICS, QUICK, head_metrics, layer_metrics, marks_of
from explorer.models import LoadedModel
from explorer.row_measures import is_punctuation
from explorer.tokens import Tokens
from tests.small_models import SMALL_GROUPED, ids, small_model


def of(rows: list[list[float]], **options: object) -> dict[str, float]:
    """The numbers of one head with these weights; a weight of 0 counts as forbidden."""
    words = options.pop("words", None)
    if isinstance(words, str):
        tokens = Tokens.plain(words.split())
        options["marks"] = marks_of(tokens, tokens)
    found = layer_metrics(GivenWeights(torch.tensor([rows])), **options)  # type: ignore[arg-type]
    return {name: float(values[0]) for name, values in found.items()}


def attention(n_heads: int = 2, n_q: int = 5, n_k: int = 5, **options: object) -> Attention:
    shape = (n_heads, n_q, 4), (n_heads, n_k, 4), (n_heads, n_k, 3)
    return Attention(*(torch.randn(*sizes) for sizes in shape), **options)  # type: ignore[arg-type]


# Worked by hand


def test_a_quarter_and_three_quarters() -> None:
    numbers = of([[0.25, 0.75], [0.25, 0.75]])
    spread = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))  # 0.5623 nats
    assert numbers["entropy"] == pytest.approx(spread, abs=1e-6)
    assert numbers["entropy_share"] == pytest.approx(spread / math.log(2), abs=1e-6)
    assert numbers["distance"] == pytest.approx((0.75 + 0.25) / 2)  # row 0 looks ahead, row 1 back
    assert numbers["first"] == pytest.approx(0.25)
    assert numbers["self"] == pytest.approx((0.25 + 0.75) / 2)
    assert numbers["previous"] == pytest.approx(0.25)  # row 1 alone has a token before it
    assert numbers["largest_weight"] == pytest.approx(0.75)
    assert numbers["sink"] == pytest.approx(0, abs=1e-6)


def test_equal_weights_have_the_largest_entropy() -> None:
    numbers = of([[0.25] * 4] * 4)
    assert numbers["entropy"] == pytest.approx(math.log(4))
    assert numbers["entropy_share"] == pytest.approx(1)
    # |0-0|+…+|0-3| = 6, then 4, 4, 6: a mean of 5 for each query, over 4 keys.
    assert numbers["distance"] == pytest.approx(5 / 4)


def test_one_key_alone_has_no_entropy_and_is_left_out_of_the_share() -> None:
    numbers = of([[1.0, 0.0], [0.5, 0.5]])
    assert numbers["entropy"] == pytest.approx(math.log(2) / 2)
    assert numbers["entropy_share"] == pytest.approx(1)  # the second row's alone


def test_a_single_token_has_no_share_and_no_token_before() -> None:
    numbers = of([[1.0]])
    assert numbers["entropy"] == 0
    assert math.isnan(numbers["entropy_share"])
    assert math.isnan(numbers["previous"])
    assert numbers["self"] == numbers["first"] == 1


def test_padded_queries_are_left_out() -> None:
    rows = [[0.0, 1.0], [1.0, 0.0]]
    padded = torch.tensor([False, True])
    numbers = of(rows, padded_queries=padded)
    assert numbers["first"] == 0 and numbers["distance"] == 1 and numbers["self"] == 0
    assert math.isnan(of(rows, padded_queries=torch.tensor([True, True]))["first"])


def test_a_row_without_keys_is_left_out() -> None:
    assert of([[0.0, 0.0], [0.25, 0.75]])["first"] == pytest.approx(0.25)


def test_a_row_that_is_not_a_number_is_left_out() -> None:
    numbers = of([[math.nan, math.nan], [0.25, 0.75]])
    assert numbers["first"] == pytest.approx(0.25)


def test_what_a_row_lacks_is_in_the_sink() -> None:
    assert of([[0.2, 0.3], [0.1, 0.1]])["sink"] == pytest.approx((0.5 + 0.8) / 2)


def test_queries_at_the_end_of_longer_keys_count_from_their_own_places() -> None:
    # Decoding with a cache: two queries, the last of four tokens.
    numbers = of([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    assert numbers["self"] == pytest.approx((0.3 + 0.1) / 2)
    assert numbers["previous"] == pytest.approx((0.2 + 0.2) / 2)


def test_cross_attention_has_no_distance() -> None:
    numbers = of([[0.5, 0.5]], same_sequence=False)
    assert math.isnan(numbers["distance"]) and math.isnan(numbers["self"])
    assert numbers["first"] == 0.5


def test_reach_back_and_ahead_make_the_distance() -> None:
    numbers = of([[0.5, 0.25, 0.25], [0.5, 0.0, 0.5], [0.2, 0.2, 0.6]])
    assert numbers["reach_ahead"] == pytest.approx((0.25 + 2 * 0.25 + 0.5) / 3)
    assert numbers["reach_back"] == pytest.approx((0.5 + 2 * 0.2 + 0.2) / 3)
    assert numbers["distance"] == pytest.approx(numbers["reach_back"] + numbers["reach_ahead"])
    assert numbers["next"] == pytest.approx((0.25 + 0.5) / 2)  # the last has none after it


def test_the_same_token_elsewhere_and_what_followed_it() -> None:
    # a b a b: query 2 is "a" again, its earlier place is key 0 and what followed is key 1.
    rows = [[0.4, 0.3, 0.2, 0.1], [0.1] * 4, [0.5, 0.3, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1]]
    numbers = of(rows, words="a b a b")
    assert numbers["same"] == pytest.approx((0.2 + 0.1 + 0.5 + 0.6) / 4)
    assert numbers["duplicate"] == pytest.approx((0.5 + 0.6) / 2)
    assert numbers["induction"] == pytest.approx((0.3 + 0.2) / 2)


def test_a_token_right_after_itself_followed_itself() -> None:
    # a a: what followed the first "a" is the query's own place.
    assert of([[1.0, 0.0], [0.25, 0.75]], words="a a")["induction"] == pytest.approx(0.75)


def test_a_text_without_repetition_has_no_such_number() -> None:
    numbers = of([[0.5, 0.5], [0.5, 0.5]], words="a b")
    assert all(math.isnan(numbers[name]) for name in ("same", "duplicate", "induction"))
    assert math.isnan(numbers["punctuation"]) and math.isnan(numbers["special"])
    assert math.isnan(of([[0.5, 0.5], [0.5, 0.5]])["same"])  # nor one whose tokens nobody knows


def test_weight_on_punctuation_and_on_special_tokens() -> None:
    tokens = Tokens.added([101], ["[CLS]"]) + Tokens.plain(["Hi", ",", "you", "!?"])
    marks = marks_of(tokens, tokens)
    numbers = of([[0.1, 0.2, 0.3, 0.3, 0.1]] * 5, marks=marks)
    assert numbers["special"] == pytest.approx(0.1)
    assert numbers["punctuation"] == pytest.approx(0.3 + 0.1)


@pytest.mark.parametrize(
    ("text", "raw", "expected"),
    [
        (".", "Ġ.", True),
        ("…", "…", True),
        ("«", "«", True),
        ("don't", "don't", False),
        ("$", "$", False),  # a sign, by Unicode
        ("··", "ĠĠ", False),  # two spaces made visible
        ("·", "Â·", True),  # a middle dot of the text itself
        ("⏎", "Ċ", False),
    ],
)
def test_punctuation_is_what_unicode_says(text: str, raw: str, expected: bool) -> None:
    assert is_punctuation(text, raw) is expected


def test_the_variance_of_scores_is_over_allowed_keys() -> None:
    # d_k = 1 and scale 1: the scores of the query 2 are 2 · key.
    record = Attention(
        torch.tensor([[[1.0], [2.0], [2.0]]]),
        torch.tensor([[[0.0], [3.0], [9.0]]]),
        torch.zeros(1, 3, 1),
        mask=causal(),
        scale=1.0,
    )
    # Row 0 has one key and is left out; row 1 has 0 and 6: 9; row 2 has 0, 6, 18: 56.
    found = layer_metrics(record, names=["score_variance"])["score_variance"]
    assert found.tolist() == pytest.approx([(9 + 56) / 2])


def test_read_only_weights_have_no_variance_of_scores() -> None:
    numbers = of([[0.5, 0.5], [0.5, 0.5]], names=["score_variance", "entropy"])
    assert math.isnan(numbers["score_variance"]) and numbers["entropy"] > 0


def test_the_effective_rank_counts_unlike_rows() -> None:
    only = {"names": ["effective_rank"]}
    assert of([[1.0, 0.0], [0.0, 1.0]], **only)["effective_rank"] == pytest.approx(2)
    assert of([[0.25, 0.75]] * 2, **only)["effective_rank"] == pytest.approx(1)
    # Three rows on one key and one on another: singular values √3 and 1.
    p = math.sqrt(3) / (math.sqrt(3) + 1)
    expected = math.exp(-p * math.log(p) - (1 - p) * math.log(1 - p))
    rows = [[1.0, 0.0, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.0, 0.0]]
    assert of(rows, **only)["effective_rank"] == pytest.approx(expected)


def test_a_map_too_large_has_no_effective_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.metrics.LARGEST_MAP", 4)
    assert layer_metrics(attention(), names=["effective_rank"])["effective_rank"].isnan().all()


# Against NumPy


def numpy_numbers(layer: Attention, query: Tokens, key: Tokens) -> dict[str, list[float]]:
    """The same numbers, one row after another, from their definitions."""
    found: dict[str, list[float]] = {metric.name: [] for metric in METRICS}
    allowed = layer.allowed().expand(layer.n_heads, -1, -1).numpy()
    scores = layer.scores().double().numpy()
    marked = ("special", "punctuation")
    keys = range(layer.key_length)
    shift = layer.key_length - layer.query_length
    for head, table in enumerate(layer.weights().double().numpy()):
        rows: dict[str, list[float]] = {metric.name: [] for metric in METRICS}
        counted = np.zeros_like(table)
        for at, row in enumerate(table):
            may = allowed[head, at]
            place, token = at + shift, query.raws[at]
            if query.padding[at] or not may.any():
                continue
            counted[at] = row
            logs = np.log(np.where(row > 0, row, 1))
            rows["entropy"].append(-float((row * logs).sum()))
            if may.sum() > 1:
                rows["entropy_share"].append(rows["entropy"][-1] / math.log(may.sum()))
                rows["score_variance"].append(float(np.var(scores[head, at][may])))
            rows["distance"].append(sum(row[k] * abs(place - k) for k in keys))
            rows["reach_back"].append(sum(row[k] * (place - k) for k in keys if k < place))
            rows["reach_ahead"].append(sum(row[k] * (k - place) for k in keys if k > place))
            rows["largest_weight"].append(row.max())
            rows["first"].append(row[0])
            rows["self"].append(row[place])
            if place:
                rows["previous"].append(row[place - 1])
            if place + 1 < layer.key_length:
                rows["next"].append(row[place + 1])
            punctuation = [all(c in ".,!?;:'\"()-" for c in text) for text in key.texts]
            special = [s and not p for s, p in zip(key.special, key.padding, strict=True)]
            for name, marks in zip(marked, (special, punctuation), strict=True):
                if name == "punctuation":
                    marks = [m and not s for m, s in zip(marks, key.special, strict=True)]
                if any(marks):
                    rows[name].append(sum(row[k] for k in keys if marks[k]))
            places = {
                "same": [k for k in keys if key.raws[k] == token and k != place],
                "duplicate": [k for k in keys if key.raws[k] == token and k < place],
                "induction": [k + 1 for k in keys if key.raws[k] == token and k < place],
            }
            for name, where in places.items():
                if any(may[k] for k in where):
                    rows[name].append(sum(row[k] for k in where))
            rows["sink"].append(1 - row.sum())
        if counted.any():
            sizes = np.linalg.svd(counted, compute_uv=False)
            p = sizes / sizes.sum()
            rows["effective_rank"] = [math.exp(-sum(x * math.log(x) for x in p if x > 0))]
        for name, values in rows.items():
            found[name].append(float(np.mean(values)) if values else math.nan)
    return found


def assert_as_in_numpy(stack: Stack) -> None:
    table = head_metrics(stack, EVERY)
    for number, layer in zip(stack.layer_numbers, stack.layers, strict=True):
        assert isinstance(layer, Attention)
        expected = numpy_numbers(layer, stack.query_tokens, stack.key_tokens)
        rows = table[table["layer"] == number]
        for name in EVERY:
            np.testing.assert_allclose(rows[name], expected[name], atol=1e-5, rtol=1e-4)


@given(
    length=st.integers(1, 9),
    n_heads=st.integers(1, 3),
    kind=st.sampled_from(["none", "causal", "window"]),
    seed=st.integers(0, 99),
)
def test_numbers_are_those_of_numpy(length: int, n_heads: int, kind: str, seed: int) -> None:
    torch.manual_seed(seed)
    mask = {"none": None, "causal": causal(), "window": causal() & sliding_window(2)}[kind]
    layer = attention(n_heads, length, length, mask=mask)
    generator = np.random.default_rng(seed)
    tokens = Tokens.plain([str(word) for word in generator.choice(["a", "b", ".", "c"], length)])
    expected = numpy_numbers(layer, tokens, tokens)
    found = layer_metrics(layer, names=EVERY, marks=marks_of(tokens, tokens))
    for name, values in found.items():
        # 2e-6 of a weight; the rank is a sum over n singular values, each of them to rounding.
        np.testing.assert_allclose(values.numpy(), expected[name], atol=5e-6, err_msg=name)


def test_numbers_of_a_real_model_are_those_of_numpy(minilm: LoadedModel) -> None:
    text = "The cat saw the dog, and the dog saw the cat."
    assert_as_in_numpy(capture(minilm, text).stacks["encoder"])


def test_numbers_of_a_padded_batch_are_those_of_numpy(minilm: LoadedModel) -> None:
    for each in capture_batch(minilm, ["A short one.", "A rather longer one, with a comma."]):
        assert_as_in_numpy(each.stacks["encoder"])


def test_numbers_of_a_real_decoder_are_those_of_numpy() -> None:
    model = small_model("llama", SMALL_GROUPED)
    row = ids(1, 12).repeat(1, 2)  # every token twice
    inputs = {"input_ids": row, "attention_mask": torch.ones_like(row)}
    tokens = [Tokens.plain([str(each) for each in row[0].tolist()])]
    stack = capture_inputs(model, inputs, tokens)[0].stacks["decoder"]
    assert_as_in_numpy(stack)
    assert head_metrics(stack)["induction"].notna().all()


def test_blocks_of_rows_give_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = attention(3, 11, 11, mask=causal())
    tokens = Tokens.plain("a b c a b . a b c d a".split())
    options = {"names": EVERY, "marks": marks_of(tokens, tokens)}
    whole = layer_metrics(layer, **options)  # type: ignore[arg-type]
    monkeypatch.setattr("explorer.metrics.BLOCK_WEIGHTS", 3 * 11 * 2)  # two rows at a time
    for name, values in layer_metrics(layer, **options).items():  # type: ignore[arg-type]
        torch.testing.assert_close(values, whole[name], equal_nan=True)


def test_chosen_heads_have_their_own_numbers() -> None:
    layer = attention(4)
    every = layer_metrics(layer, names=EVERY)
    for name, values in layer_metrics(layer, heads=[3, 1], names=EVERY).items():
        torch.testing.assert_close(values, every[name][[3, 1]], equal_nan=True)


# The table


@dataclass
class SmallStack:
    name: str
    layers: list[Attention]
    layer_numbers: tuple[int, ...]
    padded_queries: Tensor
    query_tokens: Tokens
    key_tokens: Tokens


def test_the_table_has_a_row_for_each_head_under_its_true_layer_number() -> None:
    tokens, none = Tokens.plain("a b a . c".split()), torch.zeros(5, dtype=torch.bool)
    stack = SmallStack("encoder", [attention(2), attention(2)], (1, 3), none, tokens, tokens)
    table = head_metrics(stack)
    assert table["layer"].tolist() == [1, 1, 3, 3]
    assert table["head"].tolist() == [0, 1, 0, 1]
    assert set(table.columns) == {"layer", "head", *QUICK}
    expected = layer_metrics(stack.layers[1])["entropy"].tolist()
    assert table["entropy"].tolist()[2:] == pytest.approx(expected)
    assert list(head_metrics(stack, ["induction", "entropy"]).columns[2:]) == [
        "induction",
        "entropy",
    ]


def test_an_unknown_metric_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(ValueError, match='no metric "fame"; there are entropy, '):
        layer_metrics(attention(), names=["fame"])


def test_padding_in_the_batch_changes_no_number() -> None:
    layer = attention(2, 4, 4)
    lengthened = Attention(
        *(
            torch.cat([part, torch.randn(2, 3, part.shape[-1])], 1)
            for part in (layer.query, layer.key, layer.value)
        ),
        mask=padding([4]),
    )
    padded = torch.arange(7) >= 4
    alone = layer_metrics(layer, names=EVERY)
    for name, values in layer_metrics(lengthened, padded, names=EVERY).items():
        if name != "next":  # the last real query has padding after it, on which its weight is 0
            torch.testing.assert_close(values, alone[name], atol=1e-5, rtol=1e-5, equal_nan=True)


def test_each_metric_says_what_it_is() -> None:
    for metric in METRICS:
        assert metric.title and metric.unit and metric.source and metric.meaning.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)
