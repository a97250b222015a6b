"""A decoder's text continued token by token, with or without interventions in its attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.capture import Capture
from explorer.interventions import Intervention
from explorer.models import LoadedModel, ModelError
from explorer.tokens import tokens_from_raws

MOST_TOKENS = 50


class Continued(NamedTuple):
    """One more token, and the run that chose it."""

    id: int
    probability: float
    """What the model gave it, before temperature and top-k."""
    text: str
    """All that has been added so far, as text."""
    capture: Capture
    """The run on everything before this token: its last query chose it."""


def continue_text(
    loaded: LoadedModel,
    capture: Capture,
    most: int = MOST_TOKENS,
    interventions: Sequence[Intervention] = (),
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    seed: int = 0,
) -> Iterator[Continued]:
    """Adds up to `most` tokens, one at a time; ends early at the model's end token or its limit.

    temperature divides the *output's* logits and has nothing to do with attention's scale: 0
    takes the likeliest token. top_k leaves only the k likeliest. Every token is a run of the whole
    text, so that interventions act on every position as they would have.

    Raises ModelError for a model that writes no text, ValueError for settings that make no sense.
    """
    if temperature < 0:
        raise ValueError(f"temperature: got {temperature}; it is 0 or more.")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k: got {top_k}; it leaves at least 1 token.")
    if capture.logits is None or capture.logits.ndim != 2 or "decoder" not in capture.stacks:
        raise ModelError(
            f"{loaded.title} writes no text: it has no head that predicts the next token from what "
            "stands before it. Choose a decoder."
        )
    assert loaded.tokenizer is not None  # it has read the text
    generator = torch.Generator().manual_seed(seed)
    length = capture.stacks["decoder"].layers[0].query_length
    most = min(most, (loaded.max_tokens or length + most) - length)
    ends = end_ids(loaded)
    added: list[int] = []
    now = capture.changed(interventions)
    for step in range(most):
        assert now.logits is not None
        probabilities = torch.softmax(now.logits[-1].float().cpu(), -1)
        if not bool(probabilities.isfinite().all()):
            raise ModelError(
                f"{loaded.title} gives no numbers (NaN) for the next token here, so none can be "
                "chosen. Choose another number format under Options, or undo the change."
            )
        chances = chances_of(probabilities, temperature, top_k)
        greedy = temperature == 0
        chosen = int(chances.argmax() if greedy else chances.multinomial(1, generator=generator))
        added.append(chosen)
        text = str(loaded.tokenizer.decode(added))
        yield Continued(chosen, float(probabilities[chosen]), text, now)
        if chosen in ends or step == most - 1:
            return
        more = tokens_from_raws(loaded.tokenizer, added, text)
        now = capture.extended(more, interventions)


def chances_of(
    probabilities: Float[Tensor, " entries"], temperature: int | float, top_k: int | None
) -> Float[Tensor, " entries"]:
    """How likely each entry is to be drawn: after temperature, among the top_k alone.

    At temperature 0 the likeliest entry, the first of several, has all of it.
    """
    if temperature == 0:
        return torch.zeros_like(probabilities).index_fill(0, probabilities.argmax(), 1.0)
    logits = probabilities.log()
    if top_k is not None and top_k < len(logits):
        gone = torch.ones_like(logits, dtype=torch.bool)
        gone[logits.topk(top_k).indices] = False
        logits = logits.masked_fill(gone, -torch.inf)
    # The largest is brought to 0 first: divided by a tiny temperature it would be -inf too.
    return torch.softmax((logits - logits.max()) / temperature, -1)


def end_ids(loaded: LoadedModel) -> set[int]:
    """The ids that end a text, from the configuration: one, several, or none."""
    given = loaded.model.config.eos_token_id
    return set() if given is None else {given} if isinstance(given, int) else set(given)
