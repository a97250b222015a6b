"""A reader's changes as interventions in one text's run, and as words.

A change that names what this model or text does not have is refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from explorer.attention import Attention
from explorer.capture import Capture, Stack
from explorer.changes import OF_POSITIONS, RULES, Change
from explorer.interventions import Intervention
from explorer.masks import Mask, causal, custom, sliding_window
from explorer.painting import decode_painted
from explorer.tokens import Tokens

STACKS = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Cross"}
EVERY_KEY = Mask("every key", lambda q, k, n_q, n_k: (q >= 0) & (k >= 0))


def intervention(change: Change, capture: Capture, other: Capture | None = None) -> Intervention:
    """The change as one of this text's run; `other` is the text that outputs are taken from.

    Raises ValueError with a sentence where it does not fit.
    """
    stack = _stack(change, capture.stacks)
    _check_heads(change, stack)
    place = (stack.name, change.layers, change.heads)
    match change.what:
        case "times":
            return Intervention(*place, scale_times=change.number)
        case "rule":
            return Intervention(*place, scale_rule=RULES[change.how])
        case "off" | "mean":
            return Intervention(*place, output=change.what)
        case "uniform":
            return Intervention(*place, uniform=True)
        case "causal" | "window":
            return _of_order(change, stack, place)
        case "nokeys" | "nofirst" | "nospecial":
            return Intervention(*place, without_keys=_keys(change, stack.key_tokens))
        case "novalue":
            return Intervention(*place, zero_values=_keys(change, stack.key_tokens))
        case "set":
            return _set(change, stack, place)
        case "paint":
            return Intervention(*place, mask=_painted(change, stack))
        case "patch":
            return Intervention(*place, output_of=_outputs(stack, other))


def interventions(
    changes: Sequence[Change], capture: Capture, other: Capture | None = None, *, first: bool = True
) -> tuple[tuple[Intervention, ...], list[str]]:
    """Those that fit this text, and a sentence for each that does not.

    For another text than the `first`, changes that name places in the first are left out.
    """
    found, refused = [], []
    for change in changes:
        if not first and change.what in OF_POSITIONS:
            continue
        try:
            found.append(intervention(change, capture, other))
        except ValueError as error:
            refused.append(f"{in_words(change, capture.stacks)}: left out. {error}")
    return tuple(found), refused


Place = tuple[str, tuple[int, ...] | None, tuple[int, ...] | None]


def _stack(change: Change, stacks: Mapping[str, Stack]) -> Stack:
    if change.stack >= len(stacks):
        few = "one stack" if len(stacks) == 1 else f"{len(stacks)} stacks"
        raise ValueError(f"It is for stack {change.stack} of a model, and this one has {few}.")
    return list(stacks.values())[change.stack]


def _check_heads(change: Change, stack: Stack) -> None:
    layers = stack.layer_numbers if change.layers is None else change.layers
    gone = sorted(set(layers) - set(stack.layer_numbers))
    if gone:
        last = stack.layer_numbers[-1]
        raise ValueError(f"There is no layer {gone[0]} here; the last is {last}.")
    for layer in layers:
        n_heads = stack.layer(layer).n_heads
        if change.heads is not None and max(change.heads) >= n_heads:
            raise ValueError(
                f"There is no head {max(change.heads)} in layer {layer}; the last is {n_heads - 1}."
            )


def _of_order(change: Change, stack: Stack, place: Place) -> Intervention:
    if stack.name.startswith("cross"):
        raise ValueError(
            "Its queries and keys stand in two texts, so none comes before or after another."
        )
    if change.what == "window":
        return Intervention(*place, and_mask=sliding_window(change.keys[0]))
    if change.how == "on":
        return Intervention(*place, and_mask=causal())
    return Intervention(*place, mask=EVERY_KEY)


def _keys(change: Change, tokens: Tokens) -> tuple[int, ...]:
    if change.what == "nofirst":
        return (tokens.padding.index(False),)
    if change.what == "nospecial":
        special = tuple(
            at
            for at, (special, padding) in enumerate(
                zip(tokens.special, tokens.padding, strict=True)
            )
            if special and not padding
        )
        if not special:
            raise ValueError("This text has no special tokens.")
        return special
    _check_place(max(change.keys), len(tokens))
    return change.keys


def _check_place(place: int, length: int) -> None:
    if place >= length:
        raise ValueError(f"There is no token {place} in this text; the last is {length - 1}.")


def _set(change: Change, stack: Stack, place: Place) -> Intervention:
    query, key = change.keys
    _check_place(query, len(stack.query_tokens))
    _check_place(key, len(stack.key_tokens))
    cells = ((query, key, change.number),)
    return Intervention(*place, set_weights=cells, renormalise=change.how != "raw")


def _painted(change: Change, stack: Stack) -> Mask:
    table = decode_painted(change.how)
    lengths = {len(stack.query_tokens), len(stack.key_tokens)}
    if lengths != {len(table)}:
        raise ValueError(
            f"It was painted for {len(table)} tokens, and there are "
            f"{' and '.join(map(str, sorted(lengths)))} here."
        )
    return custom(table)


def _outputs(stack: Stack, other: Capture | None) -> dict[tuple[str, int], Attention]:
    if other is None:
        raise ValueError("It takes outputs from a second text: type one.")
    theirs = other.stacks[stack.name]
    lengths = len(stack.query_tokens), len(theirs.query_tokens)
    if lengths[0] != lengths[1]:
        raise ValueError(
            f"The second text has {lengths[1]} tokens, and this one {lengths[0]}: outputs can be "
            "taken over between texts of equal length only."
        )
    return {
        (stack.name, number): layer
        for number, layer in zip(theirs.layer_numbers, theirs.layers, strict=True)
        if isinstance(layer, Attention)
    }


def in_words(change: Change, stacks: Mapping[str, Stack]) -> str:
    """ "Layer 2, head 1: switched off"."""
    many = len(stacks) > 1
    stack = list(stacks.values())[change.stack] if change.stack < len(stacks) else None
    where = f"{_some('layer', change.layers)}, {_some('head', change.heads)}"
    if many or change.stack:
        name = f"Stack {change.stack}" if stack is None else STACKS.get(stack.name, stack.name)
        where = f"{name}, {where}"
    return f"{where[0].upper()}{where[1:]}: {_what(change, stack)}"


def _some(name: str, numbers: tuple[int, ...] | None) -> str:
    if numbers is None:
        return f"all {name}s"
    if len(numbers) == 1:
        return f"{name} {numbers[0]}"
    return f"{name}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _what(change: Change, stack: Stack | None) -> str:
    def named(keys: Sequence[int], tokens: Tokens | None) -> str:
        texts = tokens.texts if tokens is not None else ()
        return ", ".join(f"{at} “{texts[at]}”" if at < len(texts) else str(at) for at in keys)

    key_tokens = None if stack is None else stack.key_tokens
    match change.what:
        case "times":
            harder = "" if change.number == 1 else " (harder)" if change.number > 1 else " (softer)"
            return f"scale × {change.number:.4g}{harder}"
        case "rule":
            return f"scale {RULES[change.how]} on q·k"
        case "causal":
            on = "causal mask on, no key after the query"
            return on if change.how == "on" else "no mask, every query may use every key"
        case "window":
            return f"window of {change.keys[0]}, the query and the keys just before it"
        case "nokeys":
            return f"no attention to {named(change.keys, key_tokens)}"
        case "nofirst":
            return "no attention to the first token"
        case "nospecial":
            return "no attention to special tokens"
        case "paint":
            return "a painted mask"
        case "off":
            return "switched off"
        case "uniform":
            return "equal weight on all keys it may use"
        case "mean":
            return "output replaced by its mean over the text"
        case "set":
            query, key = change.keys
            queries = None if stack is None else stack.query_tokens
            rest = "the others as they were" if change.how == "raw" else "the others share the rest"
            return (
                f"weight of {named([query], queries)} on {named([key], key_tokens)} set to "
                f"{change.number:.4g}, {rest}"
            )
        case "novalue":
            return f"values of {named(change.keys, key_tokens)} set to zero"
        case "patch":
            return "output taken over from the second text"


def rows_without_key(capture: Capture) -> int:
    """Queries of single heads that no key is left for, padding not counted."""
    count = 0
    for stack in capture.stacks.values():
        live = ~stack.padded_queries
        for layer in stack.layers:
            count += int((layer.masked_rows() & live.to(layer.masked_rows().device)).sum())
    return count


def same_bits(before: Capture, after: Capture) -> tuple[bool, int]:
    """Whether two runs' outputs are equal to the last bit, and how many numbers were compared."""
    pairs = [(before.logits, after.logits), (before.hidden, after.hidden)]
    pairs += list(zip(before.hidden_states, after.hidden_states, strict=False))
    equal, count = True, 0
    for one, other in pairs:
        if one is not None and other is not None:
            bits = [each.contiguous().view(torch.uint8) for each in (one, other)]
            equal &= torch.equal(*bits)
            count += one.numel()
    return equal, count
