"""A model's facts as sentences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import groupby

from explorer.model_facts import LayerFacts, ModelFacts, StackFacts, Weights
from explorer.ui.words import plain

STACKS = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Decoder to encoder (cross)"}
CHANGEABLE = (
    "**Can be changed.** Our own attention runs inside it, by transformers' common interface: "
    "every score is known, and What if can change it."
)
READ_ONLY = (
    "**Read-only.** This kind of model computes attention in its own code, where ours can't stand "
    "in: its weights can be looked at, but its scale, mask and scores aren't known, and What if "
    "can't change them."
)


def stack_title(name: str) -> str:
    """A stack as a heading names it."""
    return STACKS.get(name, name.capitalize())


def size(n_bytes: int) -> str:
    """Bytes as people read them, in powers of 1000: "90.9 MB"."""
    for above, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n_bytes >= above:
            return f"{n_bytes / above:.3g} {unit}"
    return f"{n_bytes} bytes"


def on_devices(weights: Weights) -> str:
    """Where weights are, in words: "the CPU", "cuda:0 and cuda:1"."""
    return " and ".join("the CPU" if name == "cpu" else plain(name) for name in weights.devices)


def facts_in_words(facts: ModelFacts) -> list[str]:
    """The facts in Markdown, a line each."""
    weights = facts.weights
    devices = on_devices(weights)
    lines = [
        f"**{plain(facts.title)}** is of the kind {plain(facts.family)} "
        f"({plain(facts.class_name)}): {weights.parameters:,} parameters in "
        f"{' and '.join(weights.dtypes)}, {size(weights.bytes)} on {devices}.",
        *(_stack_line(stack, len(facts.stacks) > 1) for stack in facts.stacks),
    ]
    if facts.read_only:
        return [*lines, _limit(facts), READ_ONLY]
    lines += [
        _line(facts, "Keys and values", lambda one: (one.n_heads, one.n_kv_heads), _sharing),
        _line(facts, "Scale", lambda one: (one.rule, one.scale, one.d_k, one.prescaled), _scale),
        _line(facts, "Mask", lambda one: (one.stack == "cross", one.mask), _mask),
    ]
    terms = _line(facts, "Also", lambda one: (one.softcap, one.sinks, one.bias), _terms)
    return [
        *lines,
        *([terms] if any(map(_has_terms, facts.layers)) else []),
        _limit(facts),
        CHANGEABLE,
    ]


def _stack_line(stack: StackFacts, several: bool) -> str:
    name = f"**{stack_title(stack.name)}:** " if several else ""
    heads = sum(layer.n_heads for layer in stack.layers)
    counts = sorted({layer.n_heads for layer in stack.layers})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    line = (
        f"{name}{_count(len(stack.layers), 'layer')} of {each} head{'' if each == '1' else 's'}, "
        f"{_count(heads, 'head')} in all."
    )
    without = stack.n_layers - len(stack.layers)
    if without:
        line += f" {_count(without, 'more layer')} of its {stack.n_layers} without attention."
    return line


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _line(
    facts: ModelFacts,
    title: str,
    key: Callable[[LayerFacts], Hashable],
    words: Callable[[LayerFacts], str],
) -> str:
    """One fact of all layers; where they differ, what holds for which."""
    groups: dict[Hashable, list[LayerFacts]] = {}
    for layer in facts.layers:
        groups.setdefault(key(layer), []).append(layer)
    if len(groups) == 1:
        return f"**{title}:** {words(facts.layers[0])}."
    parts = [f"{places(facts, layers)}: {words(layers[0])}" for layers in groups.values()]
    return f"**{title}:** {'; '.join(parts)}."


def places(facts: ModelFacts, layers: Sequence[LayerFacts]) -> str:
    """Which layers these are: "layers 0, 2 to 5", by stacks where there are several."""
    found = []
    for stack in facts.stacks:
        own = [layer.layer for layer in layers if layer.stack == stack.name]
        if not own:
            continue
        name = stack_title(stack.name).lower() if len(facts.stacks) > 1 else ""
        if len(own) < len(stack.layers) or not name:
            name += f" layer{'s' if len(own) > 1 else ''} {_runs(own)}"
        found.append(name.strip())
    return ", ".join(found)


def _runs(numbers: Sequence[int]) -> str:
    """Numbers with runs of three and more shortened: "0, 2 to 5"."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    ]
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(parts)


def _sharing(layer: LayerFacts) -> str:
    kv = layer.n_kv_heads or layer.n_heads
    group = layer.n_heads // kv
    if group == 1:
        return "each head has its own"
    if kv == 1:
        return f"all {layer.n_heads} heads share one key/value head"
    return f"{layer.n_heads} heads share {kv} key/value heads, {group} heads to each"


def _scale(layer: LayerFacts) -> str:
    if layer.scale is None or layer.d_k is None:
        return "not known"
    number = f"{layer.scale:.4g}"
    if layer.rule == "1/√d_k":
        words = f"1/√d_k = 1/√{layer.d_k} = {number}, as in the paper"
    elif layer.rule == "1":
        words = f"1, so q·k itself; 1/√d_k would be {layer.d_k**-0.5:.4g}"
    else:
        words = f"{layer.rule} = {number}, not 1/√d_k, which would be {layer.d_k**-0.5:.4g}"
    return words + (" (the model puts it into the query first)" if layer.prescaled else "")


def _mask(layer: LayerFacts) -> str:
    mask = layer.mask or "none"
    if layer.stack == "cross" and mask == "none":
        return "none, each token written may use every token read"
    if mask == "none":
        return "none, every token may use every other"
    if mask == "causal":
        return "causal, a token may use itself and those before"
    if mask.startswith("sliding window of ") and mask.split()[-1].isdigit():
        return f"{mask}, a token may use itself and the {int(mask.split()[-1]) - 1} before"
    return plain(mask)


def _has_terms(layer: LayerFacts) -> bool:
    return layer.softcap is not None or layer.sinks or layer.bias


def _terms(layer: LayerFacts) -> str:
    terms = []
    if layer.softcap is not None:
        terms.append(f"a soft cap keeps scores between −{layer.softcap:g} and {layer.softcap:g}")
    if layer.sinks:
        terms.append("a sink in each head takes a part of every row, so weights sum to less than 1")
    if layer.bias:
        terms.append("a bias of its own is added to the scores, as T5 does by distance")
    return " and ".join(terms) or "nothing more"


def _limit(facts: ModelFacts) -> str:
    if facts.max_tokens is None:
        return "**Length:** its positions have no end, so memory alone sets the limit."
    return f"**Length:** it reads at most {facts.max_tokens:,} tokens at once."
