"""A throw-away Streamlit page for the benchmark: the picture of all heads, and a button for others.

browser.py copies it as the app.py of a temporary folder. The address says layers, heads, tokens.
"""

from __future__ import annotations

import streamlit as st

from benchmarks.grid import Weights, random_weights
from explorer.figures.grid import heads_grid


@st.cache_resource
def weights(n_layers: int, n_heads: int, n_tokens: int, seed: int) -> Weights:
    return random_weights(n_layers, n_heads, n_tokens, seed)


st.set_page_config(layout="wide")
n_layers, n_heads, n_tokens = (
    int(st.query_params.get(name, 2)) for name in ("layers", "heads", "tokens")
)
both = [weights(n_layers, n_heads, n_tokens, seed) for seed in (0, 1)]
turn = st.session_state.setdefault("turn", 0)
if st.button("Others"):
    turn = st.session_state["turn"] = turn + 1
figure = heads_grid(both[turn % 2], layer_numbers=range(n_layers), theme="light", selected=(0, 0))
st.plotly_chart(figure, key="grid", theme=None, config={"displayModeBar": False})
