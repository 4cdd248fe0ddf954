"""Whether the user pressed Ctrl-C.

Some libraries turn the KeyboardInterrupt that is raised inside them into an error of their own, or
lose it, for example while they are imported. Python itself loses one that is raised while an
object is deleted, and prints it. A lost one is raised again at the next news of the command's
progress.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tasks.progress import LISTENERS, ProgressEvent

PRESSED = threading.Event()


@contextmanager
def note_ctrl_c() -> Iterator[None]:
    """Note Ctrl-C, which still raises KeyboardInterrupt; a process that ignores it goes on to."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    print_ignored = sys.unraisablehook

    def print_other_ignored(ignored: sys.UnraisableHookArgs) -> None:
        """Print an exception that Python ignores, unless it is the noted Ctrl-C."""
        if not (PRESSED.is_set() and issubclass(ignored.exc_type, KeyboardInterrupt)):
            print_ignored(ignored)

    sys.unraisablehook = print_other_ignored
    signal.signal(signal.SIGINT, handle_ctrl_c)
    LISTENERS.append(raise_lost_interrupt)
    try:
        yield
    finally:
        LISTENERS.remove(raise_lost_interrupt)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = print_ignored


def handle_ctrl_c(number: int, frame: FrameType | None) -> None:
    """Note the signal and raise KeyboardInterrupt."""
    PRESSED.set()
    raise KeyboardInterrupt


def raise_lost_interrupt(event: ProgressEvent) -> None:
    """Raise KeyboardInterrupt if one was lost: the command goes on, and handles no error."""
    is_main = threading.current_thread() is threading.main_thread()
    if PRESSED.is_set() and is_main and sys.exc_info()[0] is None:
        raise KeyboardInterrupt


def is_interruption(error: BaseException) -> bool:
    """Return whether an error comes from Ctrl-C."""
    return isinstance(error, KeyboardInterrupt) or PRESSED.is_set()
