"""Attention Explorer: the home page."""

import streamlit as st

from explorer.models import ModelError
from explorer.ui import address, cached, controls, frame, heads, width
from explorer.ui.words import plain

ROOMY = 400  # pixels of half the page: with less, four columns of words are too narrow
FIRST = {
    "pages/step_by_step.py": "New to attention? Follow one number from dot product to weight.",
    "pages/scaling.py": "Teaching? Drag d_k and let the room watch softmax saturate.",
    "pages/what_if.py": "Working with a model? Switch a head off and see what it says then.",
}

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
    address.stop()
stack = capture.stacks["encoder"]
every_page = [entry for entries in frame.MENU.values() for entry in entries]

left, right = width.side_by_side()
with left:
    if heads.grid(key, capture, stack, 0, 2):
        st.switch_page("pages/heads.py")
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
    st.markdown("**Where to go first**")
    for file, why in FIRST.items():
        with st.container(border=True):
            frame.link(next(entry for entry in every_page if entry.file == file))
            st.caption(why)

across = 4 if width.column() >= ROOMY else 2
places = [place for _ in range(0, len(frame.MENU), across) for place in st.columns(across)]
for place, (group, entries) in zip(places, frame.MENU.items(), strict=False):
    with place:
        st.subheader(group, anchor=False)
        for entry in entries:
            with st.container(gap=None):
                frame.link(entry)
                st.caption(entry.about)
