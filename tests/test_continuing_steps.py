"""What is kept of each added token: against the model's own numbers, and cases by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForSeq2SeqLM

from explorer.capture import capture
from explorer.continuing import chances_of
from explorer.continuing_steps import (
    TOP,
    Likely,
    Output,
    Row,
    Step,
    continued,
    copying,
    parting,
    pieces,
)
from explorer.models import LoadedModel, load
from explorer.tokens import Tokens
from tests.headed_models import save_headed_models
from tests.page_models import KINDS, byte_tokenizer
from tests.small_models import small_model


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load(str(save_headed_models(tmp_path_factory.mktemp("headed")) / "writer"), "cpu")


def eager_rows(loaded: LoadedModel, ids: list[int]) -> list[npt.NDArray[np.float32]]:
    """The last query's weights in each layer by transformers' own eager attention."""
    name = loaded.model.config._attn_implementation
    loaded.model.set_attn_implementation("eager")
    with torch.no_grad():
        out = loaded.model(input_ids=torch.tensor([ids]), output_attentions=True)
    loaded.model.set_attn_implementation(name)
    return [each[0, :, -1].numpy() for each in out.attentions]


def test_a_step_keeps_the_last_querys_weights_and_the_likeliest_tokens(
    writer: LoadedModel,
) -> None:
    own = capture(writer, "a cat")
    steps = list(continued(writer, own, most=3))
    for at, step in enumerate(steps):
        ids = [*own.tokens.ids, *(each.id for each in steps[:at])]
        assert step.keys["decoder"].ids == tuple(ids)
        for layer, weights in enumerate(eager_rows(writer, ids)):
            np.testing.assert_allclose(step.rows["decoder"][layer].weights, weights, atol=1e-6)
            assert not step.rows["decoder"][layer].forbidden.any()
        with torch.no_grad():
            logits = writer.model(input_ids=torch.tensor([ids])).logits[0, -1]
        best = torch.softmax(logits, -1).topk(TOP)
        assert [each.id for each in step.likeliest] == best.indices.tolist()
        found = [each.probability for each in step.likeliest]
        np.testing.assert_allclose(found, best.values, rtol=1e-4)
        assert [each.chance for each in step.likeliest] == [1.0] + [0.0] * (TOP - 1)


def test_the_chance_to_be_drawn_is_after_temperature_and_top_k(writer: LoadedModel) -> None:
    own = capture(writer, "a cat")
    (step,) = continued(writer, own, output=Output(0.5, 2, 1), most=1)
    first, second = (each.probability for each in step.likeliest[:2])
    # p ** (1 / 0.5) of the two, shared out
    chance = first**2 / (first**2 + second**2)
    assert step.likeliest[0].chance == pytest.approx(chance, rel=1e-4)
    assert step.likeliest[1].chance == pytest.approx(1 - chance, rel=1e-4)
    assert [each.chance for each in step.likeliest[2:]] == [0.0] * (TOP - 2)


def test_chances_by_hand() -> None:
    own = torch.tensor([0.5, 0.25, 0.25])
    torch.testing.assert_close(chances_of(own, 1.0, None), own)
    torch.testing.assert_close(chances_of(own, 0.5, None), torch.tensor([4.0, 1.0, 1.0]) / 6)
    assert chances_of(own, 0, None).tolist() == [1.0, 0.0, 0.0]
    assert (chances_of(own, 1.0, 2) > 0).sum() == 2  # of two alike one is left out
    assert chances_of(torch.tensor([0.9, 0.1]), 1e-30, None).tolist() == [1.0, 0.0]


@given(
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=20),
    st.floats(0.05, 2.0),
    st.integers(1, 25),
)
def test_chances_sum_to_one_keep_their_order_and_leave_k(
    sizes: list[float], temperature: float, k: int
) -> None:
    own = torch.tensor(sizes) / sum(sizes)
    found = chances_of(own, temperature, k)
    assert float(found.sum()) == pytest.approx(1, abs=1e-5)
    assert int((found > 0).sum()) <= k
    assert float(own[found.argmax()]) == pytest.approx(float(own.max()))


def test_they_part_where_the_ids_first_differ() -> None:
    assert parting([1, 2, 3], [1, 5, 3]) == 1
    assert parting([1, 2], [1, 2, 3]) is None
    assert parting([], [4]) is None


def test_pieces_join_to_the_text_and_a_letters_last_byte_brings_it(writer: LoadedModel) -> None:
    tokenizer = byte_tokenizer()
    before = tokenizer("a b")["input_ids"]
    added = tokenizer(" cé!", add_special_tokens=False)["input_ids"]
    assert pieces(writer, before, added) == (" ", "c", "", "é", "!")
    assert pieces(writer, before, added[:3]) == (" ", "c", "\N{REPLACEMENT CHARACTER}")


def step_on(ids: list[int], added: int, rows: list[list[list[float]]]) -> Step:
    tokens = Tokens.plain([str(each) for each in ids])
    keys = Tokens(**{**vars(tokens), "ids": tuple(ids)})
    kept = {
        layer: Row(np.array(heads, np.float32), np.zeros((len(heads), len(ids)), bool))
        for layer, heads in enumerate(rows)
    }
    return Step(added, 1.0, (Likely(added, 1.0, 1.0),), {"decoder": kept}, {"decoder": keys}, "")


def test_the_copying_head_looks_the_most_where_the_token_stands_already() -> None:
    rows = [
        [[0.1, 0.8, 0.1, 0.0], [0.3, 0.2, 0.4, 0.1]],
        [[0.0, 0.9, 0.0, 0.1], [0.2, 0.5, 0.2, 0.1]],
    ]
    found = copying(step_on([7, 5, 7, 3], 7, rows))
    assert found is not None
    assert (found.layer, found.head) == (0, 1)
    assert found.weight == pytest.approx(0.7)  # 0.3 + 0.4
    assert copying(step_on([7, 5, 7, 3], 9, rows)) is None


def test_numbers_that_are_none_are_told(
    writer: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = writer.model.lm_head
    plain: Callable[[torch.Tensor], torch.Tensor] = type(head).forward.__get__(head)
    monkeypatch.setattr(head, "forward", lambda states: plain(states) * torch.nan)
    with pytest.raises(ValueError, match="gives no numbers"):
        next(continued(writer, capture(writer, "a cat")))


def test_an_encoder_decoder_looks_at_both_texts(tmp_path: Path) -> None:
    model_type, settings = KINDS["two-stacks"]
    small_model(model_type, settings, model_class=AutoModelForSeq2SeqLM).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    loaded = load(str(tmp_path), "cpu")
    own = capture(loaded, "abc", target="xy")
    first, second = list(continued(loaded, own, most=2))
    assert set(first.rows) == {"decoder", "cross"}
    assert first.rows["cross"][0].weights.shape == (4, len(own.tokens))
    lengths = [each.rows["decoder"][0].weights.shape[1] for each in (first, second)]
    assert lengths[1] == lengths[0] + 1
