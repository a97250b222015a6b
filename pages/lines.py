"""Lines: the weights of one layer's heads as lines between tokens."""

import streamlit as st

from explorer.ui import controls, frame, lines
from explorer.ui.words import plain

frame.page(
    "Lines",
    "A line for each weight, from a query on the left to a key on the right, in its head's colour. "
    "The stronger the line, the larger the weight.",
)
loaded, capture, key = controls.choose_capture()
for note in capture.notes:
    st.info(plain(note))
stack = controls.choose_stack(capture)
lines.show(stack)
