"""Text read by a tokenizer into ids and tokens, safely for many threads at once."""

import copy
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Encoding, Regex, Tokenizer, pre_tokenizers
from transformers import PreTrainedTokenizerBase

from explorer.tokens import Tokens, special_ids, tokens_from_encoding, tokens_from_raws

# Far above what any model reads; keeps one paste from holding the tokenizer for long.
MAX_CHARACTERS = 1_000_000

_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class TextError(ValueError):
    """A text cannot be read by the model; the message says what to change."""


class TooLongError(TextError):
    """A text has more tokens (`length`) than the model reads (`limit`)."""

    def __init__(self, length: int, limit: int) -> None:
        self.length, self.limit = length, limit
        super().__init__(
            f"This text has {length:,} tokens, and the model reads at most {limit:,}. Shorten it, "
            f"or let the last {length - limit:,} be cut off."
        )


@dataclass(frozen=True)
class Reading:
    """One text or a pair as a tokenizer reads it; `type_ids` tell the two apart."""

    tokens: Tokens
    type_ids: tuple[int, ...]
    doubled_start: bool = False  # a second start token was there and has been left out


def clean(text: str) -> tuple[str, str | None]:
    """Text that can be encoded, and a sentence where it had to be changed.

    Halves of a character (surrogates) are joined where both are there; a lone one becomes U+FFFD.
    """
    text = _SURROGATE_PAIR.sub(
        lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text
    )
    text, count = _SURROGATE.subn("\ufffd", text)
    if not count:
        return text, None
    halves = "Half a character was" if count == 1 else f"{count} halves of characters were"
    return text, f"{halves} not readable (a lone surrogate) and is shown as �."


class TextReader:
    """A tokenizer for many threads: its settings change under a lock, on a copy of its own."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._special_ids = special_ids(tokenizer)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self._backend = _own_copy(backend, self) if isinstance(backend, Tokenizer) else None
        self.takes_pairs = self._closes_first_text()

    @property
    def specials(self) -> tuple[str, ...]:
        """The special tokens as one would type them."""
        added = self._tokenizer.added_tokens_decoder
        contents = {token.content for token in added.values() if token.special}
        return tuple(sorted(contents | set(map(str, self._tokenizer.all_special_tokens))))

    def specials_in(self, text: str) -> list[str]:
        """The special tokens that stand typed out in a text, the longest first, none twice."""
        found = re.findall("|".join(map(re.escape, sorted(self.specials, key=len)[::-1])), text)
        return list(dict.fromkeys(special for special in found if special))

    def read(
        self,
        text: str,
        text_pair: str | None = None,
        *,
        specials_as_text: bool = True,
        limit: int | None = None,
    ) -> Reading:
        """The tokens of a text or a pair, cut at `limit` tokens so that the closing ones stay."""
        if self._backend is None:
            reading = self._read_slowly(text, text_pair, specials_as_text, limit)
        else:
            encoding = self._encode(text, text_pair, specials_as_text, limit)
            tokens = tokens_from_encoding(self._tokenizer, encoding, text, text_pair)
            reading = Reading(tokens, tuple(encoding.type_ids))
        return self._with_one_start(reading)

    def read_target(self, text: str) -> Tokens:
        """The tokens that a decoder is given of a target: all but the closing special."""
        if self._backend is not None:
            tokens = self.read(text).tokens
        else:
            with self._lock:
                ids = self._tokenizer(text_target=text, split_special_tokens=True)["input_ids"]
            tokens = tokens_from_raws(self._tokenizer, ids, text)
        if len(tokens) and tokens.special[-1]:
            tokens = tokens.select(range(len(tokens) - 1))
        return tokens

    def count(self, text: str, text_pair: str | None = None) -> int:
        """The number of tokens of a text or a pair, with those the tokenizer adds."""
        if self._backend is None:
            return len(self._read_slowly(text, text_pair, True, None).tokens)
        return len(self._encode(text, text_pair, True, None))

    def _encode(
        self, text: str, text_pair: str | None, specials_as_text: bool, limit: int | None
    ) -> Encoding:
        assert self._backend is not None
        with self._lock:
            self._backend.encode_special_tokens = specials_as_text
            if limit is None:
                self._backend.no_truncation()
            else:
                self._backend.enable_truncation(limit)
            try:
                return self._backend.encode(text, text_pair)
            except Exception as error:  # the tokenizers library raises nothing narrower
                raise TextError(f"The model's tokenizer cannot read this text: {error}") from error

    def _read_slowly(
        self, text: str, text_pair: str | None, specials_as_text: bool, limit: int | None
    ) -> Reading:
        tokenizer = self._tokenizer
        with self._lock:
            first, second = (
                tokenizer(
                    part,
                    add_special_tokens=False,
                    split_special_tokens=specials_as_text,
                    verbose=False,  # how long is too long is told here, not in a log
                )["input_ids"]
                for part in (text, text_pair or "")
            )
            pair = None if text_pair is None else second
            if limit is not None:
                room = limit - tokenizer.num_special_tokens_to_add(pair is not None)
                while len(first) + len(second) > max(room, 0):
                    (first if len(first) >= len(second) else second).pop()
            ids = tokenizer.build_inputs_with_special_tokens(first, pair)
            type_ids = tokenizer.create_token_type_ids_from_sequences(first, pair)
        start = _place_of(first, ids, 0)
        middle = _place_of(second, ids, start + len(first))
        raws = [str(raw) for raw in tokenizer.convert_ids_to_tokens(ids)]
        after_first, after_second = start + len(first), middle + len(second)
        tokens = (
            Tokens.added(ids[:start], raws[:start])
            + tokens_from_raws(tokenizer, first, text)
            + Tokens.added(ids[after_first:middle], raws[after_first:middle])
            + tokens_from_raws(tokenizer, second, text_pair or "", source=1)
            + Tokens.added(ids[after_second:], raws[after_second:])
        )
        return Reading(tokens, tuple(type_ids))

    def _with_one_start(self, reading: Reading) -> Reading:
        """The reading without a second start token, such as one typed after the template's own."""
        tokens = reading.tokens
        starts = {self._tokenizer.bos_token_id, self._tokenizer.cls_token_id} - {None}
        doubled = (
            len(tokens) > 1
            and tokens.ids[0] == tokens.ids[1]
            and tokens.ids[0] in starts
            and tokens.sources[0] is None
        )
        if not doubled:
            return reading
        keep = [0, *range(2, len(tokens))]
        type_ids = tuple(reading.type_ids[at] for at in keep)
        return Reading(tokens.select(keep), type_ids, doubled_start=True)

    def _closes_first_text(self) -> bool:
        """Whether a special token closes the first of two texts; joining alone makes no pair."""
        try:
            alone, pair = self.read("a").tokens, self.read("a", "a").tokens
        except (TextError, ValueError, NotImplementedError):
            return False
        if 1 not in pair.sources or not alone.special[-1]:
            return False
        return pair.sources[pair.sources.index(1) - 1] is None


