"""Continue: a model's text written on token by token, with and without a change, side by side."""

import streamlit as st

from explorer.ui import (
    change_builder,
    changes,
    continuing,
    continuing_run,
    continuing_token,
    frame,
)

frame.page(
    "Continue",
    "Let a model write on, as it is and with your change to its attention, side by side. Choose a "
    "token that it added and see what it looked at to write it.",
)
setting = continuing.choose()
texts = st.container()

left, right = st.columns(2, gap="large")
with left:
    st.subheader("Change its attention", anchor=False)
    made = changes.from_address()
    change_builder.build(setting.capture, continuing.stack_now(setting))
    applied, refused = continuing.fitting(setting, made)
    changes.listed(made, setting.capture, refused)
    continuing.link_to_what_if()
with right:
    output = continuing.choose_output()

with texts:
    both = continuing_run.start(setting, made, applied, output)
    finished = continuing_run.show(both)
if finished:
    continuing_token.show(both)
    continuing_token.table(both)
