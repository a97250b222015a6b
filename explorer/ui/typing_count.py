"""The number of tokens of a text field while one types, before the text is applied.

An unseen component listens to the field and reports what stands in it; only the count reruns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from explorer.models import LoadedModel, TextError, count_tokens
from explorer.ui import unseen
from explorer.ui.words import plain

_JS = """
export default function ({ data, parentElement, setStateValue }) {
  const state = (parentElement.__typing ??= {});
  state.send = setStateValue;
  if (state.listener) return state.stop;
  const own = () => document.querySelector(`.st-key-${CSS.escape(data.target)} textarea`);
  const report = (text, after, left) => {
    clearTimeout(state.waiting);
    state.waiting = setTimeout(() => {
      // The field was left, perhaps for a link: sent before the other page is there, this would
      // bring the old one back. By then this component is gone and its timer with it.
      if (!left && document.activeElement !== own()) report(text, 5000, true);
      else state.send("typed", text);
    }, after);
  };
  state.listener = (event) => {
    if (event.target === own()) report(event.target.value, 250);
  };
  // On the document: Streamlit may put a new field in the old one's place.
  document.addEventListener("input", state.listener);
  state.stop = () => {
    document.removeEventListener("input", state.listener);
    clearTimeout(state.waiting);
    delete parentElement.__typing;
  };
  hide(parentElement);
  return state.stop;
}
"""

LONGEST_COUNTED = 200_000
"""Characters; past this counting would lag behind the typing."""


@st.fragment
def typing_count(field: str, loaded: LoadedModel, applied: str, pair: str | None) -> None:
    """One line under the text field `field`: how many tokens it holds, of how many."""
    listener = _listener()(
        key=f"{field}_typing",
        data={"target": field},
        default={"typed": None},
        on_typed_change=lambda: None,
        height=1,
    )
    seen = st.session_state.get(f"{field}_applied")
    typed = listener.typed if seen == applied and isinstance(listener.typed, str) else applied
    st.session_state[f"{field}_applied"] = applied
    if len(typed) > LONGEST_COUNTED:
        st.caption("Too long to count while typing.")
        return
    try:
        count = count_tokens(loaded, typed, pair)
    except TextError as error:
        st.caption(plain(str(error)))
        return
    limit = loaded.max_tokens
    of = f" of at most {limit:,}" if limit else ""
    waiting = "" if typed == applied else " · not applied yet"
    over = " :red-badge[too long]" if limit and count > limit else ""
    st.caption(f"{count:,} token{'s' * (count != 1)}{of}{over}{waiting}")


@st.cache_resource
def _listener() -> Callable[..., Any]:
    return unseen.component("typing_count", _JS)
