"""The views of the page What it costs: the measurement, its curves, and what long texts need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from explorer.cost import (
    METHODS,
    Measured,
    as_picture,
    in_bytes,
    in_count,
    in_time,
    measurements,
    seconds_at,
    slope,
    table_bytes,
)
from explorer.figures.lines import Line, lines
from explorer.ui import frame, lesson, width
from explorer.ui.chart import chart
from explorer.ui.words import plain

SHORTEST = 128
LENGTHS = {1024: "1,024", 2048: "2,048", 4096: "4,096", 8192: "8,192", 16384: "16,384"}
CONTEXTS = (1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000)
LEAST_SLOPE, LARGEST_SLOPE = 0.3, 3.0
"""No method grows like a power outside of these on a quiet machine."""
BYTE_TICKS = {1e5: "100 KB", 1e6: "1 MB", 1e7: "10 MB", 1e8: "100 MB", 1e9: "1 GB", 1e10: "10 GB"}
TIME_TICKS = {1e-4: "0.1 ms", 1e-3: "1 ms", 1e-2: "10 ms", 0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s"}


def choose() -> tuple[int, int, int]:
    """Heads, d_k and the longest length to measure."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        n_heads = lesson.pick("cost_heads", "Heads", (1, 2, 4, 8, 12, 16), 4)
        d_k = lesson.pick("cost_d_k", "d_k", (16, 32, 64, 128), 64)
        longest = lesson.pick("longest", "Longest text, in tokens", tuple(LENGTHS), 1024)
    return n_heads, d_k, longest


def measured(n_heads: int, d_k: int, longest: int) -> list[Measured]:
    """What was measured for these sizes, measured now where it was not; can be stopped.

    A visitor's first look measures short texts by itself, which takes some seconds.
    """
    known: dict[tuple[int, int, int], list[Measured]] = st.session_state.setdefault("costs", {})
    key = (n_heads, d_k, longest)
    asked = st.button("Measure again" if key in known else "Measure", icon=":material/timer:")
    if key in known and not asked:
        return known[key]
    if not asked and known:
        st.caption("Press Measure to run these sizes.")
        return []
    found = known[key] = []
    lengths = [n for n in (SHORTEST * 2**step for step in range(12)) if n <= longest]
    total = len(lengths) * len(METHODS)
    with st.container(horizontal=True, vertical_alignment="center"):
        progress = st.progress(0.0, "Starting …", width="stretch")
        # A click reruns the page, which ends this loop, and with it the measuring process.
        stop = st.empty()
        stop.button("Stop", key="stop_costs", icon=":material/stop:")
    work = measurements(lengths, n_heads, d_k)
    try:
        for one in work:
            found.append(one)
            progress.progress(len(found) / total, f"{one.method}, {one.length:,} tokens")
    except (OSError, RuntimeError) as error:
        st.error(plain(str(error)))
    finally:
        work.close()
    progress.empty()
    stop.empty()
    return found


def curves(found: Sequence[Measured]) -> None:
    """Time and memory over the length, and the exponents fitted to them."""
    done = [one for one in found if not one.skipped]
    left, right = st.columns(2, gap="large")
    if not done:
        left.caption("Nothing is measured yet.")
        return
    lengths = sorted({one.length for one in done})
    ticks = {float(n): f"{n:,}" for n in lengths}
    for column, title, unit, numbers, y_ticks in (
        (left, "Time", "time of one layer", [one.seconds for one in done], TIME_TICKS),
        (
            right,
            "Memory",
            "extra memory of one layer",
            [one.extra_bytes for one in done],
            BYTE_TICKS,
        ),
    ):
        pairs = list(zip(done, numbers, strict=True))
        series = [
            Line(
                method,
                [one.length for one, _ in pairs if one.method == method],
                [number for one, number in pairs if one.method == method],
                markers=True,
            )
            for method in METHODS
        ]
        with column:
            st.subheader(title, anchor=False)
            figure = lines(
                series,
                x_title="tokens",
                y_title=unit,
                theme=frame.theme(),
                x_log=True,
                y_log=True,
                x_ticks=ticks,
                y_ticks=y_ticks,
                hover="%{y:.3s}",
                width=width.column(),
            )
            chart(
                figure,
                f"cost_{title}",
                f"{title} over the number of tokens; the numbers stand in the table below.",
                width="stretch",
            )
    _say_slopes(done)
    for reason in dict.fromkeys(f"{one.method}: {one.skipped}" for one in found if one.skipped):
        st.caption(f"Not run past some length. {plain(reason)}.")
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(
            pd.DataFrame(
                {
                    "method": [one.method for one in done],
                    "tokens": [one.length for one in done],
                    "time": [in_time(one.seconds) for one in done],
                    "extra memory": [in_bytes(one.extra_bytes) for one in done],
                }
            ),
            hide_index=True,
        )


def _slopes(found: Sequence[Measured]) -> dict[str, float | None]:
    return {method: slope([one for one in found if one.method == method]) for method in METHODS}


def _disturbed(slopes: Mapping[str, float | None]) -> bool:
    """Whether some exponent is one that no quiet machine gives."""
    powers = [power for power in slopes.values() if power is not None]
    return any(not LEAST_SLOPE <= power <= LARGEST_SLOPE for power in powers)


def _say_slopes(done: Sequence[Measured]) -> None:
    """The fitted exponents in a sentence."""
    slopes = _slopes(done)
    parts = [f"{method} **n^{power:.2f}**" for method, power in slopes.items() if power is not None]
    if _disturbed(slopes):
        st.warning(
            "These lines can't be read: something else kept the machine busy meanwhile. Measure "
            "again when it is quiet.",
            icon=":material/hourglass_disabled:",
        )
    elif parts:
        st.markdown(
            f"Time grows like {', '.join(parts)} over the longer half. The formula says n²: every "
            "query meets every key. Short texts lie flatter, where the fixed cost of a call shows; "
            "other programs on this machine can bend a line."
        )


def contexts(n_heads: int, d_k: int, found: Sequence[Measured]) -> None:
    """What longer and longer texts need, for one layer of these sizes."""
    disturbed = _disturbed(_slopes(found))
    ours = [one for one in found if one.method == "Blocks of rows (ours)" and not disturbed]
    rows = []
    for length in CONTEXTS:
        table = table_bytes(length, n_heads)
        seconds = seconds_at(length, ours)
        rows.append(
            {
                "tokens": f"{length:,}",
                "weights": in_count(length * length * n_heads),
                "full table": in_bytes(table),
                "which is": as_picture(table),
                "queries, keys, values": in_bytes(3 * length * n_heads * d_k * 4),
                "time here, by blocks": "–" if seconds is None else in_time(seconds),
            }
        )
    st.subheader("What a longer text needs", anchor=False)
    st.markdown(
        f"One layer with {n_heads} head{'s' * (n_heads != 1)}, numbers of 4 bytes. The table of "
        "weights grows with n²; the queries, keys and values it is made from grow with n only. "
        "That is why this app keeps those, and makes weights when you look at them."
    )
    st.dataframe(pd.DataFrame(rows), hide_index=True)
    if disturbed:
        st.caption("No times: they would follow from lines that can't be read. Measure again.")
