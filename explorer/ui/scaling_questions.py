"""The questions at the end of the page Scaling."""

from __future__ import annotations

from explorer.ui.quiz import Choice, Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        "Components are independent with mean 0 and variance 1. The standard deviation of q·k at "
        "d_k = 64?",
        (
            Choice("64", "64 is the variance: one for each of the 64 products."),
            Choice("8", "64 products of variance 1 have variance 64, and √64 = 8.", True),
            Choice("1", "That is what is left after dividing by √64 = 8."),
        ),
    ),
    Question(
        "Why not divide by d_k itself?",
        (
            Choice("It costs more", "A division is a division."),
            Choice(
                "The scores would shrink to 0",
                "Their standard deviation would be √d_k / d_k = 1/√d_k: at d_k = 4096 all weights "
                "are nearly equal, so attention can't choose.",
                True,
            ),
            Choice("Softmax would saturate", "It saturates where scores are large, not small."),
        ),
    ),
    Question(
        "One weight of a row is almost 1. What does the gradient at its scores do?",
        (
            Choice(
                "It almost vanishes",
                "Softmax's Jacobian is diag(w) − w wᵀ. With weights 1, 0, 0 … every entry is 0.",
                True,
            ),
            Choice("It grows", "Softmax lets less through the closer a weight is to 1."),
            Choice("It stays the same", "It is multiplied by w(1 − w), which is near 0 here."),
        ),
    ),
)
