"""The questions at the end of the step-by-step page."""

from __future__ import annotations

from explorer.ui.quiz import Choice, Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        "A query's two scores are 0 and log 3. Its weights?",
        (
            Choice("0 and 1", "Softmax gives every allowed key some weight: e^0 is 1, not 0."),
            Choice("¼ and ¾", "e^0 = 1 and e^(log 3) = 3. Their sum is 4: 1/4 and 3/4.", True),
            Choice("½ and ½", "Equal weights need equal scores, and log 3 is about 1.1."),
        ),
    ),
    Question(
        "You add 5 to every score of a row. What happens to its weights?",
        (
            Choice("They grow", "They can't all grow: a row's weights sum to 1."),
            Choice("They even out", "Only a smaller scale does that; differences stay here."),
            Choice(
                "Nothing",
                "Every exponential is multiplied by e^5, and so is their sum: it cancels. That "
                "is why the row's maximum may be subtracted.",
                True,
            ),
        ),
    ),
    Question(
        "A key has the weight 0.9. What do you know?",
        (
            Choice(
                "0.9 of its value goes into this head's output",
                "That is all a weight says: the share of a value in one head's output.",
                True,
            ),
            Choice(
                "It decides what the model predicts",
                "Not by itself: the value may be small, and other heads and layers follow.",
            ),
            Choice(
                "Its dot product is 0.9",
                "A dot has no limits; the weight is what softmax makes of the whole row.",
            ),
        ),
    ),
)
