"""The table of metrics: what each number per head is called, its unit, its meaning, its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from explorer import row_measures as of
from explorer.row_measures import Rows

SHARE = "share of 1"
CLARK = "Clark et al. 2019, “What Does BERT Look At?”"
VIG = "Vig and Belinkov 2019, “Analyzing the Structure of Attention”"
OLSSON = "Olsson et al. 2022, “In-context Learning and Induction Heads”"


@dataclass(frozen=True)
class Metric:
    """A number per head: what it is called, its unit, what it says, and where it comes from."""

    name: str
    title: str
    unit: str
    meaning: str
    source: str
    measure: Callable[[Rows], Tensor] | None
    """One number for each head and row; None for what looks at the whole map at once."""
    same_sequence: bool = False
    """Whether it needs queries and keys to be the same tokens; cross-attention has no such."""
    needs_scores: bool = False
    """Whether it looks at the scores, which read-only layers don't have."""
    of_map: Callable[[Tensor], Tensor] | None = None
    """One number for each head, from the weights (n_heads, n_q, n_k)."""

    @property
    def costly(self) -> bool:
        """Whether it costs more than a sum over the weights: measured only where asked for."""
        return self.needs_scores or self.of_map is not None


METRICS: tuple[Metric, ...] = (
    Metric(
        "entropy",
        "Entropy",
        "nats",
        "How widely a query spreads its weights: 0 for one key, log n for n equal ones.",
        f"Shannon 1948; for heads: {CLARK}",
        of.entropy,
    ),
    Metric(
        "entropy_share",
        "Entropy, of its maximum",
        SHARE,
        "Entropy divided by the log of the number of keys the query may use.",
        "Entropy normalised, so that rows with few keys (causal masks) can be compared.",
        of.entropy_share,
    ),
    Metric(
        "distance",
        "Distance",
        "tokens",
        "How far away a query looks: |query − key| averaged by weight.",
        VIG,
        of.distance,
        same_sequence=True,
    ),
    Metric(
        "reach_back",
        "Reach back",
        "tokens",
        "The part of the distance that lies before the query; with the reach ahead it makes the "
        "distance.",
        f"{VIG}, with the two directions apart",
        of.reach_back,
        same_sequence=True,
    ),
    Metric(
        "reach_ahead",
        "Reach ahead",
        "tokens",
        "The part of the distance that lies after the query; 0 under a causal mask.",
        f"{VIG}, with the two directions apart",
        of.reach_ahead,
        same_sequence=True,
    ),
    Metric(
        "largest_weight",
        "Largest weight",
        SHARE,
        "The largest weight of a row.",
        "Voita et al. 2019, who call it a head's confidence",
        of.largest_weight,
    ),
    Metric(
        "first",
        "On the first token",
        SHARE,
        "The weight on the first key, where many heads put what they don't need.",
        "Xiao et al. 2024, “Efficient Streaming Language Models with Attention Sinks”",
        of.weight_on_first,
    ),
    Metric(
        "self",
        "On itself",
        SHARE,
        "The weight on the query's own position.",
        CLARK,
        of.weight_on_self,
        same_sequence=True,
    ),
    Metric(
        "previous",
        "On the previous token",
        SHARE,
        "The weight on the position before the query's own; the first query has none.",
        "Clark et al. 2019; Elhage et al. 2021, previous-token heads",
        of.weight_on_previous,
        same_sequence=True,
    ),
    Metric(
        "next",
        "On the next token",
        SHARE,
        "The weight on the position after the query's own; the last query has none.",
        CLARK,
        of.weight_on_next,
        same_sequence=True,
    ),
    Metric(
        "special",
        "On special tokens",
        SHARE,
        "The weight on tokens that stand for no text, such as [CLS] and [SEP].",
        CLARK,
        of.weight_on_special,
    ),
    Metric(
        "punctuation",
        "On punctuation",
        SHARE,
        "The weight on tokens of punctuation only; not known for a text without any.",
        CLARK,
        of.weight_on_punctuation,
    ),
    Metric(
        "same",
        "On the same token elsewhere",
        SHARE,
        "The weight on other places of the query's own token, over the queries that have such.",
        "Vig and Belinkov 2019, attention to the same word; here the query's own place left out",
        of.weight_on_same,
        same_sequence=True,
    ),
    Metric(
        "duplicate",
        "On the same token before",
        SHARE,
        "The weight on earlier places of the query's own token: a duplicate-token head is near 1.",
        "Wang et al. 2023, “Interpretability in the Wild”, duplicate-token heads",
        of.weight_on_duplicate,
        same_sequence=True,
    ),
    Metric(
        "induction",
        "Induction",
        SHARE,
        "The weight on what followed the query's token when it stood there before: an induction "
        "head is near 1 on a text that repeats.",
        f"{OLSSON}, the prefix-matching score",
        of.weight_on_induction,
        same_sequence=True,
    ),
    Metric(
        "sink",
        "In the sink",
        SHARE,
        "What the weights lack to 1. Only models with a learned sink, as gpt-oss, have any.",
        "The row sum, by definition",
        of.sink_weight,
    ),
    Metric(
        "score_variance",
        "Variance of the scores",
        "squared score",
        "How far a query's scaled scores lie apart, over the keys it may use. With 1/√d_k and "
        "independent numbers of variance 1 it would be near 1.",
        "Vaswani et al. 2017, section 3.2.1, footnote 4",
        of.score_variance,
        needs_scores=True,
    ),
    Metric(
        "effective_rank",
        "Effective rank",
        "directions",
        "How many independent rows the map is worth: 1 where all queries look alike, n where each "
        "of n looks elsewhere.",
        "Roy and Vetterli 2007, “The Effective Rank”: exp of the entropy of the singular values",
        None,
        of_map=of.effective_rank,
    ),
)

BY_NAME = {metric.name: metric for metric in METRICS}
EVERY = tuple(BY_NAME)
QUICK = tuple(metric.name for metric in METRICS if not metric.costly)
REPEATED = ("induction", "previous", "duplicate")
"""What a random segment that repeats tells about a head: see repeated.py."""
