"""Work beside the page: one pool for the server, one job a session, ended with the session.

A session counts as there while its browser is connected: Streamlit's runtime knows that, and may
be asked from any thread. Closing the tab ends the connection, and the job a few seconds later.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.runtime import Runtime, exists, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.jobs import Job, Pool

LONGEST = 600.0
"""Seconds of work after which a job is ended, whatever it does."""


@st.cache_resource
def pool() -> Pool:
    """The server's pool: two jobs at once, more where there are more than four cores."""
    return Pool(places=max(2, (os.cpu_count() or 2) // 2), longest=LONGEST)


def start(requests: Sequence[dict[str, Any]]) -> Job:
    """A job of this session; one that it had before is stopped."""
    context = get_script_run_ctx()
    session = "alone" if context is None else context.session_id

    def is_wanted() -> bool:
        try:
            return bool(get_instance().is_active_session(session))
        except RuntimeError:
            return True  # no server: the page runs in a test

    return pool().start(session, requests, is_wanted)


def ahead(job: Job) -> int:
    """How many jobs start before this one does."""
    return pool().ahead(job)


def make_ready(count: int) -> None:
    """Processes for the next job, loaded while the reader still reads; on a real server only."""
    if exists() and type(get_instance()) is Runtime:  # a test stands in with a subclass or mock
        pool().make_ready(count)
