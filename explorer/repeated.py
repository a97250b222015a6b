"""A segment of random tokens, read again and again: what tells induction heads from others.

Olsson et al. 2022, “In-context Learning and Induction Heads”: on random tokens nothing but the
repetition can be known, so weight on what followed last time is induction and nothing else.
"""

from __future__ import annotations

import torch

from explorer.capture import Capture, capture_inputs
from explorer.loading import LoadedModel
from explorer.models import ModelError
from explorer.readable import readable
from explorer.tokens import Tokens, special_ids


@torch.no_grad()
def repeated_capture(
    loaded: LoadedModel, period: int = 25, copies: int = 2, seed: int = 0
) -> Capture:
    """The attention of a decoder on `copies` of one random segment, after its start token.

    The segment's tokens differ from each other, so each has one place in it:
    head_metrics(stack, REPEATED) reads the scores. `period` is cut to what the model can hold.
    Raises ValueError for a period below 2 or copies below 2, ModelError for a model that is no
    decoder, or that reads too few tokens.
    """
    if period < 2 or copies < 2:
        raise ValueError(f"period, copies: got {period} and {copies}; both are at least 2.")
    tokenizer = loaded.tokenizer
    if tokenizer is None or loaded.is_encoder_decoder:
        raise ModelError(
            f"{loaded.title} does not go on with one text of its own, so it can't be tested for "
            "induction. Choose a decoder, such as GPT-2."
        )
    start = [] if tokenizer.bos_token_id is None else [int(tokenizer.bos_token_id)]
    embeddings = loaded.model.get_input_embeddings()
    vocabulary = next(embeddings.parameters()).shape[0]
    usable = sorted(set(range(min(vocabulary, len(tokenizer)))) - special_ids(tokenizer))
    room = period if loaded.max_tokens is None else (loaded.max_tokens - len(start)) // copies
    period = min(period, room, len(usable))
    if period < 2:
        raise ModelError(f"{loaded.title} reads too few tokens for a segment that repeats.")
    order = torch.randperm(len(usable), generator=torch.Generator().manual_seed(seed))
    segment = [usable[at] for at in order[:period].tolist()]
    ids = start + segment * copies
    raws = [str(raw) for raw in tokenizer.convert_ids_to_tokens(ids)]
    begin = len(start)
    tokens = Tokens.added(ids[:begin], raws[:begin])
    texts = tuple(readable(str(tokenizer.decode([number]))) for number in ids[begin:])
    of_segment = Tokens(
        ids=tuple(ids[begin:]),
        texts=texts,
        raws=tuple(raws[begin:]),
        spans=(None,) * len(texts),  # they stand in no text
        words=tuple(range(len(texts))),
        special=(False,) * len(texts),
        padding=(False,) * len(texts),
        sources=(0,) * len(texts),
    )
    row = torch.tensor([ids])
    inputs = {"input_ids": row, "attention_mask": torch.ones_like(row)}
    found = capture_inputs(loaded.model, inputs, [tokens + of_segment])[0]
    if "decoder" not in found.stacks:
        raise ModelError(
            f"{loaded.title} sees what comes after a token too, so on a text that repeats it need "
            "not remember what followed. Choose a decoder, such as GPT-2."
        )
    return found
