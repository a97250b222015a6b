""" "Test yourself": questions whose every answer gives its reason. Nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from explorer.ui import width

SIDE_BY_SIDE_FROM = 400
"""Pixels of half the page: with less, questions beside one another are ladders of words."""


class Choice(NamedTuple):
    """One possible answer, and why it is right or wrong."""

    text: str
    reason: str
    right: bool = False


class Question(NamedTuple):
    """A question and its possible answers, in the order shown."""

    text: str
    choices: tuple[Choice, ...]


def test_yourself(name: str, questions: Sequence[Question]) -> None:
    """The questions of a page, at its end. `name` is the page's, for the widgets' keys."""
    st.subheader("Test yourself", anchor=False)
    if width.column() >= SIDE_BY_SIDE_FROM:
        columns = st.columns(len(questions), gap="large")
    else:
        columns = [st.container() for _ in questions]
    for number, (question, column) in enumerate(zip(questions, columns, strict=True)):
        with column:
            texts = [choice.text for choice in question.choices]
            answer = st.radio(question.text, texts, index=None, key=f"{name}_question_{number}")
            if answer is None:
                continue
            choice = question.choices[texts.index(answer)]
            if choice.right:
                st.success(choice.reason, icon=":material/check:")
            else:
                st.warning(choice.reason, icon=":material/close:")
