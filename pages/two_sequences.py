"""Two sequences: cross-attention, queries from one text and keys from another."""

import streamlit as st

from explorer.ui import frame, lesson, one_head, two_sequences, width
from explorer.ui.quiz import test_yourself

frame.page(
    "Two sequences",
    "A translator writes one text while it reads another. Its cross-attention takes the queries "
    "from the text being written, and the keys and values from the text being read.",
)
stack = two_sequences.choose()

left, right = width.side_by_side()
with left:
    st.subheader("The shapes", anchor=False)
    two_sequences.shapes(stack)
with right:
    st.subheader("The weights", anchor=False)
    head = lesson.pick("pair_head", "Head", range(stack.n_heads))
    shown = one_head.show(stack, 0, head)
    two_sequences.sums(stack, head)
one_head.show_query(shown)
test_yourself("two_sequences", two_sequences.QUESTIONS)
