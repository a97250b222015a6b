"""Heads: every head of a model on one's own text, and one of them in full."""

import streamlit as st

from explorer.ui import controls, frame, heads, one_head
from explorer.ui.words import plain

frame.page(
    "Heads",
    "Every head of a real model, on your text. Each small square is one head: "
    "its queries run down, its keys across. Click one to read it.",
)
model, capture, key = controls.choose_capture()
for note in capture.notes:
    st.info(plain(note))
stack = controls.choose_stack(capture)

left, right = st.columns(2, gap="large")
with left:
    st.subheader("All heads", anchor=False)
    with st.container(horizontal=True, gap="medium"):
        layer, head = controls.choose_head(stack)
    heads.grid(key, capture, stack, layer, head)
    heads.numbers(stack, layer, head)
with right:
    st.subheader(f"Layer {layer}, head {head}", anchor=False)
    shown = one_head.show(stack, layer, head)

one_head.show_query(shown)
heads.proof(key, capture, stack)
heads.facts(model, stack, layer)
one_head.show_table(stack, layer, head)
