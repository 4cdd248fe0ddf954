"""Processes that measure, each with one thread for linear algebra."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def start_workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes; what waits is given up if the block ends early."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # a child reads them when it starts
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        count, mp_context=context, initializer=watch_parent, initargs=(os.getpid(),)
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def watch_parent(parent: int) -> None:
    """End this process when its parent is gone: a killed parent cannot end it."""
    threading.Thread(target=exit_when_parent_ends, args=(parent,), daemon=True).start()


def exit_when_parent_ends(parent: int) -> None:
    """Wait for the end of the parent; results are complete files or none."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def count_processes() -> int:
    """Return how many processes this one may use at once."""
    return max(1, len(os.sched_getaffinity(0)))
