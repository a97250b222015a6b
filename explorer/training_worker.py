"""The process that trains, apart from the page: `python -m explorer.training_worker`.

It reads one line of JSON, {"runs": [settings, …], "limit": seconds}, and writes one for each
measurement. The runs take turns, so that all advance together. After that it obeys the lines
"pause" and "go". It ends when its input closes, as it does with whoever started it, and at the
limit at the latest. It may be started long before there is work: what is slow to load is loaded
then.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import threading
from typing import Any

import numpy as np
import torch

from explorer.training import DivergedError, Measurement, Run, RunSettings

IDLE = 1800
"""Seconds to wait for work."""
NICE = 2
"""Politeness towards the server, which answers clicks; with 10 a busy machine starves it."""


def to_json(measured: Measurement) -> dict[str, Any]:
    """A measurement as JSON takes it; the maps as base64 of half-precision numbers."""
    maps = measured.maps
    kept = measured._asdict()
    kept["maps"] = [list(maps.shape), base64.b64encode(maps.tobytes()).decode("ascii")]
    return kept


def from_json(kept: dict[str, Any]) -> Measurement:
    """The measurement that `to_json` wrote."""
    shape, written = kept["maps"]
    maps = np.frombuffer(base64.b64decode(written), dtype=np.float16).reshape(shape)
    return Measurement(**{**kept, "maps": maps})


def main() -> None:
    torch.set_num_threads(1)  # no barriers: threads inside small operations stall on busy cores
    os.nice(NICE)
    signal.alarm(IDLE)  # the default action ends the process
    Run(RunSettings(n_heads=1, d_k=2, steps=1, rows=1, length=8, d_model=4)).step()
    line = sys.stdin.readline()
    if not line:
        return  # nobody came
    request = json.loads(line)
    signal.alarm(int(request["limit"]))
    may_go = threading.Event()
    may_go.set()
    threading.Thread(target=_obey, args=(may_go,), daemon=True).start()
    _work([RunSettings(**each) for each in request["runs"]], may_go)


def _obey(may_go: threading.Event) -> None:
    for line in sys.stdin:
        if line.strip() == "pause":
            may_go.clear()
        else:
            may_go.set()
    os._exit(0)  # the input closed: nobody waits for this any more


def _work(settings: list[RunSettings], may_go: threading.Event) -> None:
    """Trains all runs, from one measurement to the next in turn; one that diverges drops out."""
    runs = {number: Run(each) for number, each in enumerate(settings)}
    for stop in settings[0].measured_at:
        for number, run in list(runs.items()):
            try:
                while run.steps_done < stop:
                    may_go.wait()
                    run.step()
                _say({"run": number, "measured": to_json(run.measure())})
            except DivergedError as error:
                del runs[number]
                _say({"run": number, "ended": str(error)})


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
