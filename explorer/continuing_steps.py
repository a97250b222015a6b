"""A continuation to look at: of each added token what chose it, and what that had looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from explorer.capture import Capture
from explorer.continuing import MOST_TOKENS, chances_of, continue_text
from explorer.interventions import Intervention
from explorer.models import LoadedModel
from explorer.tokens import Tokens

TOP = 10
LOST = "\N{REPLACEMENT CHARACTER}"


class Row(NamedTuple):
    """What the last query of one layer looks at."""

    weights: npt.NDArray[np.float32]
    """(n_heads, n_k)"""
    forbidden: npt.NDArray[np.bool_]
    """(n_heads, n_k), True where it may not."""


class Likely(NamedTuple):
    """One of the likeliest tokens."""

    id: int
    probability: float
    """The model's own."""
    chance: float
    """To be drawn: after temperature and top-k."""


class Step(NamedTuple):
    """One added token, small enough to be kept."""

    id: int
    probability: float
    """The model's own, before temperature and top-k."""
    likeliest: tuple[Likely, ...]
    """The likeliest TOP by the model's own probability, likeliest first."""
    rows: Mapping[str, Mapping[int, Row]]
    """By stack and layer, of the decoder and of its cross-attention."""
    keys: Mapping[str, Tokens]
    """By stack: what was looked at."""
    query: str
    """The token that looked: the last one before the added token."""


class Output(NamedTuple):
    """How a token is drawn from the model's probabilities."""

    temperature: float = 0.0
    top_k: int | None = None
    seed: int = 0


GREEDY = Output()
"""Always the likeliest token."""


def continued(
    loaded: LoadedModel,
    capture: Capture,
    interventions: Sequence[Intervention] = (),
    output: Output = GREEDY,
    most: int = MOST_TOKENS,
) -> Iterator[Step]:
    """`continue_text`, of whose runs only what a reader looks at is kept."""
    temperature, top_k, seed = output
    for each in continue_text(
        loaded, capture, most, interventions, temperature=temperature, top_k=top_k, seed=seed
    ):
        run = each.capture
        assert run.logits is not None  # it has predicted a token
        own = torch.softmax(run.logits[-1].float().cpu(), -1)
        chances = chances_of(own, temperature, top_k)
        ids = own.topk(min(TOP, len(own))).indices.tolist()
        stacks = {name: stack for name, stack in run.stacks.items() if name != "encoder"}
        yield Step(
            each.id,
            each.probability,
            tuple(Likely(at, float(own[at]), float(chances[at])) for at in ids),
            {
                name: {number: last_row(run, name, number) for number in stack.layer_numbers}
                for name, stack in stacks.items()
            },
            {name: stack.key_tokens for name, stack in stacks.items()},
            stacks["decoder"].query_tokens.texts[-1],
        )


def last_row(capture: Capture, stack: str, layer: int) -> Row:
    """What the last query of a layer looks at, in each of its heads."""
    record = capture.stacks[stack].layer(layer)
    last = [record.query_length - 1]
    weights = record.weights(rows=last)[:, 0].float().cpu().numpy()
    allowed = record.allowed(rows=last)[:, 0].cpu().numpy()
    return Row(weights, np.broadcast_to(~allowed, weights.shape))


class Copying(NamedTuple):
    """The head that looks the most at places where the added token stands already."""

    layer: int
    head: int
    weight: float


def copying(step: Step) -> Copying | None:
    """Which head of the decoder that is; None where the token does not stand before.

    An induction head does so: it looks at what followed when the present token came before
    (Olsson et al. 2022, arXiv:2209.11895).
    """
    places = [at for at, each in enumerate(step.keys["decoder"].ids) if each == step.id]
    if not places:
        return None
    found = [
        Copying(layer, head, float(weight))
        for layer, row in step.rows["decoder"].items()
        for head, weight in enumerate(np.nan_to_num(row.weights[:, places]).sum(-1))
    ]
    return max(found, key=lambda each: each.weight)


def parting(first: Sequence[int], second: Sequence[int]) -> int | None:
    """The place of the first token that differs; None where one only goes on where the other ends.

    Ids count, not what they look like.
    """
    return next(
        (at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None
    )


def pieces(loaded: LoadedModel, before: Sequence[int], added: Sequence[int]) -> tuple[str, ...]:
    """What each added token brings to the text, spaces included: together they are its end.

    Of the bytes of one letter the last brings it, the others nothing.
    """
    tokenizer = loaded.tokenizer
    assert tokenizer is not None  # it has read the text

    def text_until(count: int) -> str:
        ids = [*before, *added[:count]]
        return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))

    ends = [text_until(count) for count in range(len(added) + 1)]
    # A letter whose bytes are not all there yet reads as LOST; at the very end it may stay so.
    settled = [each.rstrip(LOST) for each in ends[:-1]] + ends[-1:]
    found, shown = [], settled[0]
    for text in settled[1:]:
        new = text[len(shown) :] if text.startswith(shown) else ""
        found.append(new)
        shown = text if new else shown
    return tuple(found)
