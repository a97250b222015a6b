"""What every page shares: its set-up, the same menu on the left, and the reader's theme.

Pages stand in `pages/` without st.navigation, so that each opens alone, cold, from a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import streamlit as st
from streamlit.errors import StreamlitAPIException

from explorer.figures.colors import Theme
from explorer.ui import address, going_back, leaving, width


class Entry(NamedTuple):
    """A page as the menu and the home page show it."""

    file: str
    name: str
    icon: str
    about: str


HOME = Entry("app.py", "Home", ":material/home:", "What this is.")
MENU: dict[str, tuple[Entry, ...]] = {
    "Learn": (
        Entry(
            "pages/step_by_step.py",
            "Step by step",
            ":material/stairs:",
            "Attention on your own text in seven stations, every number open to the last product.",
        ),
        Entry(
            "pages/masks.py",
            "Masks",
            ":material/grid_on:",
            "Build a mask, paint one cell by cell, and see what each wrong place for it costs.",
        ),
        Entry(
            "pages/many_heads.py",
            "Many heads",
            ":material/view_column:",
            "One layer divided into 1 to 16 heads: what each one sees, and how W_O joins them.",
        ),
        Entry(
            "pages/two_sequences.py",
            "Two sequences",
            ":material/compare_arrows:",
            "Queries from one text, keys and values from another: cross-attention, with shapes.",
        ),
        Entry(
            "pages/what_it_costs.py",
            "What it costs",
            ":material/speed:",
            "Time and memory over the length of the text, measured on this machine.",
        ),
    ),
    "Why 1/√d_k": (
        Entry(
            "pages/scaling.py",
            "Scaling",
            ":material/tune:",
            "Drag d_k from 1 to 4096 and watch softmax saturate, with 1/√d_k and without.",
        ),
        Entry(
            "pages/real_heads.py",
            "Real heads",
            ":material/bubble_chart:",
            "How far a real model's scores spread, and what softmax does with other scales.",
        ),
        Entry(
            "pages/training.py",
            "Training",
            ":material/model_training:",
            "Two small models learn side by side, with the factor and without: watch heads form.",
        ),
    ),
    "Look": (
        Entry(
            "pages/heads.py",
            "Heads",
            ":material/grid_view:",
            "Every head of a model on your text. Click one and read its weights token by token.",
        ),
        Entry(
            "pages/lines.py",
            "Lines",
            ":material/timeline:",
            "The weights of a layer as lines between tokens, its heads in their own colours.",
        ),
        Entry(
            "pages/all_heads.py",
            "All heads",
            ":material/scatter_plot:",
            "Numbers of every head, a map of which look alike, and the heads most like one.",
        ),
        Entry(
            "pages/compare.py",
            "Compare",
            ":material/compare:",
            "Two heads, models, texts, masks or scales side by side, and their difference.",
        ),
        Entry(
            "pages/long_texts.py",
            "Long texts",
            ":material/menu_book:",
            "A whole document in one exact picture of every head: zoom in to a single word pair.",
        ),
        Entry(
            "pages/vision.py",
            "Images",
            ":material/image:",
            "A picture as patches, and a head's attention of one patch laid over it.",
        ),
        Entry(
            "pages/models.py",
            "Models",
            ":material/deployed_code:",
            "What a model is: layers, heads, scale and masks, its size; and which can be opened.",
        ),
    ),
    "Change": (
        Entry(
            "pages/what_if.py",
            "What if",
            ":material/science:",
            "Switch heads off, change the scale or the mask in a real model: what does it say?",
        ),
        Entry(
            "pages/continue_text.py",
            "Continue",
            ":material/edit_note:",
            "A text written on with your change and without: where the two part, and why.",
        ),
    ),
}
"""The pages in groups."""


ICON = (
    '<svg viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0b6684"/>'
    '<path d="M3 3h3v3H3zM6.5 6.5h3v3h-3zM10 10h3v3h-3z" fill="#fff"/></svg>'
)
"""The icon in the browser's tab, our own: Streamlit fetches its named ones from the internet."""


def page(title: str, lead: str) -> None:
    """Sets a page up and draws what all pages share; the first call of each page."""
    address.arrive(title)
    st.set_page_config(
        page_title=title if title == "Attention Explorer" else f"{title} · Attention Explorer",
        page_icon=ICON,
        layout="wide",
        initial_sidebar_state=220,
    )
    width.measure()
    leaving.hold_links()
    going_back.one_step()
    with st.sidebar:
        st.markdown("**Attention Explorer**")
        link(HOME)
        for group, entries in MENU.items():
            if not entries:
                continue
            st.caption(group)
            for entry in entries:
                link(entry)
    st.title(title, anchor=False)
    st.markdown(lead)
    address.notices()


def link(entry: Entry) -> None:
    """A link to another page of the app."""
    link_to(entry.file, entry.name, entry.icon)


def link_to(
    file: str,
    label: str,
    icon: str,
    choices: Mapping[str, str] | None = None,
    width: Literal["stretch", "content"] = "stretch",
) -> None:
    """A link to a page that opens with some choices."""
    try:
        st.page_link(file, label=label, icon=icon, query_params=choices, width=width)
    except StreamlitAPIException:
        # The page runs by itself, as in a test: no other page is known.
        st.markdown(label, width=width)


def theme() -> Theme:
    """The theme that the reader sees now."""
    return "dark" if st.context.theme.type == "dark" else "light"
