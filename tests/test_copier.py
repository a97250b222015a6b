"""The small decoder that comes with the app: it copies, by heads that can be found."""

from __future__ import annotations

import random

import pytest
import torch

from explorer import effects
from explorer.capture import Capture, capture, capture_inputs
from explorer.continuing import continue_text
from explorer.interventions import Intervention
from explorer.metrics import head_metrics
from explorer.models import LoadedModel, load
from explorer.repeated import repeated_capture
from explorer.tokens import Tokens

PERIOD = 20


@pytest.fixture(scope="module")
def copier() -> LoadedModel:
    return load("copier")


@pytest.fixture(scope="module")
def repeats(copier: LoadedModel) -> list[Capture]:
    """Random tokens twice over, from seeds that training has never seen."""
    rng = random.Random(2026)
    found = []
    for _ in range(12):
        ids = [rng.randrange(1, 2048) for _ in range(PERIOD)] * 2
        names = Tokens.plain([str(each) for each in ids])
        found += capture_inputs(copier.model, {"input_ids": torch.tensor([ids])}, [names])
    return found


def copied(captures: list[Capture]) -> float:
    """The share of tokens in the second half that the model has right."""
    right = []
    for each in captures:
        assert each.logits is not None
        guesses = each.logits.argmax(-1).tolist()
        names = [int(raw) for raw in each.tokens.raws]
        right += [guesses[at] == names[at + 1] for at in range(PERIOD, 2 * PERIOD - 1)]
    return sum(right) / len(right)


def test_it_is_three_layers_of_four_heads_and_runs_through_our_attention(
    copier: LoadedModel,
) -> None:
    assert (copier.n_layers, copier.n_heads, copier.is_encoder_decoder) == (3, 4, False)
    found = capture(copier, "Anna saw the red fox.")
    assert not found.stacks["decoder"].read_only
    assert found.max_difference is not None and found.max_difference < 1e-5


def test_it_copies_random_tokens_that_it_has_never_seen_in_this_order(
    repeats: list[Capture],
) -> None:
    assert copied(repeats) > 0.7  # by chance it would be 1/2047


def test_it_has_a_previous_token_head_below_an_induction_head(copier: LoadedModel) -> None:
    stack = repeated_capture(copier, PERIOD).stacks["decoder"]
    table = head_metrics(stack, ("previous", "induction"))
    previous, induction = (table.loc[table[name].idxmax()] for name in ("previous", "induction"))
    assert previous["previous"] > 0.5
    assert induction["induction"] > 0.5
    assert previous["layer"] < induction["layer"]


def test_without_its_induction_heads_the_copy_breaks(
    copier: LoadedModel, repeats: list[Capture]
) -> None:
    table = head_metrics(repeated_capture(copier, PERIOD).stacks["decoder"], ("induction",))
    heads = table[table["induction"] > 0.3]
    off = [
        Intervention("decoder", (int(row.layer),), (int(row.head),), output="off")
        for row in heads.itertuples()
    ]
    whole = copied(repeats)
    without = copied([each.changed(off) for each in repeats])
    assert without < 0.5 * whole


def test_it_goes_on_with_a_phrase_that_repeats_and_not_without_those_heads(
    copier: LoadedModel,
) -> None:
    text = "The red fox saw the blue bird in the forest. The red fox saw the blue"
    own = capture(copier, text)
    first = next(continue_text(copier, own, 1))
    assert first.text.strip() == "bird" and first.probability > 0.9
    found = effects.each_head_off(
        [own], "decoder", lambda captures: effects.log_probability(captures[0], first.id)
    )
    worst = min(found, key=lambda each: each.change)
    assert worst.change < -2
    off = Intervention("decoder", (worst.layer,), (worst.head,), output="off")
    assert next(continue_text(copier, own, 1, [off])).text.strip() != "bird"
