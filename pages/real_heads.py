"""Real heads: what the heads of a trained model do with 1/√d_k, and without it."""

import streamlit as st

from explorer.ui import controls, frame, head_scaling, heads_scatter, scaled_head, scaling_words
from explorer.ui.words import plain

frame.page(
    "Real heads",
    "1/√d_k rests on an assumption about q and k. Here it meets a trained model: how far each "
    "head's scores really spread, and what softmax makes of them with another scale.",
)
model, capture, key = controls.choose_capture()
for note in capture.notes:
    st.info(plain(note))
stack = controls.choose_stack(capture)
heads = head_scaling.measured(capture, stack, key)
scaling_words.say_found(heads, model)

left, right = st.columns(2, gap="large")
with left:
    st.subheader("All heads", anchor=False)
    across, up = heads_scatter.choose_axes()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layer, head = controls.choose_head(stack)
        heads_scatter.open_in_heads(layer, head)
    heads_scatter.scatter(heads, across, up, layer, head)
with right:
    st.subheader(f"Layer {layer}, head {head}", anchor=False)
    scaled_head.spread(heads, layer, head)

scaled_head.maps(heads, layer, head)
heads_scatter.over_layers(heads)
heads_scatter.show_table(heads)
