"""Text as a model's input: ids in tensors, with the tokens that a person reads."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from explorer.loading import LoadedModel
from explorer.model_folder import text_config
from explorer.text import MAX_CHARACTERS, TextError, TextReader, TooLongError, clean
from explorer.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Encoded:
    """One text as a model's input: a batch of one, on the CPU.

    `notes` are sentences for the user. `target_tokens` are what an encoder-decoder's decoder reads.
    """

    inputs: dict[str, Int[Tensor, "1 _"]]
    tokens: Tokens
    notes: tuple[str, ...] = ()
    target_tokens: Tokens | None = None


@dataclass(frozen=True, eq=False)
class EncodedBatch:
    """Several texts as one input, padded to the longest. Tokens and notes: one entry a text."""

    inputs: dict[str, Int[Tensor, "batch _"]]
    tokens: tuple[Tokens, ...]
    notes: tuple[tuple[str, ...], ...]
    target_tokens: tuple[Tokens, ...] | None = None


def encode(
    loaded: LoadedModel,
    text: str,
    text_pair: str | None = None,
    *,
    target: str | None = None,
    specials_as_text: bool = True,
    truncate: bool = False,
) -> Encoded:
    """A text, or a pair, as the model's input. A blank second text counts as none.

    Special tokens that are typed, such as `[SEP]`, are plain text unless `specials_as_text` is
    False. `target` is what the decoder of an encoder-decoder has before it; by default only its
    start token. Raises TextError, and TooLongError unless `truncate` lets the end be cut off.
    """
    reader = _reader(loaded)
    notes: list[str] = []
    text = _checked(text, notes)
    if not text.strip():
        raise TextError("Please type some text: there is nothing to read yet.")
    second = _checked(text_pair, notes) if text_pair and text_pair.strip() else None
    if second is not None and not loaded.takes_pairs:
        notes.append("This model reads one text at a time, so the second was left out.")
        second = None
    typed = reader.specials_in(f"{text}\n{second or ''}")
    if typed:
        verb = "was" if len(typed) == 1 else "were"
        how = "plain text, letter by letter" if specials_as_text else "special, as the model's own"
        notes.append(f"{', '.join(typed)} in the text {verb} read as {how}.")

    reading = reader.read(text, second, specials_as_text=specials_as_text)
    limit, length = loaded.max_tokens, len(reading.tokens)
    if limit is not None and length > limit:
        if not truncate:
            raise TooLongError(length, limit)
        reading = reader.read(text, second, specials_as_text=specials_as_text, limit=limit)
        lost = length - len(reading.tokens)
        what = "1 token at the end was" if lost == 1 else f"{lost:,} tokens at the end were"
        notes.append(f"{what} cut off: the model reads at most {limit:,} of these {length:,}.")
    if 0 not in reading.tokens.sources:
        raise TextError("Please type some other text: the model's tokenizer finds nothing in it.")
    if reading.doubled_start:
        notes.append(
            f"The start token {reading.tokens.texts[0]} was there twice, so one was left out."
        )
    return _encoded(loaded, reading.tokens, reading.type_ids, target, notes)


def encode_tokens(loaded: LoadedModel, tokens: Tokens) -> Encoded:
    """Tokens that were read already, such as a piece of a long text, as the model's input."""
    return _encoded(loaded, tokens, (0,) * len(tokens), None, [])


def read_whole(loaded: LoadedModel, text: str, most: int | None = None) -> Tokens:
    """A text's tokens with those the tokenizer adds, however many the model reads.

    Typed special tokens are plain text. Raises TextError, also for more than `most` tokens of the
    text itself.
    """
    reader = _reader(loaded)
    text = _checked(text, [])
    if not text.strip():
        raise TextError("Please type some text: there is nothing to read yet.")
    tokens = reader.read(text).tokens
    count = tokens.sources.count(0)
    if not count:
        raise TextError("Please type some other text: the model's tokenizer finds nothing in it.")
    if most is not None and count > most:
        raise TextError(
            f"This text has {count:,} tokens, and at most {most:,} are shown at once. "
            "Please shorten it."
        )
    return tokens


