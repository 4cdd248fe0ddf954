"""Attack processes that measure several settings at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TypeVar

from ppdm_core.audit.runner import Attempt
from ppdm_core.model.policy import Policy
from tasks.audit.attack_process import AttackProcess
from tasks.audit.self_test import NoTableJob
from tasks.tune.trial_question import Measured, TrialQuestion

K = TypeVar("K")
MAX_PROCESSES = 8


class Workers:
    """Some attack processes; each answers one question at a time."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or count_processes()
        self.stack = ExitStack()
        self.idle: SimpleQueue[AttackProcess] = SimpleQueue()

    def __enter__(self) -> Workers:
        job = NoTableJob(Policy(required=(), limits={}), b"")
        for _ in range(self.count):
            self.idle.put(self.stack.enter_context(AttackProcess(job)))
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def ask_all(
        self,
        items: Sequence[K],
        make_question: Callable[[K], TrialQuestion],
        limit: float,
    ) -> Iterator[tuple[K, Attempt[Measured]]]:
        """Yield items with their answers as they come; each gets at most ``limit`` seconds."""

        def ask(item: K) -> Attempt[Measured]:
            process = self.idle.get()
            try:
                return process.ask(make_question(item), limit)
            finally:
                self.idle.put(process)

        pool = ThreadPoolExecutor(self.count)
        try:
            pending = {pool.submit(ask, item): item for item in items}
            for done in as_completed(pending):
                yield pending[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self.stack.close()  # an interrupted tune does not wait for its attacks
            raise
        finally:
            pool.shutdown()


def count_processes() -> int:
    """Return how many processes this one may use at once."""
    return max(1, min(MAX_PROCESSES, len(os.sched_getaffinity(0))))
