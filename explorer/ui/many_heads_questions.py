"""The questions at the end of the page Many heads."""

from __future__ import annotations

from explorer.ui.quiz import Choice, Question

QUESTIONS = (
    Question(
        "A layer with d_model = 48 goes from 4 heads to 8. What becomes of d_k?",
        (
            Choice("It falls from 12 to 6", "Right: 48 / 4 = 12 and 48 / 8 = 6.", True),
            Choice("It stays", "The heads share d_model: twice as many get half as much each."),
            Choice("It grows", "More heads leave less for each: d_k = d_model / heads."),
        ),
    ),
    Question(
        "Do 8 heads need more parameters than 4?",
        (
            Choice(
                "Yes, twice as many",
                "Each head's projections are half as large, so it evens "
                "out: W_Q, W_K, W_V and W_O keep their sizes.",
            ),
            Choice(
                "No, the same",
                "Right: 8 projections to 6 numbers have as many parameters as 4 to 12.",
                True,
            ),
            Choice(
                "Yes, for W_O",
                "W_O takes the heads side by side, which are d_model numbers "
                "however they are divided.",
            ),
        ),
    ),
    Question(
        "With grouped queries, heads 0 and 1 share a key/value head. Are their weights equal?",
        (
            Choice(
                "Yes: same keys, same weights",
                "The queries differ: each head asks its own question of the shared keys.",
            ),
            Choice(
                "No: each has its own queries",
                "Right. Only keys and values are shared, which saves memory when a model writes.",
                True,
            ),
            Choice(
                "Only for the first token",
                "Nothing is special about the first token here; "
                "each head has its own queries everywhere.",
            ),
        ),
    ),
)
