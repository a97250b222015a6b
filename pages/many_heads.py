"""Many heads: one layer of our own, divided into 1 to 16 heads."""

import streamlit as st

from explorer.ui import frame, lesson, many_heads, one_head, width
from explorer.ui.many_heads_questions import QUESTIONS
from explorer.ui.quiz import test_yourself

frame.page(
    "Many heads",
    "One layer can look at several things at once: it is divided into heads, each with its own "
    "queries, keys and values. Change their number and see what each one gets.",
)
split = many_heads.choose()
many_heads.say_split(split)

left, right = width.side_by_side()
with left:
    st.subheader("What each head looks at", anchor=False)
    head = many_heads.choose_head(split)
    many_heads.grid(split, head)
    many_heads.each_head(split)
with right:
    st.subheader(f"Head {head}", anchor=False)
    one_head.show(split.lesson.stack, 0, head)
many_heads.joined(split)
many_heads.all_splits(split)
lesson.proof(split.lesson)
test_yourself("many_heads", QUESTIONS)
