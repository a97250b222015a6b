"""The questions at the end of pages that have no file of their own for them."""

from __future__ import annotations

from explorer.ui.quiz import Choice, Question

COST = (
    Question(
        "A text becomes twice as long. How many more weights does a head have?",
        (
            Choice(
                "Twice as many",
                "Each query has twice as many keys, and there are twice as "
                "many queries too: 2 × 2.",
            ),
            Choice(
                "Four times as many",
                "Twice the queries, each with twice the keys: 2 × 2 = 4.",
                True,
            ),
            Choice(
                "As many as before",
                "There is a weight for every pair of a query and a key, "
                "so their number grows with the text.",
            ),
        ),
    ),
    Question(
        "Blocks of rows never make the whole table. What do they save?",
        (
            Choice(
                "Time: they compute fewer scores",
                "Every query still meets every key. All n² scores are computed, only not kept.",
            ),
            Choice(
                "Memory: each block is dropped once its outputs are made",
                "Right. The scores "
                "are computed all the same; what is kept grows with n, not with n².",
                True,
            ),
            Choice(
                "Accuracy: small weights are left out",
                "Nothing is left out. The outputs are "
                "the same to the last digits of the number format.",
            ),
        ),
    ),
    Question(
        "What must be kept to show any weight later, exactly?",
        (
            Choice(
                "Queries and keys, and each row's sum",
                "Right. A weight is exp(q·k · scale) "
                "over its row's sum: all of it grows with n only.",
                True,
            ),
            Choice(
                "The table of weights",
                "It would do, but at a million tokens it would be larger "
                "than a data centre's memory.",
            ),
            Choice(
                "The output",
                "An output is a mixture of values. Which weights made it can't be "
                "read back from it.",
            ),
        ),
    ),
)
