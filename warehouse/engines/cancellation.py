"""Whether anybody waits for the message that a worker runs, for steps that start processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

POLL_SECONDS = 0.5


def is_always_wanted() -> bool:
    """Return True: an engine without another answer runs messages in processes of its own."""
    return True


# Whether the message of this thread is still wanted; an engine sets it.
IS_WANTED: ContextVar[Callable[[], bool]] = ContextVar("IS_WANTED", default=is_always_wanted)


@contextmanager
def end_if_cancelled(end: Callable[[], None]) -> Iterator[None]:
    """Call ``end`` as long as nobody waits for the message that this thread runs.

    Its client was killed or interrupted, or lost the scheduler.
    """
    is_wanted, is_done = IS_WANTED.get(), threading.Event()

    def watch() -> None:
        while not is_done.wait(POLL_SECONDS):
            if not is_wanted():
                end()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_done.set()
        watcher.join()
