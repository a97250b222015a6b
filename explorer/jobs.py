"""Work beside the page: processes that train, a bounded number at once, ended when nobody looks.

A job starts a process for each of its sides and gathers what they write. It ends when it is done,
stopped or past its time, and when its owner is gone. A pool runs a bounded number of jobs, in the
order they came, and one for each owner. It can hold processes ready that have everything loaded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

Process = subprocess.Popen[str]
State = Literal["waiting", "running", "paused", "done", "stopped", "gone", "late", "failed"]
COMMAND = [sys.executable, "-m", "explorer.training_worker"]
ROOT = Path(__file__).resolve().parents[1]
TICK = 0.1  # seconds between looks at what goes on
GONE_AFTER = 3.0
"""Seconds without its owner after which a job ends: a browser may reconnect within them."""
LONGEST_PAUSE = 600.0


class Job:
    """One piece of work; made by a pool."""

    def __init__(
        self,
        requests: Sequence[dict[str, Any]],
        is_wanted: Callable[[], bool],
        longest: int | float,
    ) -> None:
        self.requests = list(requests)
        self.messages: list[list[dict[str, Any]]] = [[] for _ in requests]
        """What each side has written so far."""
        self.state: State = "waiting"
        self.seconds = 0.0
        """Time at work, without waiting and pauses."""
        self.processes: list[Process] = []
        self._is_wanted, self._longest = is_wanted, longest
        self._stopping = threading.Event()
        self._paused = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self.state not in ("waiting", "running", "paused")

    @property
    def is_paused(self) -> bool:
        """Whether it was asked to pause."""
        return self._paused.is_set()

    def pause(self) -> None:
        """Holds the work after the present step."""
        self._paused.set()
        self._tell("pause")

    def go_on(self) -> None:
        """Ends a pause."""
        self._paused.clear()
        self._tell("go")

    def stop(self) -> None:
        """Ends the work; returns at once, the processes are gone a moment later."""
        self._stopping.set()

    def wait(self, timeout: int | float) -> bool:
        """Waits until the job is over; whether it is."""
        until = time.monotonic() + timeout
        while not self.is_over and time.monotonic() < until:
            time.sleep(TICK / 4)
        return self.is_over

    def _tell(self, word: str) -> None:
        for process in self.processes:
            try:
                assert process.stdin is not None  # a pipe
                process.stdin.write(word + "\n")
                process.stdin.flush()
            except (OSError, ValueError):
                pass  # it has just ended, which the job's own thread sees

    def work(self, open_process: Callable[[], Process]) -> None:
        """Runs the processes to their end; called by the pool's thread."""
        readers: list[threading.Thread] = []
        ended: State = "failed"
        try:
            for side, request in enumerate(self.requests):
                process = open_process()
                self.processes.append(process)
                self._tell_first(process, request)
                readers.append(threading.Thread(target=self._read, args=(side,), daemon=True))
                readers[-1].start()
            if self.is_paused:  # asked for while it waited
                self._tell("pause")
            ended = self._watch(readers)
        except OSError:
            pass  # no process could be started, or one ended before it had its work
        finally:  # whatever happens, no process stays behind
            _end(self.processes, readers)
            self.state = ended

    def _tell_first(self, process: Process, request: dict[str, Any]) -> None:
        assert process.stdin is not None  # a pipe
        process.stdin.write(json.dumps(request | {"limit": self._longest + LONGEST_PAUSE}) + "\n")
        process.stdin.flush()

    def _read(self, side: int) -> None:
        pipe = self.processes[side].stdout
        assert pipe is not None
        for line in pipe:
            try:
                self.messages[side].append(json.loads(line))
            except json.JSONDecodeError:
                return  # cut off in the middle of a line: the process was ended

    def _watch(self, readers: Sequence[threading.Thread]) -> State:
        """Waits for an end, and says which it was."""
        last, paused_for = time.monotonic(), 0.0
        wanted_at = last
        while any(reader.is_alive() for reader in readers):
            self.state = "paused" if self.is_paused else "running"
            time.sleep(TICK)
            now = time.monotonic()
            if self.is_paused:
                paused_for += now - last
            else:
                self.seconds += now - last
            last = now
            if self._is_wanted():
                wanted_at = now
            if self._stopping.is_set():
                return "stopped"
            if now - wanted_at > GONE_AFTER:
                return "gone"
            if self.seconds > self._longest or paused_for > LONGEST_PAUSE:
                return "late"
        failed = any(process.wait() != 0 for process in self.processes)
        return "failed" if failed else "done"

    def wait_for(self, place: Callable[[], bool]) -> bool:
        """Waits for a place; False where the job was stopped or its owner left before."""
        wanted_at = time.monotonic()
        while not place():
            if self._is_wanted():
                wanted_at = time.monotonic()
            if self._stopping.is_set() or time.monotonic() - wanted_at > GONE_AFTER:
                self.state = "stopped" if self._stopping.is_set() else "gone"
                return False
            time.sleep(TICK)
        return True


class Pool:
    """At most `places` jobs at work; the others wait in the order they came."""

    def __init__(self, places: int, longest: int | float = 300.0) -> None:
        self.places, self.longest = places, longest
        self._lock = threading.Lock()
        self._queue: list[Job] = []
        self._owners: dict[str, Job] = {}
        self._ready: list[Process] = []

    def start(
        self, owner: str, requests: Sequence[dict[str, Any]], is_wanted: Callable[[], bool]
    ) -> Job:
        """A new job; the owner's last one is stopped. `is_wanted` is asked all the time."""
        job = Job(requests, is_wanted, self.longest)
        with self._lock:
            before = self._owners.get(owner)
            if before is not None:
                before.stop()
            self._owners[owner] = job
            self._queue.append(job)
        threading.Thread(target=self._run, args=(owner, job), daemon=True).start()
        return job

    def make_ready(self, count: int) -> None:
        """Starts processes that wait for work, so that a job begins at once."""
        with self._lock:
            self._ready = [process for process in self._ready if process.poll() is None]
            while len(self._ready) < count:
                self._ready.append(_open())

    def close(self) -> None:
        """Stops all jobs and ends the processes that wait."""
        with self._lock:
            for job in self._queue:
                job.stop()
            ready, self._ready = self._ready, []
        _end(ready, ())

    def _take(self) -> Process:
        with self._lock:
            while self._ready:
                process = self._ready.pop(0)
                if process.poll() is None:
                    return process
        return _open()

    def ahead(self, job: Job) -> int:
        """How many jobs will start before this one does."""
        with self._lock:
            place = self._queue.index(job) if job in self._queue else 0
            return max(0, place - self.places + 1)

    def _run(self, owner: str, job: Job) -> None:
        try:
            if job.wait_for(lambda: self.ahead(job) == 0):
                job.work(self._take)
        finally:
            with self._lock:
                self._queue.remove(job)
                if self._owners.get(owner) is job:
                    del self._owners[owner]


def _open() -> Process:
    return subprocess.Popen(
        COMMAND, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _end(processes: Sequence[Process], readers: Sequence[threading.Thread]) -> None:
    """Ends processes and what listens to them; nothing is left of them afterwards."""
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
    for reader in readers:
        reader.join()
    for process in processes:
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass  # a word was still on its way to a process that is gone
