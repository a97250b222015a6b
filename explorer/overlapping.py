"""A long text through a model that reads few tokens: in overlapping pieces, kept as one layer.

Each query is shown as the piece sees it in which it has the most text around it. What the model
never compared, tokens too far apart to share a piece, has no weight: the map is a band.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from explorer.attention import Attention
from explorer.capture import capture_inputs
from explorer.encoding import encode_tokens, read_whole
from explorer.long_sources import MOST_TOKENS
from explorer.models import LoadedModel, ModelError
from explorer.piecewise import Piece, PiecewiseAttention
from explorer.stacks import PiecewiseStack


@torch.no_grad()
def capture_pieces(
    model: LoadedModel,
    text: str,
    *,
    overlap: int | None = None,
    piece: int | None = None,
    layers: Sequence[int] | None = None,
    progress: Callable[[float], object] | None = None,
) -> PiecewiseStack:
    """A long text through a model, in pieces that share `overlap` tokens.

    `piece` is the tokens of one, specials included: as many as the model reads unless given.
    They share a quarter of that unless `overlap` says otherwise. `layers` are the numbers of
    those to keep, all unless given. progress(share 0..1) is called after each piece; what it
    raises ends the work. Raises TextError, ModelError, and ValueError for sizes that don't fit.
    """
    whole = read_whole(model, text, MOST_TOKENS)
    inner = [at for at, source in enumerate(whole.sources) if source == 0]
    before, tokens = whole.select(range(inner[0])), whole.select(inner)
    after = whole.select(range(inner[-1] + 1, len(whole)))
    room = _room(model, piece, len(before) + len(after))
    overlap = room // 4 if overlap is None else overlap
    if not 0 <= overlap < room:
        raise ValueError(f"overlap: got {overlap}, but a piece has {room} tokens of the text.")
    spans = spans_of(len(tokens), room, overlap)

    kept: dict[int, list[Piece]] = {}
    shares: dict[int, list[Tensor]] = {}
    owned: list[tuple[int, int]] = []
    name, n_layers = "encoder", 0
    for number, (start, stop) in enumerate(spans):
        own = before + tokens.select(range(start, stop)) + after
        encoded = encode_tokens(model, own)
        targets = None if encoded.target_tokens is None else [encoded.target_tokens]
        captured = capture_inputs(model.model, encoded.inputs, [own], targets)[0]
        name, stack = next(iter(captured.stacks.items()))
        n_layers = stack.n_layers
        owned = owned or owners(spans, ahead=name.startswith("encoder"))
        for layer, record in zip(stack.layer_numbers, stack.layers, strict=True):
            if layers is not None and layer not in layers:
                continue
            if not isinstance(record, Attention):
                raise ModelError(
                    f"{model.title} computes attention in its own code, and its weights for so "
                    "many pieces have no room. Choose another model, or our own heads."
                )
            made = Piece(start, stop, len(before), owned[number], _light(record))
            kept.setdefault(layer, []).append(made)
            shares.setdefault(layer, []).append(_on_specials(made))
        if progress is not None:
            progress((number + 1) / len(spans))
    if not kept:
        raise ValueError(f"layers: got {layers}, but {model.title} has attention in none of them.")
    return PiecewiseStack(
        name,
        tokens,
        tokens,
        tuple(PiecewiseAttention(tuple(kept[n]), torch.cat(shares[n], 1)) for n in sorted(kept)),
        tuple(sorted(kept)),
        n_layers,
    )


def spans_of(length: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Where the pieces of a text begin and end: equally long, each sharing at least `overlap`.

    The last ends with the text; where that needs no whole step, it shares more.
    """
    starts = [*range(0, max(length - room, 0), room - overlap), max(length - room, 0)]
    return [(start, min(start + room, length)) for start in starts]


def owners(spans: Sequence[tuple[int, int]], *, ahead: bool) -> list[tuple[int, int]]:
    """For each piece the rows that are shown as it sees them: together all, none twice.

    A query goes where it has the most text around it: before it where the model only looks
    back, else on the side where its piece has less. A text's own end takes nothing away.
    """
    cuts = [0]
    for (_, stop), (start, _) in pairwise(spans):
        cuts.append((start + stop + 1) // 2 if ahead else stop)
    cuts.append(spans[-1][1])
    return list(pairwise(cuts))


def _room(model: LoadedModel, piece: int | None, specials: int) -> int:
    """How many tokens of the text a piece holds."""
    limit = model.max_tokens
    size = limit if piece is None else piece
    if size is None:
        raise ModelError(f"{model.title} reads a text of any length, so it needs no pieces.")
    if size <= specials or (limit is not None and size > limit):
        raise ValueError(
            f"piece: got {size}, but {model.title} needs more than {specials} special tokens"
            + ("." if limit is None else f", and reads at most {limit}.")
        )
    return size - specials


def _light(record: Attention) -> Attention:
    """The record without its values, a third of its size, which no weight depends on."""
    return record.replace(value=record.key[..., :1], output_weight=None, output_bias=None)


def _on_specials(piece: Piece) -> Tensor:
    """The weight that the piece's own rows give to its special tokens, (n_heads, rows)."""
    keys = torch.arange(piece.attention.key_length)
    outside = (keys < piece.lead) | (keys >= piece.lead + piece.stop - piece.start)
    rows = piece.own(torch.arange(*piece.rows))
    if not bool(outside.any()):
        return piece.attention.query.new_zeros(piece.attention.n_heads, len(rows)).float()
    return piece.attention.weights(None, rows, outside.nonzero().flatten()).sum(-1)