def _place_of(part: Sequence[int], whole: Sequence[int], start: int) -> int:
    """Where a run of ids begins in a longer one, from `start` on; `start` if nowhere."""
    for place in range(start, len(whole) - len(part) + 1):
        if list(whole[place : place + len(part)]) == list(part):
            return place
    return start


def _own_copy(backend: Tokenizer, reader: TextReader) -> Tokenizer:
    """A copy that gives every space its offsets and reads typed specials as plain text."""
    own = copy.deepcopy(backend)
    own.no_truncation()
    own.no_padding()
    if own.post_processor is not None:
        post_processor = own.post_processor
        settings = post_processor.__getstate__().decode("utf-8")
        settings = settings.replace('"trim_offsets":true', '"trim_offsets":false')
        post_processor.__setstate__(settings.encode("utf-8"))
        own.post_processor = post_processor
    # Some vocabularies (Unigram) hold their specials as ordinary pieces too, so that plain reading
    # finds them again. Parting each after its first character keeps them out of reach.
    own.encode_special_tokens = True
    reachable = [special for special in reader.specials if _reaches_itself(own, special)]
    if reachable:
        cuts = "|".join(f"{re.escape(each[0])}(?={re.escape(each[1:])})" for each in reachable)
        cut = pre_tokenizers.Split(Regex(cuts), "merged_with_previous")
        before = [] if own.pre_tokenizer is None else [own.pre_tokenizer]
        own.pre_tokenizer = pre_tokenizers.Sequence([*before, cut])
    return own


def _reaches_itself(backend: Tokenizer, special: str) -> bool:
    if len(special) < 2:
        return False
    try:
        return backend.token_to_id(special) in backend.encode(special, add_special_tokens=False).ids
    except Exception:  # the tokenizers library raises nothing narrower; unreadable is unreachable
        return False
