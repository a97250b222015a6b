"""What a change does, in numbers: against scipy-free hand arithmetic and runs by other means."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from explorer import effects
from explorer.capture import Capture, capture, capture_inputs
from explorer.interventions import Intervention
from explorer.models import load
from explorer.tokens import Tokens
from tests import test_capture as families
from tests.small_models import SMALL, ids, small_model, tokens_of


def with_logits(*rows: list[float]) -> Capture:
    table = torch.tensor(rows)
    return Capture({}, Tokens.plain(["a"] * len(rows)), table, None)


def decoder() -> Capture:
    model = small_model("gpt2", families.GPT2, "sdpa", AutoModelForCausalLM)
    return capture_inputs(model, {"input_ids": ids(1, 8)}, tokens_of(torch.ones(1, 8)))[0]


def test_probabilities_changes_and_divergence_are_those_worked_by_hand() -> None:
    # Before ¾ and ¼, after ½ and ½: KL = ¾ ln 3/2 + ¼ ln 1/2.
    before, after = with_logits([math.log(3), 0.0]), with_logits([0.0, 0.0])
    found = effects.predictions(before, after, top=2)
    assert found.ids == [0, 1]
    assert found.before == pytest.approx([0.75, 0.25])
    assert found.after == pytest.approx([0.5, 0.5])
    assert found.log_change == pytest.approx([math.log(2 / 3), math.log(2)])
    assert found.kl == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    by_position = effects.divergence_by_position(before, after)
    assert by_position.tolist() == pytest.approx([found.kl])
    assert effects.log_probability(before, 1) == pytest.approx(math.log(0.25))


def test_the_likeliest_of_either_and_one_of_ones_choice_are_listed() -> None:
    before, after = with_logits([5.0, 1.0, 0.0, -1.0]), with_logits([0.0, 1.0, 5.0, -1.0])
    assert effects.predictions(before, after, top=1).ids == [0, 2]
    assert effects.predictions(before, after, top=1, also=3).ids == [0, 2, 3]
    with pytest.raises(ValueError, match="entries 0 to 3"):
        effects.predictions(before, after, also=4)


def test_no_change_is_no_effect() -> None:
    own = decoder()
    before, after = own.changed([]), own.changed([])
    assert effects.predictions(before, after).kl == 0
    assert effects.drift(before, after).abs().max() == 0
    assert effects.drift(before, after).shape == (3, 8)


def test_drift_starts_at_the_layer_that_was_changed() -> None:
    own = decoder()
    before = own.changed([])
    after = own.changed([Intervention("decoder", (1,), (0, 1, 2, 3), output="off")])
    found = effects.drift(before, after)
    assert found[:2].abs().max() == 0
    assert (found[2] > 1e-4).all()
    first, second = before.hidden_states[2][3], after.hidden_states[2][3]
    expected = math.dist(first.tolist(), second.tolist()) / math.hypot(*first.tolist())
    assert float(found[2, 3]) == pytest.approx(expected, rel=1e-5)


def test_captures_without_states_have_no_drift() -> None:
    with pytest.raises(ValueError, match=r"Capture\.changed"):
        effects.drift(decoder(), decoder())


def test_a_model_without_a_head_predicts_nothing() -> None:
    model = small_model("bert", SMALL)
    own = capture_inputs(model, {"input_ids": ids(1, 4)}, tokens_of(torch.ones(1, 4)))[0]
    with pytest.raises(ValueError, match="no head"):
        effects.predictions(own, own)


def test_the_similarity_is_the_cosine_of_the_mean_states() -> None:
    loaded = load("minilm")
    one, other = capture(loaded, "A cat sat."), capture(loaded, "A dog sat down.")
    means: list[Tensor] = []
    for each in (one, other):
        assert each.hidden is not None
        means.append(each.hidden.double().mean(0))
    expected = float(means[0] @ means[1] / (means[0].norm() * means[1].norm()))
    assert effects.similarity(one, other) == pytest.approx(expected, abs=1e-6)
    assert effects.similarity(one, one) == pytest.approx(1, abs=1e-6)


def test_padding_is_no_part_of_a_texts_vector() -> None:
    state = torch.tensor([[3.0, 4.0], [100.0, -7.0]])
    tokens = dataclasses.replace(Tokens.plain(["a", "b"]), padding=(False, True))
    found = effects.sentence_vector(Capture({}, tokens, None, state))
    assert found.tolist() == pytest.approx([0.6, 0.8])


def test_each_head_off_is_each_change_alone() -> None:
    own = decoder()

    def number(captures: list[Capture]) -> float:
        return effects.log_probability(captures[0], 7)

    found = list(effects.each_head_off([own], "decoder", number))
    assert [(each.layer, each.head) for each in found] == [(n // 4, n % 4) for n in range(8)]
    alone = own.changed([Intervention("decoder", (1,), (2,), output="off")])
    expected = effects.log_probability(alone, 7) - effects.log_probability(own, 7)
    assert found[6].change == pytest.approx(expected)
    assert abs(expected) > 1e-4


def test_some_layers_are_tried_with_changes_that_stay_on() -> None:
    own = decoder()
    kept = Intervention("decoder", (0,), output="off")

    def number(captures: list[Capture]) -> float:
        return effects.log_probability(captures[0], 7)

    found = list(effects.each_head_off([own], "decoder", number, [[kept]], [1]))
    assert [(each.layer, each.head) for each in found] == [(1, head) for head in range(4)]
    both = own.changed([kept, Intervention("decoder", (1,), (3,), output="off")])
    expected = number([both]) - number([own.changed([kept])])
    assert found[3].change == pytest.approx(expected)


def test_divergence_in_blocks_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    own = decoder()
    before = own.changed([])
    after = own.changed([Intervention("decoder", (0,), output="off")])
    whole = effects.divergence_by_position(before, after)
    monkeypatch.setattr(effects, "BLOCK", 3)
    assert torch.equal(effects.divergence_by_position(before, after), whole)
    assert float(whole[-1]) == pytest.approx(effects.predictions(before, after).kl)
