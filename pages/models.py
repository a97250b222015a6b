"""Models: what the chosen model is, layer by layer; what can be opened; what is in memory."""

import streamlit as st

from explorer.ui import frame, models_memory, models_page

frame.page(
    "Models",
    "What is inside a model: its layers and heads, the scale and the mask of each layer, its size. "
    "The numbers come from the loaded model and a few tokens run through it, not from its name.",
)
shown = models_page.choose()
if shown is not None:
    models_page.show(shown)
    models_page.table(shown.facts)

left, right = st.columns([3, 2], gap="large")
with left:
    models_memory.choices()
with right:
    models_memory.show()
