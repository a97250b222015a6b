"""Compare: two heads, models, texts, masks or scales side by side, and what differs."""

from explorer.ui import compare, compare_strip, frame

frame.page(
    "Compare",
    "Two maps side by side, and their difference: another head, another model, another text, or "
    "the same head with another mask or scale.",
)
left, right, by_words = compare.choose()
pair = compare.bring_together(left, right, by_words)
compare.show(left, right, pair)
compare_strip.strip(left, right)
compare.proof(pair)
compare.show_tables(left, right, pair)
