"""Processes on this machine, where a table is large enough that they pay."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

from warehouse.engines._engine import Engine
from warehouse.engines._messages import run_message

P = TypeVar("P")
S = TypeVar("S")
MIN_BLOCKS = 128  # of a table; the start of processes takes longer than they save on a smaller one
MAX_PROCESSES = 8
# A worker for each core: threads of linear algebra would only wait for each other.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Local(Engine):
    """Processes on this machine; a small table is worked on in this process."""

    name = "local"
    pool: ProcessPoolExecutor | None = None

    @property
    def workers(self) -> int:
        return self.settings.workers or min(MAX_PROCESSES, len(os.sched_getaffinity(0)))

    def check_folder(self, folder: Path) -> None:
        """Accept every folder: all processes of this machine can read it."""

    def choose_part_blocks(self, blocks: int) -> int:
        if self.settings.part_blocks is None and (self.workers == 1 or blocks < MIN_BLOCKS):
            return max(1, blocks)
        return super().choose_part_blocks(blocks)

    def run(self, step: Callable[[P], S], parts: Sequence[P]) -> Generator[S, None, None]:
        if self.workers == 1 or len(parts) == 1:
            yield from map(step, parts)
        else:
            yield from super().run(step, parts)

    def submit(self, step: bytes, part: bytes) -> Future[bytes]:
        if self.pool is None:
            self.pool = start_pool(self.workers)
        try:
            return self.pool.submit(run_message, step, part)
        except BrokenProcessPool:  # it broke after the last look at it
            self.stop()
            return self.submit(step, part)

    def wait(self, handles: Sequence[Future[bytes]]) -> list[tuple[Future[bytes], bytes | None]]:
        finished = wait(handles, return_when=FIRST_COMPLETED).done
        found: list[tuple[Future[bytes], bytes | None]] = []
        for handle in finished:
            try:
                found.append((handle, handle.result()))
            except BrokenProcessPool:  # one process died, and with it the pool
                found.append((handle, None))
        if any(data is None for _, data in found):
            self.stop()
        return found

    def stop(self) -> None:
        """End all processes; the next message starts new ones."""
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)
            self.pool = None

    def __exit__(self, *error: Any) -> None:
        self.stop()


def start_pool(count: int) -> ProcessPoolExecutor:
    """Start processes, each with one thread for linear algebra."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # a child reads them when it starts
    try:
        pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
        # Processes start with the first messages.
        for each in [pool.submit(os.getpid) for _ in range(count)]:
            each.result()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return pool
