"""Masks: build a mask on one's own text and see it act, and what goes wrong without it."""

import streamlit as st

from explorer.ui import frame, mask_demos, mask_views
from explorer.ui.lesson import choose_lesson, pick
from explorer.ui.mask_questions import QUESTIONS
from explorer.ui.mask_rule import choose_mask
from explorer.ui.quiz import test_yourself

frame.page(
    "Masks",
    "A mask says which keys each query may use. Build one, and watch it turn scores into "
    "weights: a forbidden key gets exactly none.",
)
lesson = choose_lesson()
built = choose_mask(lesson)
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    head = pick("head", "Head", range(lesson.attention.n_heads))
    mask_views.say_rule(built)
mask_views.four_pictures(built, head)
mask_views.checked(built)

scene = mask_demos.choose_scene(built, head)
mask_demos.show(scene)
mask_views.as_table(built, head, scene.query)

test_yourself("masks", QUESTIONS)
