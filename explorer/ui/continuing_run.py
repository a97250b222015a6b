"""The page Continue: both texts written on in short slices, shown side by side as they grow.

A slice is a few runs of the model, then the page is given back: others are served, a stop is heard.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.changes import Change, encode_changes
from explorer.continuing import MOST_TOKENS, end_ids
from explorer.continuing_steps import LOST, Output, Step, pieces
from explorer.cores import workers
from explorer.interventions import Intervention
from explorer.models import LoadedModel
from explorer.outcomes import raw_entry
from explorer.ui import address, continuing
from explorer.ui import continuing_words as say
from explorer.ui.continuing_text import Added, Side, continued_texts
from explorer.ui.continuing_writing import Both, writing
from explorer.ui.words import plain

FIRST_SLICE = 0.35
"""Seconds that a page may work before it is shown."""
SLICE = 0.5
EVERY = 0.1
"""Seconds between two slices, for others."""
ALL = "all"
WRITTEN, PICKED = "written", "picked"
LONGEST_PROMPT = 400
"""Characters of the text before the added tokens that are shown."""


def start(
    setting: continuing.Setting,
    made: Sequence[Change],
    applied: tuple[Intervention, ...],
    output: Output,
) -> Both:
    """Both texts as far as they are written; the controls that write on."""
    st.subheader("The text goes on", anchor=False)
    loaded, capture, key = setting
    codes = ["", encode_changes(made)] if applied else [""]
    sides = tuple(
        writing(loaded, capture, applied if code else (), code, output, *key) for code in codes
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        count = continuing.choose_count()
        address.start(WRITTEN, ALL, _parse_written)
        asked = str(st.session_state[WRITTEN])
        wanted = min(int(asked), count) if asked.isdigit() else count
        both = Both(setting, sides, count, wanted, output)
        if not both.is_done:  # in a thread of its own: many small steps that share cores stall
            workers().submit(both.go_on, FIRST_SLICE).result()
        _buttons(both)
    address.finish(WRITTEN, ALL)
    return both


def _parse_written(given: str) -> str:
    if given.isascii() and given.isdigit() and int(given[:6]) <= MOST_TOKENS:
        return str(int(given))
    raise ValueError(
        f"The link asks for “{given[:60]}” written tokens. It is a number from 0 to "
        f"{MOST_TOKENS}. Showing all."
    )


def _buttons(both: Both) -> None:
    """One token more, all, and back to the beginning."""
    shown = max(len(each) for each in both.steps)
    at_end = shown >= both.count or all(
        side.is_over and len(side.steps) <= shown for side in both.sides
    )
    busy = not both.is_done
    st.button(
        "Next token",
        key="next_token",
        icon=":material/skip_next:",
        disabled=busy or at_end,
        on_click=_write,
        args=(both, shown + 1),
    )
    st.button(
        f"Run to {both.count}",
        key="run_tokens",
        icon=":material/play_arrow:",
        disabled=busy or at_end,
        on_click=_write,
        args=(both, both.count),
    )
    st.button(
        "Start again",
        key="start_again",
        icon=":material/replay:",
        disabled=not shown and not any(side.error for side in both.sides),
        help="Takes all added tokens away, to add them one by one.",
        on_click=_write,
        args=(both, 0),
    )


def _write(both: Both, wanted: int) -> None:
    st.session_state[WRITTEN] = ALL if wanted >= both.count else str(wanted)
    st.session_state[PICKED] = 0
    for side in both.sides if wanted == 0 else ():
        side.retry()


def show(both: Both) -> bool:
    """The texts side by side, growing where they are not finished; whether they are."""
    if both.is_done:
        _texts(both)
        return True
    begun: list[bool] = []

    def live() -> None:
        if begun and not st.session_state.get("stop_tokens"):
            workers().submit(both.go_on, SLICE).result()
        begun.append(True)
        if both.is_done:
            st.rerun(scope="app")
        done = min(len(each) for each in both.steps)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.progress(done / both.wanted, f"{done} of {both.wanted} tokens added")
            if st.button("Stop", key="stop_tokens", icon=":material/stop:"):
                _write(both, done)
                st.rerun(scope="app")
        _texts(both)

    st.fragment(live, run_every=EVERY)()
    return False


def _texts(both: Both) -> None:
    """Both texts and, where they part, the first difference in a sentence."""
    setting = both.setting
    loaded = setting.loaded
    parted, steps = both.parting, both.steps
    written = [pieces(loaded, setting.before, [step.id for step in each]) for each in steps]
    names = [named(loaded, *pair) for pair in zip(written, steps, strict=True)]
    st.markdown(say.compared(steps, names, parted))
    ends = end_ids(loaded)
    titles = ("As the model is", "With the change")
    sides = [
        Side(
            title,
            tuple(
                Added(piece, name, step.probability, at == parted, step.id in ends)
                for at, (piece, name, step) in enumerate(zip(texts, called, each, strict=True))
            ),
        )
        for title, texts, called, each in zip(titles, written, names, steps, strict=False)
    ]
    continued_texts(_prompt(setting), sides, picked(both) - 1, key="continued", on_pick=_pick)
    for side, each, title in zip(both.sides, steps, titles, strict=False):
        if side.error is not None:
            st.error(f"{title}: {plain(side.error)}", icon=":material/info:")
        elif side.is_over and len(side.steps) == len(each) < both.wanted:
            by_itself = bool(each) and each[-1].id in ends
            st.caption(say.ended(title, len(each), by_itself, loaded.max_tokens))
    if any(steps):
        st.caption(
            "Tinted tokens were added, each with its probability"
            + ("; the dashed frame is where the two part." if parted is not None else ".")
            + " Click one to see what it looked at."
        )


def named(loaded: LoadedModel, written: Sequence[str], steps: Sequence[Step]) -> list[str]:
    """Each added token by itself; of a part of a letter what the tokenizer writes."""
    return [
        say.shown(piece) if piece.strip(LOST) else raw_entry(loaded, step.id)
        for piece, step in zip(written, steps, strict=True)
    ]


def _prompt(setting: continuing.Setting) -> str:
    """The text before, or its end where it is long."""
    tokens = setting.capture.stacks["decoder"].query_tokens
    own = [at for at, special in zip(tokens.ids, tokens.special, strict=True) if not special]
    assert setting.loaded.tokenizer is not None  # it has read the text
    text = str(setting.loaded.tokenizer.decode(own, clean_up_tokenization_spaces=False)).lstrip()
    return text if len(text) <= LONGEST_PROMPT else f"… {text[-LONGEST_PROMPT:]}"


def _pick(at: int) -> None:
    st.session_state[PICKED] = at + 1


def picked(both: Both) -> int:
    """The added token that is looked at, from 1.

    By default the first that differs; without a difference the first, or the newest where they
    are added one by one.
    """
    most = max(len(each) for each in both.steps)
    address.start(PICKED, 0, _parse_picked)
    wanted = int(st.session_state[PICKED])
    if 0 < wanted <= most:
        return wanted
    parted = both.parting
    if parted is not None:
        return parted + 1
    return 1 if most and st.session_state[WRITTEN] == ALL else most


def _parse_picked(given: str) -> int:
    if given.isascii() and given.isdigit() and 1 <= int(given[:6]) <= MOST_TOKENS:
        return int(given)
    raise ValueError(
        f"The link asks for added token “{given[:60]}”. It is a number from 1 to {MOST_TOKENS}."
    )
