"""Long texts: a whole document's attention in one exact picture, down to a word pair."""

import streamlit as st

from explorer.ui import (
    controls,
    frame,
    long_along,
    long_far,
    long_find,
    long_heads,
    long_map,
    long_passages,
    long_place,
    long_run,
    long_steps,
    long_text,
    long_whose,
    width,
)

frame.page(
    "Long texts",
    "A whole document in one picture: every weight of every head is computed, then gathered into "
    "bins. Drag a box to zoom in, until you read single words.",
)
row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
whose = long_whose.choose(row, long_text.choose(row))
seen = long_run.run(whose)
trail = long_place.choose(len(seen.tokens), len(seen.tokens))

left, right = long_map.places()
with right:
    found = long_find.choose(seen, trail[-1])
with left:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        head = controls.choose_number("head", list(range(whose.n_heads)))
        kind = long_map.choose_picture()
        long_heads.link()
    long_place.breadcrumbs(trail)
    shown = long_map.show(seen, head, kind, trail, found)
    long_steps.show(shown, trail)
with right:
    long_passages.show(seen, trail[-1], found)
    long_passages.say_pair(seen, head)
    st.subheader("All heads, whole text", anchor=False)
    long_heads.grid(seen, head)

left, right = width.side_by_side()
with left:
    long_far.show(seen, head)
with right:
    st.subheader(f"Head {head} in numbers", anchor=False)
    long_heads.numbers(seen, head)
    long_along.show(seen, head)
