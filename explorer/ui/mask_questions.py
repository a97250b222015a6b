"""The three questions at the end of the Masks page."""

from explorer.ui.quiz import Choice, Question

QUESTIONS = (
    Question(
        "Counting from 0, how many keys may query 3 use under a causal mask?",
        (
            Choice("3", "It may use itself too: keys 0, 1, 2 and 3 are four."),
            Choice("4", "Right: keys 0, 1 and 2, and itself.", right=True),
            Choice("All but 3", "That is what it may not use, or less: the later keys are barred."),
        ),
    ),
    Question(
        "Why does a forbidden score become −∞ and not 0?",
        (
            Choice(
                "0 would be too slow to compute", "Both cost the same. It is what softmax does."
            ),
            Choice(
                "softmax turns 0 into a weight above 0",
                "Right: e⁰ is 1, a part of the row's sum like any other. Only e to the −∞ is 0.",
                right=True,
            ),
            Choice(
                "0 would make the row sum to less than 1",
                "softmax always brings a row to 1. The trouble is who gets a part of it.",
            ),
        ),
    ),
    Question(
        "A text of 3 tokens is padded to 6. What do the weights of query 5, a padding, tell you?",
        (
            Choice(
                "Which tokens matter for the end of the text",
                "The text ended at token 2. Padding stands for nothing.",
            ),
            Choice("They are all 0", "A mask on keys leaves its row a sum of 1, on the real keys."),
            Choice(
                "Nothing",
                "Right: softmax fills the row, but nobody asked that query. Leave it out of "
                "every number.",
                right=True,
            ),
        ),
    ),
)
