"""What if: change a real model's attention, and see what that does to what it says."""

import streamlit as st

from explorer.ui import (
    change_builder,
    changed_head,
    changes,
    controls,
    frame,
    what_if,
    what_if_further,
    what_if_outcome,
    which_heads,
)
from explorer.ui.what_if_words import MEANING

frame.page(
    "What if",
    "Change a real model's attention and see what it says then. Switch heads off, change the scale "
    "or the mask, and compare. The change is yours alone: the model itself stays as it is.",
)
setting = what_if.choose()

left, right = st.columns(2, gap="large")
with left:
    st.subheader("Change", anchor=False)
    made = changes.from_address()
    stack = controls.choose_stack(setting.captures[0])
    change_builder.build(setting.captures[0], stack)
    runs = what_if.run(setting, made)
    changes.listed(made, setting.captures[0], runs.refused)
    st.markdown(MEANING)
with right:
    question = what_if_outcome.outcome(runs)

left, right = st.columns(2, gap="large")
below = st.container()
with below:
    layer, head = changed_head.choose(runs, stack)
with left:
    which_heads.show(runs, stack, question, layer, head, right)
with below:
    changed_head.maps(runs, stack, layer, head)
what_if_further.show(runs)
