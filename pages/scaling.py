"""Why 1/√d_k: drag d_k and watch what happens to scores, softmax and gradients."""

from __future__ import annotations

from explorer.ui import frame, scaling
from explorer.ui.quiz import test_yourself
from explorer.ui.scaling_questions import QUESTIONS

frame.page(
    "Scaling",
    "Drag d_k: the scores spread, and softmax soon listens to one key only, unless they are scaled "
    "by 1/√d_k. Numbers read *unscaled → scaled*.",
)
chosen = scaling.choose()
scaling.headline(chosen)
scaling.at_this_size(chosen)
scaling.in_words(chosen)
scaling.over_sizes(chosen)
test_yourself("scaling", QUESTIONS)
