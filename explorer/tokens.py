"""Tokens: what a person reads for each id."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

from explorer.pieces import Span, align, spell_out
from explorer.readable import readable

_SPACE_MARKS = "▁Ġ"


@dataclass(frozen=True)
class Tokens:
    """What a person reads for each id: the label, and where it stands in the text.

    `spans` count characters of the token's own text. `words` count from 0 in each text. `sources`
    is 0 for the first text, 1 for the second, None for what the tokenizer added. `continues` is
    True where a piece goes on with the word of the piece before it.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    raws: tuple[str, ...]
    spans: tuple[Span | None, ...]
    words: tuple[int | None, ...]
    special: tuple[bool, ...]
    padding: tuple[bool, ...]
    sources: tuple[int | None, ...]
    continues: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if not self.continues:
            object.__setattr__(self, "continues", self._joints())
        lengths = {name: len(value) for name, value in vars(self).items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"All fields of Tokens must have one length; got {lengths}.")

    def _joints(self) -> tuple[bool, ...]:
        places = list(zip(self.sources, self.words, strict=False))
        return tuple(
            at > 0 and place[1] is not None and place == places[at - 1] and not self.special[at]
            for at, place in enumerate(places)
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(**{name: own + getattr(other, name) for name, own in vars(self).items()})

    def select(self, indices: Iterable[int]) -> "Tokens":
        """The tokens at some positions, in the order given."""
        chosen = list(indices)
        return Tokens(
            **{name: tuple(values[at] for at in chosen) for name, values in vars(self).items()}
        )

    @classmethod
    def plain(cls, texts: Sequence[str]) -> "Tokens":
        """Tokens of plain strings: each a word of its own, ids counted from 0."""
        ends: list[int] = []
        for text in texts:
            ends.append((ends[-1] + 1 if ends else 0) + len(text))
        count = len(texts)
        return cls(
            ids=tuple(range(count)),
            texts=tuple(readable(text) for text in texts),
            raws=tuple(texts),
            spans=tuple((end - len(text), end) for text, end in zip(texts, ends, strict=True)),
            words=tuple(range(count)),
            special=(False,) * count,
            padding=(False,) * count,
            sources=(0,) * count,
        )

    @classmethod
    def added(cls, ids: Sequence[int], raws: Sequence[str], *, padding: bool = False) -> "Tokens":
        """Special tokens that stand for no text: a start token, or padding."""
        count = len(ids)
        return cls(
            ids=tuple(ids),
            texts=tuple(readable(raw) for raw in raws),
            raws=tuple(raws),
            spans=(None,) * count,
            words=(None,) * count,
            special=(True,) * count,
            padding=(padding,) * count,
            sources=(None,) * count,
        )


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The ids of a tokenizer's special tokens, without the one for unknown text."""
    ids = set(tokenizer.all_special_ids)
    ids.update(at for at, token in tokenizer.added_tokens_decoder.items() if token.special)
    return frozenset(ids - {tokenizer.unk_token_id})


def tokens_from_encoding(
    tokenizer: PreTrainedTokenizerBase, encoding: Encoding, text: str, text_pair: str | None = None
) -> Tokens:
    """The tokens of a fast tokenizer's encoding of one text or a pair.

    Best with a post-processor that does not trim offsets: then every space is accounted for.
    """
    specials = special_ids(tokenizer)
    # Each of these is a copy of the whole list, made anew whenever it is asked for.
    ids, all_raws, offsets = encoding.ids, encoding.tokens, encoding.offsets
    sources, word_ids = encoding.sequence_ids, encoding.word_ids
    count = len(ids)
    special = [
        bool(mask) or at_id in specials
        for mask, at_id in zip(encoding.special_tokens_mask, ids, strict=True)
    ]
    labels = [readable(raw) for raw in all_raws]
    spans: list[Span | None] = [None] * count
    words: list[int | None] = [None] * count
    for source, its_text in enumerate((text, text_pair or "")):
        mine = [at for at in range(count) if sources[at] == source]
        raws = [all_raws[at] for at in mine]
        found = [
            _without_prefix(raw, offsets[at], its_text) for at, raw in zip(mine, raws, strict=True)
        ]
        its_labels, its_spans = _labels(its_text, found, raws)
        its_words = _words(its_text, its_spans, [word_ids[at] for at in mine])
        for at, label, span, word in zip(mine, its_labels, its_spans, its_words, strict=True):
            labels[at] = readable(all_raws[at]) if special[at] else label
            spans[at], words[at] = span, word
    return Tokens(
        ids=tuple(ids),
        texts=tuple(labels),
        raws=tuple(all_raws),
        spans=tuple(spans),
        words=tuple(words),
        special=tuple(special),
        padding=tuple(not mask for mask in encoding.attention_mask),
        sources=tuple(sources),
    )


def tokens_from_raws(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], text: str, source: int = 0
) -> Tokens:
    """The tokens of one text's ids where the tokenizer gives no offsets, from its raw marks."""
    specials = special_ids(tokenizer)
    raws = [str(raw) for raw in tokenizer.convert_ids_to_tokens(list(ids))]
    special = tuple(at_id in specials for at_id in ids)
    # These spell nothing of the text themselves.
    silent = [hide or raw == tokenizer.unk_token for hide, raw in zip(special, raws, strict=True)]
    spelt, places = spell_out(
        ["" if hide else raw for hide, raw in zip(silent, raws, strict=True)], text
    )
    aligned = align(spelt, places, text)
    # One text for all labels: the true one if every place was found, else what the marks spell.
    found = not any(
        span is None and not hide and spelt[slice(*place)].strip()
        for span, hide, place in zip(aligned, silent, places, strict=True)
    )
    true_spans = [span or (0, 0) for span in aligned]
    labels, used = _labels(text if found else spelt, true_spans if found else places, raws)
    words = _whitespace_words(text if found else spelt, used)
    return Tokens(
        ids=tuple(ids),
        texts=tuple(
            readable(raw) if hide else label
            for hide, raw, label in zip(silent, raws, labels, strict=True)
        ),
        raws=tuple(raws),
        spans=tuple(used[at] if found and aligned[at] else aligned[at] for at in range(len(ids))),
        words=tuple(words),
        special=special,
        padding=(False,) * len(ids),
        sources=(source,) * len(ids),
    )


