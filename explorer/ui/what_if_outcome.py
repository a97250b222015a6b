"""Original against changed, on the page What if: the prediction, the likeness, or the drift."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from explorer import effects
from explorer.changes import OF_POSITIONS
from explorer.changes_applied import rows_without_key, same_bits
from explorer.figures.named_bars import named_bars, named_bars_alt
from explorer.outcomes import Question, entry_text, entry_typed, positions_of, raw_entry
from explorer.tokens import Tokens
from explorer.ui import address, cached, controls, frame, width
from explorer.ui import what_if_words as say
from explorer.ui.chart import chart
from explorer.ui.what_if import Runs
from explorer.ui.words import plain, short

TOP = 10
MOST_BARS = 10
LABELS = 10  # pixels beside the bars
ASKS = {
    "next": "The next token",
    "masked": "The hidden word",
    "classes": "The class of the text",
    "labels": "The label of a token",
    "similarity": "How alike the two texts are",
    "drift": "How far the hidden states move",
}


def outcome(runs: Runs) -> Question:
    """The comparison that the model's head allows, in a sentence, bars and a table."""
    kind = runs.setting.kind
    st.subheader(ASKS[kind], anchor=False)
    if kind == "similarity":
        question = Question("similarity")
        _likeness(runs, question)
    elif kind == "drift":
        question = Question("drift")
        _say(runs, say.drifted(*_moved(runs)))
        st.caption(
            "This model has no head that predicts anything, so its hidden states are compared: "
            "how far each has moved, as a share of its length."
        )
    else:
        question = _predictions(runs)
    if any(each.mask or each.and_mask or each.without_keys for each in runs.applied[0]):
        count = rows_without_key(runs.after[0]) - rows_without_key(runs.before[0])
        if count > 0:
            st.caption(say.left_without(count))
    return question


def _moved(runs: Runs) -> tuple[npt.NDArray[np.float32], tuple[str, ...]]:
    table: npt.NDArray[np.float32] = effects.drift(runs.before[0], runs.after[0]).numpy()
    return table, positions_of(runs.before[0]).texts


def _say(runs: Runs, sentence: str) -> None:
    """What changed; or that nothing differs, which is measured and not taken for granted."""
    if not runs.is_changed:
        equal = all(each.equal for each in runs.originals)
        compared = sum(each.compared for each in runs.originals)
        st.success(say.unchanged(equal, compared), icon=":material/check:")
        return
    if sentence == say.NOT_NUMBERS:  # equal bits would say nothing
        st.warning(sentence)
        return
    found = [same_bits(*pair) for pair in zip(runs.before, runs.after, strict=True)]
    if all(equal for equal, _ in found):
        st.info(say.no_effect(sum(count for _, count in found)), icon=":material/info:")
    else:
        st.markdown(sentence)


def _predictions(runs: Runs) -> Question:
    """Probabilities before and after at one position."""
    loaded, kind = runs.setting.loaded, runs.setting.kind
    before, after = runs.before[0], runs.after[0]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        position = 0 if kind == "classes" else _choose_position(runs)
        typed = _choose_watched(runs)
    first = effects.predictions(before, before, position, top=1).ids[0]
    default = first
    if runs.setting.kind == "masked" and position in runs.setting.hidden:
        default = _own_tokens(runs).ids[position]
    entry = default if typed is None else typed
    found = effects.predictions(before, after, position, top=TOP, also=entry)
    names = {each: entry_text(loaded, kind, each) for each in found.ids}
    _say(runs, say.predicted(found, names, entry))
    order = sorted(
        range(len(found.ids)),
        key=lambda at: (found.ids[at] != entry, -max(found.before[at], found.after[at])),
    )[: MOST_BARS if runs.is_changed else TOP]
    order.sort(key=lambda at: -found.before[at])
    series = {"before": [100 * found.before[at] for at in order]}
    if runs.is_changed:
        series["after"] = [100 * found.after[at] for at in order]
    with_raw = kind in ("next", "masked")
    _bars(
        "outcome_bars",
        [names[found.ids[at]] for at in order],
        series,
        "probability, %",
        [raw_entry(loaded, found.ids[at]) for at in order] if with_raw else None,
    )
    if runs.is_changed:
        st.caption(
            f"KL divergence from the prediction before to the one after: {say.number(found.kl)} "
            "nats; 0 where they agree."
        )
    else:
        now = say.probability(found.before[found.ids.index(entry)])
        st.caption(f"Watched: {say.quoted(names[entry])}, {now}.")
    _table(runs, found, names)
    if kind == "next":
        _link_to_continue()
    return Question(kind, position, entry)


def _table(runs: Runs, found: effects.Prediction, names: Mapping[int, str]) -> None:
    """The same numbers, as many as there are."""
    loaded, of_words = runs.setting.loaded, runs.setting.kind in ("next", "masked")
    with st.expander("These numbers as a table", icon=":material/table:"):
        table = pd.DataFrame(
            {
                "entry": [short(names[each]) for each in found.ids],
                "before": found.before,
                "after": found.after,
                "change of log-probability, nats": found.log_change,
            }
        )
        if of_words:
            table.insert(1, "as written", [raw_entry(loaded, each) for each in found.ids])
        numbers = table.columns[-3:]
        st.dataframe(
            table,
            hide_index=True,
            column_config={name: st.column_config.NumberColumn(format="%.4f") for name in numbers},
        )


