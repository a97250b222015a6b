"""The page What if: what it compares, and both runs of the model, unchanged and changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import streamlit as st

from explorer.capture import Capture, Stack
from explorer.changes import Change, encode_changes
from explorer.changes_applied import interventions, same_bits
from explorer.cores import workers
from explorer.interventions import Intervention
from explorer.models import CATALOGUE, LoadedModel, ModelError, TextError, TooLongError
from explorer.outcomes import Kind, capture_hiding, kind_of
from explorer.tokens import Tokens
from explorer.ui import address, cached, controls
from explorer.ui.typing_count import typing_count
from explorer.ui.words import plain, short

SMALL_DECODER = "copier"
COPY_TEXT = "The red fox saw the blue bird in the forest. The red fox saw the blue"
SECOND_TEXT = "A weary dog stayed on its side of the road."
NO_WORD = -1
KEY = tuple[object, ...]


class Setting(NamedTuple):
    """A model and the texts that it reads on this page."""

    loaded: LoadedModel
    captures: tuple[Capture, ...]
    """The text, and for a comparison of two the second one."""
    keys: tuple[KEY, ...]
    """What each capture depends on: it names them in caches."""
    kind: Kind
    other: Capture | None
    """The second text, where there is one."""
    hidden: tuple[int, ...]
    """Positions that the mask token stands at."""


def choose() -> Setting:
    """Model and texts. Ends the page with a sentence where they can't be had, or be changed."""
    decoder = SMALL_DECODER in CATALOGUE
    left, right = st.columns(2, gap="large", vertical_alignment="bottom")
    with left:
        loaded, first, key = controls.choose_capture(
            SMALL_DECODER if decoder else None,
            COPY_TEXT if decoder else controls.DEFAULT_TEXT,
            pairs=False,
        )
    if any(stack.read_only for stack in first.stacks.values()):
        st.info(
            f"{plain(loaded.title)} can be looked at but not changed: it computes attention in its "
            "own code, which does not let ours in. Choose another model, or look at it in Heads.",
            icon=":material/lock:",
        )
        address.stop()
    kind, other = kind_of(loaded, first), None
    hidden: tuple[int, ...] = ()
    captures: tuple[Capture, ...] = (first,)
    keys: tuple[KEY, ...] = (key,)
    with right:
        if kind == "masked":
            hidden = _choose_hidden(loaded, first)
            captures = (_hiding(loaded, key, hidden) if hidden else first,)
            keys = ((*key, hidden),)
        if kind == "similarity" or _patches():
            text = _choose_second(loaded, kind)
            other, other_key = _second(loaded, key, text)
            if kind == "similarity":
                captures, keys = (first, other), (key, other_key)
        if kind not in ("similarity", "masked") and other is None and loaded.name in CATALOGUE:
            st.caption(plain(CATALOGUE[loaded.name].description))
    for note in captures[0].notes:
        st.info(plain(note))
    return Setting(loaded, captures, keys, kind, other, hidden)


def _patches() -> bool:
    """Whether a change, added or being put together, takes outputs from a second text."""
    return (
        "patch" in str(st.session_state.get("change", st.query_params.get("change", "")))
        or st.session_state.get("draft_what") == "patch"
    )


def _choose_second(loaded: LoadedModel, kind: Kind) -> str:
    default = SECOND_TEXT if kind == "similarity" else ""
    address.start("second", default, str)
    label = "Second text, to compare" if kind == "similarity" else "Second text, of equal length"
    text = st.text_area(label, key="second", height=96)
    address.finish("second", default)
    typing_count("second", loaded, text, None)
    return text


def _second(loaded: LoadedModel, key: KEY, text: str) -> tuple[Capture, KEY]:
    name, device, dtype, _, pair, as_text, truncate = key
    other: KEY = (name, device, dtype, text, pair, as_text, truncate)
    try:
        return cached.captured(*other), other  # type: ignore[arg-type]
    except (TextError, TooLongError, ModelError) as error:
        st.error(f"The second text: {plain(str(error))}", icon=":material/info:")
        address.stop()


def _choose_hidden(loaded: LoadedModel, first: Capture) -> tuple[int, ...]:
    """The word that is hidden from the model, by its tokens; typed mask tokens are there anyway."""
    tokens = first.tokens
    words: dict[int, list[int]] = {}
    for at, (word, special) in enumerate(zip(tokens.words, tokens.special, strict=True)):
        if word is not None and not special and tokens.sources[at] == 0:
            words.setdefault(word, []).append(at)
    places = {found[0]: found for found in words.values()}
    assert loaded.tokenizer is not None  # it has a mask token
    typed = tuple(n for n, at in enumerate(tokens.ids) if at == loaded.tokenizer.mask_token_id)
    letters = [at for at, found in places.items() if _letters(tokens, found)]
    default = NO_WORD if typed else (letters or [NO_WORD])[-1]
    options = [NO_WORD, *places]

    def parse(given: str) -> int:
        if given == "none":
            return NO_WORD
        return address.number_of("hide", list(places), default)(given)

    def named(at: int) -> str:
        if at == NO_WORD:
            return "none"
        return f"{at}  {short(''.join(tokens.texts[each] for each in places[at]))}"

    label = "Hide a word, for the model to fill in"
    chosen = controls.choose_place("hide", label, options, named, default, parse=parse, width=320)
    return tuple(sorted({*typed, *places.get(chosen, [])}))


