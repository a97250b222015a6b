"""What a model says of a text, in the form that its head allows: the number that a change moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from explorer.capture import Capture, capture_inputs
from explorer.effects import drift, log_probability, similarity
from explorer.encoding import encode
from explorer.loading import LoadedModel
from explorer.model_folder import text_config
from explorer.pieces import spell_out
from explorer.readable import readable
from explorer.tokens import Tokens, special_ids

Kind = Literal["next", "masked", "classes", "labels", "similarity", "drift"]


def kind_of(loaded: LoadedModel, capture: Capture) -> Kind:
    """What can be compared: a prediction where the model has a head, else what comes nearest.

    next: the next token. masked: a hidden word. classes: of the text. labels: of each token.
    similarity: of two texts, for encoders. drift: how far the hidden states move, for the rest.
    """
    logits = capture.logits
    if logits is not None and logits.shape[-1] > 1:
        if logits.ndim == 1:
            return "classes"
        if logits.shape[-1] < text_config(loaded.model.config).vocab_size:
            return "labels"
        if "decoder" in capture.stacks:
            return "next"
        if getattr(loaded.tokenizer, "mask_token_id", None) is not None:
            return "masked"
        return "labels"
    if capture.hidden is not None and list(capture.stacks) == ["encoder"]:
        return "similarity"
    return "drift"


@dataclass(frozen=True)
class Question:
    """One number to watch: a log-probability in nats, a cosine, or a drift."""

    kind: Kind
    position: int = -1
    entry: int = 0
    """The token, class or label whose probability is watched."""

    def number(self, before: Sequence[Capture], now: Sequence[Capture]) -> float:
        """The watched number of the runs `now`; a drift is that from the runs `before`."""
        if self.kind == "similarity":
            return similarity(now[0], now[1])
        if self.kind == "drift":
            return float(drift(before[0], now[0])[-1][~padded(now[0])].mean())
        return log_probability(now[0], self.entry, self.position)


def padded(capture: Capture) -> torch.Tensor:
    """True for padding among the positions that a capture's states belong to."""
    tokens = positions_of(capture)
    return torch.tensor(tokens.padding, dtype=torch.bool)


def positions_of(capture: Capture) -> Tokens:
    """The tokens that a capture's logits and states belong to: the decoder's where there is one."""
    stack = capture.stacks.get("decoder")
    return capture.tokens if stack is None else stack.query_tokens


@torch.no_grad()
def capture_hiding(
    loaded: LoadedModel,
    text: str,
    positions: Sequence[int],
    *,
    specials_as_text: bool = True,
    truncate: bool = False,
) -> Capture:
    """A text with some tokens replaced by the model's mask token, for it to fill in."""
    encoded = encode(loaded, text, specials_as_text=specials_as_text, truncate=truncate)
    assert loaded.tokenizer is not None  # it has just read the text
    mask_id = loaded.tokenizer.mask_token_id
    if mask_id is None:
        raise ValueError("mask_token: this model has none, so no word can be hidden from it.")
    inputs = dict(encoded.inputs)
    ids = inputs["input_ids"].clone()
    ids[0, list(positions)] = mask_id
    tokens = encoded.tokens
    hidden = set(positions)
    raw = str(loaded.tokenizer.mask_token)
    tokens = replace(
        tokens,
        ids=tuple(ids[0].tolist()),
        texts=tuple(raw if n in hidden else text for n, text in enumerate(tokens.texts)),
        raws=tuple(raw if n in hidden else text for n, text in enumerate(tokens.raws)),
    )
    found = capture_inputs(
        loaded.model, inputs | {"input_ids": ids}, [tokens], notes=[encoded.notes]
    )
    return found[0]


def entry_text(loaded: LoadedModel, kind: Kind, entry: int) -> str:
    """A token of the vocabulary as a person reads it, or the name of a class or label."""
    if kind in ("classes", "labels"):
        return str(getattr(loaded.model.config, "id2label", {}).get(entry, entry))
    raw = raw_entry(loaded, entry)
    assert loaded.tokenizer is not None
    if entry in special_ids(loaded.tokenizer):
        return readable(raw)
    spelt, _ = spell_out([raw])
    return readable(spelt[1:] if spelt[:1] == " " and len(spelt) > 1 else spelt)


def raw_entry(loaded: LoadedModel, entry: int) -> str:
    """A token of the vocabulary as the tokenizer writes it; its number where it has no text."""
    assert loaded.tokenizer is not None
    raw = loaded.tokenizer.convert_ids_to_tokens([entry])[0]
    return f"id {entry}" if raw is None else str(raw)


def entry_typed(loaded: LoadedModel, typed: str) -> tuple[int, int]:
    """The first token of a typed word as it stands after a space, and how many it has.

    Raises ValueError where the tokenizer finds none.
    """
    assert loaded.reader is not None
    best: list[int] = []
    for text in (f" {typed.strip()}", typed.strip()):
        tokens = loaded.reader.read(text).tokens
        ids = [at for at, source in zip(tokens.ids, tokens.sources, strict=True) if source == 0]
        if ids and (not best or len(ids) < len(best)):
            best = ids
    if not best:
        raise ValueError("The model's tokenizer finds no token in that.")
    return best[0], len(best)
