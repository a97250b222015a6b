"""What a change to a model's attention does to what the model says, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from explorer.capture import Capture
from explorer.interventions import Intervention

BLOCK = 64
"""Positions whose probabilities are worked out at once."""


class Prediction(NamedTuple):
    """Some entries of the vocabulary (or classes) at one position, before and after."""

    ids: list[int]
    before: list[float]
    """Probabilities without the change."""
    after: list[float]
    log_change: list[float]
    """log(after / before), in nats."""
    kl: float
    """KL(before ‖ after) over all entries, in nats."""


def predictions(
    before: Capture, after: Capture, position: int = -1, top: int = 10, also: int | None = None
) -> Prediction:
    """The `top` likeliest entries of either, likeliest before first, and one of one's choice.

    Raises ValueError where the model has no logits: it then predicts nothing.
    """
    first, second = _log_probabilities(before, position), _log_probabilities(after, position)
    top = min(top, len(first))
    chosen = {*first.topk(top).indices.tolist(), *second.topk(top).indices.tolist()}
    if also is not None:
        if not 0 <= also < len(first):
            raise ValueError(f"also: got {also}, but there are entries 0 to {len(first) - 1}.")
        chosen.add(also)
    ids = sorted(chosen, key=lambda entry: -float(first[entry]))
    here = torch.tensor(ids, device=first.device)
    return Prediction(
        ids,
        first[here].exp().tolist(),
        second[here].exp().tolist(),
        (second - first)[here].tolist(),
        divergence(first, second),
    )


def log_probability(capture: Capture, entry: int, position: int = -1) -> float:
    """log of the probability that the model gives to one entry at one position, in nats."""
    return float(_log_probabilities(capture, position)[entry])


def divergence(before: Float[Tensor, " entries"], after: Float[Tensor, " entries"]) -> float:
    """KL(before ‖ after) of two log-probabilities, in nats: Kullback and Leibler 1951."""
    return max(0.0, float(F.kl_div(after, before, reduction="sum", log_target=True)))


def divergence_by_position(before: Capture, after: Capture) -> Float[Tensor, " positions"]:
    """KL(before ‖ after) at each position, in nats."""
    found = []
    pairs = zip(*(torch.split(_logits(each), BLOCK) for each in (before, after)), strict=True)
    for rows in pairs:  # in blocks: a large vocabulary in double takes much room
        first, second = (F.log_softmax(each.double(), -1) for each in rows)
        found.append((first.exp() * (first - second)).sum(-1).clamp(min=0))
    return torch.cat(found)


def drift(before: Capture, after: Capture) -> Float[Tensor, "states positions"]:
    """How far each hidden state has moved, as a share of its length: ‖after − before‖ / ‖before‖.

    Row 0 is what enters layer 0, the last row what leaves the last layer. Both captures must come
    from `Capture.changed`, which keeps the states; raises ValueError where they do not.
    """
    if not before.hidden_states or len(before.hidden_states) != len(after.hidden_states):
        raise ValueError("hidden_states: these captures keep none; take both from Capture.changed.")
    moved = [
        ((b.float() - a.float()).norm(dim=-1) / a.float().norm(dim=-1).clamp(min=1e-12)).cpu()
        for a, b in zip(before.hidden_states, after.hidden_states, strict=True)
    ]
    return torch.stack(moved)


def sentence_vector(capture: Capture) -> Float[Tensor, " d_model"]:
    """The mean of the last hidden states of all real tokens, of length 1.

    As sentence-transformers pools MiniLM: Reimers and Gurevych 2019. Raises ValueError where the
    model hands out no hidden state.
    """
    state = capture.hidden
    if state is None and capture.hidden_states:
        state = capture.hidden_states[-1]
    if state is None:
        raise ValueError("hidden: this model hands out no hidden states, so texts have no vector.")
    real = ~torch.tensor(capture.tokens.padding, dtype=torch.bool, device=state.device)
    return F.normalize(state.float()[real].mean(0), dim=0)


def similarity(first: Capture, second: Capture) -> float:
    """The cosine of two texts' vectors: 1 for the same direction, 0 for none in common."""
    return float(sentence_vector(first) @ sentence_vector(second))


class HeadEffect(NamedTuple):
    """What switching one head off does to a number."""

    layer: int
    head: int
    change: float
    """The number with the head off, less the number of the model as it is."""


def each_head_off(
    captures: list[Capture],
    stack: str,
    number: Callable[[list[Capture]], float],
    besides: Sequence[Sequence[Intervention]] | None = None,
    layers: Sequence[int] | None = None,
) -> Iterator[HeadEffect]:
    """Switches off each head of a stack in turn, in all the captures at once.

    `number` says what is looked at, such as the log-probability of a token, or the similarity of
    two texts. `besides` are changes that stay on, for each capture its own; `layers` are those
    whose heads are tried, all by default. A generator, so that one can show progress and stop.
    """
    kept = [()] * len(captures) if besides is None else [tuple(each) for each in besides]

    def with_changes(*more: Intervention) -> float:
        pairs = zip(captures, kept, strict=True)
        return number([capture.changed((*own, *more)) for capture, own in pairs])

    own = with_changes()
    places = captures[0].stacks[stack]
    for layer in places.layer_numbers if layers is None else layers:
        for head in range(places.layer(layer).n_heads):
            now = with_changes(Intervention(stack, (layer,), (head,), output="off"))
            yield HeadEffect(layer, head, now - own)


def _logits(capture: Capture) -> Tensor:
    if capture.logits is None:
        raise ValueError("logits: this model has no head that predicts words or classes.")
    return capture.logits if capture.logits.ndim == 2 else capture.logits[None]


def _log_probabilities(capture: Capture, position: int) -> Tensor:
    return F.log_softmax(_logits(capture)[position].double(), -1)
