"""Work on all cores of this machine at once: a thread for each, with single-threaded operations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()
WORKER = "attention"  # how the names of the pool's threads begin


def workers() -> ThreadPoolExecutor:
    """One thread for each core, each with single-threaded operations.

    Threads inside many small operations meet at barriers, and stall when cores are busy.
    """
    global _pool
    with _pool_lock:
        if _pool is None:
            threads = torch.get_num_threads()
            _pool = ThreadPoolExecutor(threads, WORKER, torch.set_num_threads, (1,))
            started = threading.Barrier(threads + 1)
            for _ in range(threads):
                _pool.submit(started.wait)
            started.wait()
            # A worker's setting reaches the shared maths library: set the caller's own again.
            torch.set_num_threads(threads)
        return _pool


def over_cores(work: Callable[[T], None], items: Iterable[T]) -> Iterator[None]:
    """Runs the work for every item, as many at once as there are cores; yields after each.

    Who stops asking leaves the rest undone.
    """
    inference = torch.is_inference_mode_enabled()  # a setting of this thread only

    def one(item: T) -> None:
        with torch.inference_mode(inference):
            work(item)

    if threading.current_thread().name.startswith(WORKER):
        yield from map(one, items)  # a worker that waited for workers might wait for ever
    else:
        yield from workers().map(one, items)