def _letters(tokens: Tokens, places: Sequence[int]) -> bool:
    return any(character.isalnum() for at in places for character in tokens.texts[at])


def _hiding(loaded: LoadedModel, key: KEY, hidden: tuple[int, ...]) -> Capture:
    return _captured_hiding(loaded, hidden, *key)


@st.cache_resource(max_entries=16, show_spinner=False)
def _captured_hiding(_loaded: LoadedModel, hidden: tuple[int, ...], *key: object) -> Capture:
    _, _, _, text, _, as_text, truncate = key
    return capture_hiding(
        _loaded, str(text), hidden, specials_as_text=bool(as_text), truncate=bool(truncate)
    )


@dataclass(frozen=True, eq=False)
class Runs:
    """Both runs of each text, and what stood between them."""

    setting: Setting
    changes: tuple[Change, ...]
    originals: list[Original]
    before: list[Capture]
    after: list[Capture]
    applied: list[tuple[Intervention, ...]]
    """For each text the changes that fit it."""
    refused: list[str]
    """A sentence for each change that does not fit."""

    @property
    def seconds(self) -> float:
        """How long a run of all texts takes."""
        return sum(each.seconds for each in self.originals)

    @property
    def is_changed(self) -> bool:
        """Whether any change is at work."""
        return any(self.applied)

    @property
    def tokens(self) -> Tokens:
        """The tokens of the first text."""
        return self.before[0].tokens

    def stack(self, name: str) -> tuple[Stack, Stack]:
        """A stack of the first text without and with the changes."""
        return self.before[0].stacks[name], self.after[0].stacks[name]

    @property
    def key(self) -> KEY:
        """What both runs depend on."""
        text = None if self.setting.other is None else st.session_state.get("second")
        return (*self.setting.keys, encode_changes(self.changes), text)


def run(setting: Setting, changes: Sequence[Change]) -> Runs:
    """The model run on each text, without and with the changes."""
    applied: list[tuple[Intervention, ...]] = []
    refused: list[str] = []
    for at, each in enumerate(setting.captures):
        fitting, sentences = interventions(changes, each, setting.other, first=at == 0)
        applied.append(fitting)
        refused += sentences if at == 0 else []
    code = encode_changes(changes)
    second = st.session_state.get("second") if "patch" in code else None
    try:
        originals = [
            _unchanged(each, *key) for each, key in zip(setting.captures, setting.keys, strict=True)
        ]
        before = [each.run for each in originals]
        after = [
            _changed(each, fitting, code, at == 0, second, *key) if fitting else unchanged
            for at, (each, key, fitting, unchanged) in enumerate(
                zip(setting.captures, setting.keys, applied, before, strict=True)
            )
        ]
    except (ModelError, ValueError) as error:
        st.error(plain(str(error)), icon=":material/info:")
        address.stop()
    return Runs(setting, tuple(changes), originals, before, after, applied, refused)


class Original(NamedTuple):
    """A text's run without a change."""

    run: Capture
    seconds: float
    """How long such a run takes."""
    equal: bool
    """Whether it is the model's own run to the last bit."""
    compared: int
    """How many numbers were compared."""


# Few are kept: with a large vocabulary the logits of one long text take 200 MB.
@st.cache_resource(max_entries=4, show_spinner=False)
def _unchanged(_capture: Capture, *key: object) -> Original:
    """The run without a change, beside the one that the capture was made in."""
    equal, compared = same_bits(_capture, _capture.changed([]))
    took = []
    for _ in range(2):  # the first may be slower
        start = time.perf_counter()
        found = _apart(_capture, ())
        took.append(time.perf_counter() - start)
    return Original(found, min(took), equal, compared)


def _apart(capture: Capture, interventions: tuple[Intervention, ...]) -> Capture:
    """A run in a thread that shares its many small steps with no other: that stalls when busy.

    Runs that are compared are all made so; with other threads the last bits may differ.
    """
    return workers().submit(capture.changed, interventions).result()


@st.cache_resource(max_entries=8, show_spinner=False)
def _changed(
    _capture: Capture,
    _interventions: tuple[Intervention, ...],
    code: str,
    first: bool,
    second: str | None,
    *key: object,
) -> Capture:
    return _apart(_capture, _interventions)