def _without_prefix(raw: str, span: Span, text: str) -> Span:
    """The span of a token; empty for a space that the tokenizer put in front by itself.

    Such a mark comes with the offsets of the character after it.
    """
    start, end = span
    covered = text[start:end]
    if raw and not raw.strip(_SPACE_MARKS) and not covered.isspace() and covered != raw:
        return (start, start)
    return span


def _labels(text: str, spans: list[Span], raws: Sequence[str]) -> tuple[list[str], list[Span]]:
    """Readable labels, and the spans of exactly the characters they show.

    The one space that parts a word from the word before is in neither.
    """
    sharers = [0] * len(text)
    for start, end in spans:
        for at in range(start, end):
            sharers[at] += 1
    seen = [0] * len(text)
    labels: list[str] = []
    shown: list[Span] = []
    for (start, end), raw in zip(spans, raws, strict=True):
        for at in range(start, end):
            seen[at] += 1
        parts_words = end - start > 1 and text[start] == " " and not text[start + 1].isspace()
        span = (start + 1, end) if parts_words else (start, end)
        shown.append(span)
        if span[0] == span[1]:
            labels.append(_label_of_raw(raw))
            continue
        parts: list[str] = []
        whole = span[0]  # where the characters begin that this token has to itself
        for at in range(*span):
            if sharers[at] > 1:
                if whole < at:
                    parts.append(readable(text[whole:at]))
                parts.append(f"{readable(text[at])} ({seen[at]}/{sharers[at]})")
                whole = at + 1
        if whole < span[1]:
            parts.append(readable(text[whole : span[1]]))
        labels.append(" ".join(parts))
    return labels, shown


def _label_of_raw(raw: str) -> str:
    spelt, _ = spell_out([raw])
    return readable(spelt)


def _words(text: str, spans: Sequence[Span], word_ids: Sequence[int | None]) -> list[int | None]:
    """Word indices by the tokenizer, or by white space where its words run across white space."""
    extents: dict[int, Span] = {}
    for word, (start, end) in zip(word_ids, spans, strict=True):
        if word is not None and end > start:
            low, high = extents.get(word, (start, end))
            extents[word] = (min(low, start), max(high, end))
    whole_text = any(len(text[low:high].split()) > 1 for low, high in extents.values())
    if whole_text or None in word_ids:
        return _whitespace_words(text, spans)
    return list(word_ids)


def _whitespace_words(text: str, spans: Sequence[Span]) -> list[int | None]:
    """For each span the index of the word, parted by white space, that it begins in."""
    word_of: list[int | None] = []
    count = 0
    for at, character in enumerate(text):
        count += not character.isspace() and (at == 0 or text[at - 1].isspace())
        word_of.append(None if character.isspace() else count - 1)
    return [
        next((word_of[at] for at in range(start, end) if word_of[at] is not None), None)
        for start, end in spans
    ]
