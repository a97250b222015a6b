"""Training: two small models of our own attention learn side by side, with and without 1/√d_k."""

from explorer.ui import frame, training, training_choice, training_words

frame.page(
    "Training",
    "Two small models of our own attention learn the same task from the same rows. Change one "
    "thing, such as the factor 1/√d_k, and watch what becomes of it.",
)
choice = training_choice.choose()
training.show(choice)
training_words.when_it_matters()
