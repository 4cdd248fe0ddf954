"""Whether the user pressed Ctrl-C.

Some libraries turn the KeyboardInterrupt that is raised inside them into an error of their own.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

PRESSED = threading.Event()


@contextmanager
def note_ctrl_c() -> Iterator[None]:
    """Note Ctrl-C, which still raises KeyboardInterrupt; a process that ignores it goes on to."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, handle_ctrl_c)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def handle_ctrl_c(number: int, frame: FrameType | None) -> None:
    """Note the signal and raise KeyboardInterrupt."""
    PRESSED.set()
    raise KeyboardInterrupt


def is_interruption(error: BaseException) -> bool:
    """Return whether an error comes from Ctrl-C."""
    return isinstance(error, KeyboardInterrupt) or PRESSED.is_set()
