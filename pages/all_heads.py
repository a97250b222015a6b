"""All heads: numbers of every head of a model, which heads look alike, and all of it as a table."""

import streamlit as st

from explorer.ui import (
    all_heads,
    all_heads_map,
    all_heads_numbers,
    all_heads_table,
    controls,
    frame,
    heads_scatter,
)
from explorer.ui.words import plain

frame.page(
    "All heads",
    "Every head of a model in numbers: which one looks at the previous token, which spreads its "
    "weights, and which heads do much the same. Click a head in any picture to choose it.",
)
model, capture, key = controls.choose_capture()
for note in capture.notes:
    st.info(plain(note))
stack = controls.choose_stack(capture)
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    layer, head = controls.choose_head(stack)
    heads_scatter.open_in_heads(layer, head)
numbers = all_heads_numbers.measured(model, capture, stack, key)

left, right = st.columns(2, gap="large")
with left:
    metric = all_heads.one_number(numbers, layer, head)
with right:
    all_heads.two_numbers(numbers, layer, head)

distances = all_heads_numbers.distances(numbers)
left, right = st.columns(2, gap="large")
with left:
    all_heads_map.show(numbers, distances, layer, head)
with right:
    all_heads_map.alike(numbers, distances, layer, head)

all_heads_table.show(numbers, layer, head, metric)