def encode_batch(
    loaded: LoadedModel, texts: Sequence[str], padding_side: str | None = None
) -> EncodedBatch:
    """Texts padded together, on the "left" or "right"; by default on the tokenizer's own side.

    Where the tokenizer has no padding token, another id stands in and the mask alone tells.
    Raises TextError.
    """
    if padding_side not in (None, "left", "right"):
        raise ValueError(f'padding_side must be "left" or "right"; got {padding_side!r}.')
    if not texts:
        raise TextError("Please type some text: there is nothing to read yet.")
    rows = [encode(loaded, text) for text in texts]
    tokenizer = loaded.tokenizer
    assert tokenizer is not None  # encode has raised otherwise
    left = (padding_side or tokenizer.padding_side) == "left"
    candidates = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
    pad_id = next(candidate for candidate in candidates if candidate is not None)
    filling = {"input_ids": pad_id, "attention_mask": 0, "token_type_ids": 0}
    width = max(len(row.tokens) for row in rows)
    inputs: dict[str, Tensor] = {}
    for name in rows[0].inputs:
        length = max(row.inputs[name].shape[1] for row in rows)
        inputs[name] = torch.full((len(rows), length), filling.get(name, 0))
        for place, row in enumerate(rows):
            own = row.inputs[name][0]
            start = length - len(own) if left else 0
            inputs[name][place, start : start + len(own)] = own
    raw = str(tokenizer.convert_ids_to_tokens(pad_id))
    tokens = []
    for row in rows:
        missing = width - len(row.tokens)
        pads = Tokens.added([pad_id] * missing, [raw] * missing, padding=True)
        tokens.append(pads + row.tokens if left else row.tokens + pads)
    targets = [row.target_tokens for row in rows if row.target_tokens is not None]
    notes = tuple(row.notes for row in rows)
    return EncodedBatch(inputs, tuple(tokens), notes, tuple(targets) or None)


def count_tokens(loaded: LoadedModel, text: str, text_pair: str | None = None) -> int:
    """The number of tokens of a text or a pair, with the model's own specials; 0 for no text."""
    reader = _reader(loaded)
    if not text.strip():
        return 0
    second = text_pair if text_pair and text_pair.strip() and loaded.takes_pairs else None
    return reader.count(_checked(text, []), None if second is None else _checked(second, []))


def _reader(loaded: LoadedModel) -> TextReader:
    if loaded.reader is None:
        raise TextError(f"{loaded.title} does not read text: it has no tokenizer.")
    return loaded.reader


def _checked(text: str, notes: list[str]) -> str:
    if len(text) > MAX_CHARACTERS:
        raise TextError(
            f"This text has {len(text):,} characters, and at most {MAX_CHARACTERS:,} are read. "
            "Please shorten it."
        )
    text, note = clean(text)
    if note is not None:
        notes.append(note)
    return text


def _row(ids: Sequence[int]) -> Int[Tensor, "1 length"]:
    return torch.tensor([list(ids)], dtype=torch.long)


def _encoded(
    loaded: LoadedModel,
    tokens: Tokens,
    type_ids: Sequence[int],
    target: str | None,
    notes: list[str],
) -> Encoded:
    inputs = {"input_ids": _row(tokens.ids)}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if _uses_type_ids(loaded):
        inputs["token_type_ids"] = _row(type_ids)
    target_tokens = _target(loaded, target, notes) if loaded.is_encoder_decoder else None
    if target_tokens is not None:
        inputs["decoder_input_ids"] = _row(target_tokens.ids)
    return Encoded(inputs, tokens, tuple(notes), target_tokens)


def _uses_type_ids(loaded: LoadedModel) -> bool:
    """Whether the model tells two texts apart by type ids.

    The tokenizer alone doesn't know: GPT-2 would take them for word ids.
    """
    tokenizer = loaded.tokenizer
    if tokenizer is None or "token_type_ids" not in tokenizer.model_input_names:
        return False
    if "token_type_ids" not in inspect.signature(loaded.model.forward).parameters:
        return False
    return (getattr(text_config(loaded.model.config), "type_vocab_size", None) or 0) > 1


def _target(loaded: LoadedModel, target: str | None, notes: list[str]) -> Tokens:
    """What the decoder has before it: its start token, then the target without its end."""
    tokenizer, reader = loaded.tokenizer, _reader(loaded)
    assert tokenizer is not None  # a reader comes from one
    config = loaded.model.config
    generation = getattr(loaded.model, "generation_config", None)  # a model without a head has none
    candidates = (
        getattr(config, "decoder_start_token_id", None),
        getattr(generation, "decoder_start_token_id", None),
        getattr(config, "bos_token_id", None),
        getattr(config, "pad_token_id", None),
        0,
    )
    start = next(candidate for candidate in candidates if isinstance(candidate, int))
    tokens = Tokens.added([start], [str(tokenizer.convert_ids_to_tokens(start))])
    if target and target.strip():
        tokens += reader.read_target(_checked(target, notes))
    if loaded.max_tokens is not None and len(tokens) > loaded.max_tokens:
        raise TooLongError(len(tokens), loaded.max_tokens)
    return tokens