def _link_to_continue() -> None:
    """The page that lets the model write on, with the same text and changes."""
    entry = next((each for each in frame.MENU["Change"] if each.name == "Continue"), None)
    if entry is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption("Let it write on, with and without the changes:", width="content")
            frame.link(entry)


def _own_tokens(runs: Runs) -> Tokens:
    """The tokens that stood in the text before a word of it was hidden."""
    return cached.captured(*runs.setting.keys[0][:-1]).tokens  # type: ignore[arg-type]


def _choose_position(runs: Runs) -> int:
    """Where the model predicts: after a token, or at a hidden one; the last by default."""
    tokens = positions_of(runs.before[0])
    kind, hidden = runs.setting.kind, runs.setting.hidden
    real = [at for at, padding in enumerate(tokens.padding) if not padding]
    options = list(hidden) if kind == "masked" and hidden else real
    default = options[-1]
    if kind == "masked":  # a word's first token may be the space before it
        own = _own_tokens(runs).texts
        default = next((at for at in options if own[at].strip("·")), options[0])
    label = {"next": "After", "masked": "At", "labels": "Of"}[kind]
    return controls.choose_place(
        "at", label, options, lambda at: f"{at}  {short(tokens.texts[at])}", default, width=190
    )


def _choose_watched(runs: Runs) -> int | None:
    """An entry of one's own choice; None for the one that the page watches by itself."""
    loaded, kind = runs.setting.loaded, runs.setting.kind
    if kind in ("classes", "labels"):
        logits = runs.before[0].logits
        assert logits is not None  # the kind says so
        names = {-1: "the likeliest"} | {
            each: entry_text(loaded, kind, each) for each in range(logits.shape[-1])
        }
        address.start("watch", "", address.one_of("watch", str.isdigit, "It is a number."))
        chosen = st.session_state["watch"]
        if chosen and int(chosen) not in names:
            st.session_state["watch"] = ""
        found = st.selectbox(
            "Watch",
            ["", *map(str, range(logits.shape[-1]))],
            key="watch",
            format_func=lambda each: names[int(each) if each else -1],
            width=220,
        )
        address.finish("watch", "")
        return int(found) if found else None
    address.start("watch", "", str)
    typed = st.text_input(
        "Watch a token",
        key="watch",
        placeholder="the likeliest" if kind == "next" else "the hidden word",
        help="Type a word. The page follows its probability.",
        width=190,
    )
    address.finish("watch", "")
    if not typed.strip():
        return None
    try:
        entry, count = entry_typed(loaded, typed)
    except ValueError as error:
        st.warning(plain(str(error)))
        return None
    if count > 1:
        st.caption(f"“{plain(short(typed.strip()))}” has {count} tokens; the first is watched.")
    return entry


def _likeness(runs: Runs, question: Question) -> None:
    """The cosine of two texts before and after, and how far each has turned."""
    before = question.number(runs.before, runs.before)
    after = question.number(runs.before, runs.after)
    _say(runs, say.compared(before, after))
    if not runs.is_changed:
        known = math.isfinite(before)
        cosine = f"The cosine of the two texts is **{say.number(before, 4)}**."
        st.markdown(cosine if known else say.NOT_NUMBERS)
        _about_vectors(runs)
        return
    if not math.isfinite(before + after):
        return
    rows = [
        "| Cosine of | before | after | change |",
        "| --- | ---: | ---: | ---: |",
        f"| **the two texts** | {say.number(before, 4)} | {say.number(after, 4)} | "
        f"{say.signed(after - before, 4)} |",
    ]
    for name, own, now in zip(("first", "second"), runs.before, runs.after, strict=True):
        turned = effects.similarity(own, now)
        rows.append(
            f"| the {name} text and itself unchanged | 1.0000 | {say.number(turned, 4)} | "
            f"{say.signed(turned - 1, 4)} |"
        )
    st.markdown("\n".join(rows))
    _about_vectors(runs)


def _about_vectors(runs: Runs) -> None:
    st.caption(
        "A text's vector is the mean of its last hidden states, as sentence encoders of this kind "
        "make it. 1: the same direction; 0: nothing in common."
    )
    if any(change.what in OF_POSITIONS for change in runs.changes):
        st.caption("Changes that name tokens are made in the first text only.")


def _bars(
    key: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    title: str,
    raw: Sequence[str] | None,
) -> None:
    figure = named_bars(
        labels,
        series,
        theme=frame.theme(),
        title=title,
        raw=raw,
        digits=1,
        width_px=width.column() - LABELS,
    )
    alt = named_bars_alt(title, labels, series)
    chart(figure, key, alt)
