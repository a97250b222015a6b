"""Attention Explorer: the home page."""

import streamlit as st

from explorer.models import ModelError
from explorer.ui import cached, controls, frame, heads
from explorer.ui.words import plain

frame.page(
    "Attention Explorer",
    "See what a language model looks at. Type a sentence and every attention head of a real model "
    "shows its weights, computed here and now, down to the single number.",
)
text = controls.short_text()
key = ("minilm", "auto", "auto", text, None, True, True)
try:
    capture = cached.captured(*key)
except ModelError as error:
    st.error(plain(str(error)))
    st.stop()
stack = capture.stacks["encoder"]

left, right = st.columns(2, gap="large")
with left:
    heads.grid(key, capture, stack, 0, 2)
    heads.proof(key, capture, stack)
with right:
    much = "Dark" if frame.theme() == "light" else "Bright"
    st.markdown(
        "Each square is one **head** of MiniLM: 6 layers of 12. Its rows are the tokens that look, "
        f"its columns the tokens looked at. {much} is much weight.\n\n"
        "The marked head, layer 0, head 2, has taught itself to look at **the token before**. "
        "Others look at the start, at the end, or at words that belong together. "
        "**Click any head to open it.**"
    )
    for entries in frame.MENU.values():
        for entry in entries:
            with st.container(border=True):
                frame.link(entry)
                st.caption(entry.about)
if st.session_state.pop("open_head", False):
    st.switch_page("pages/heads.py")
