"""What it costs: time and memory of attention over the length of the text, measured here."""

from explorer.ui import cost, frame
from explorer.ui.questions import COST
from explorer.ui.quiz import test_yourself

frame.page(
    "What it costs",
    "Every query meets every key: n tokens make n² weights in every head. Three ways to compute "
    "the same output, measured on this machine, now.",
)
n_heads, d_k, longest = cost.choose()
found = cost.measured(n_heads, d_k, longest)
cost.curves(found)
cost.contexts(n_heads, d_k, found)
test_yourself("cost", COST)
