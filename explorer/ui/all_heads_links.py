"""Links from the page All heads to the page Compare, with the same model and text on both sides."""

from __future__ import annotations

import streamlit as st

from explorer.ui import address, frame
from explorer.ui.all_heads_numbers import Numbers

SIDES = ("left", "right")
SHARED = ("device", "dtype", "specials")

Head = tuple[int, int]


def compare(numbers: Numbers, left: Head, right: Head) -> None:
    """A link that shows two heads side by side."""
    label = f"Compare L{left[0]}H{left[1]} with L{right[0]}H{right[1]}"
    target = compare_address(numbers, left, right)
    frame.link_to("pages/compare.py", label, ":material/compare:", target)


def compare_address(numbers: Numbers, left: Head, right: Head) -> dict[str, str]:
    """What stands in that link: all of both sides, whatever was compared before.

    A text that is too long for an address is left out; it goes along within a visit only.
    """
    model, _, _, text, pair = numbers.key[:5]
    target = {name: st.query_params[name] for name in SHARED if name in st.query_params}
    for side, (layer, head) in zip(SIDES, (left, right), strict=True):
        target[f"{side}_model"] = str(model)
        for name, value in (("text", text), ("pair", pair)):
            if value and len(str(value)) <= address.LONGEST:
                target[f"{side}_{name}"] = str(value)
        if len(numbers.capture.stacks) > 1:
            target[f"{side}_stack"] = numbers.stack.name
        target |= {f"{side}_layer": str(layer), f"{side}_head": str(head)}
    return target
