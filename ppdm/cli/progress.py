"""Progress on standard error: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def show_progress(live: bool = True) -> Iterator[None]:
    """Show the progress log on standard error; ``live`` allows a live line on a terminal."""
    logger = logging.getLogger("ppdm")
    handler: logging.Handler = LiveLine() if live and sys.stderr.isatty() else PlainLines()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


class PlainLines(logging.Handler):
    """One line for each step, with the seconds since the start."""

    def __init__(self) -> None:
        super().__init__()
        self.start = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        seconds = time.monotonic() - self.start
        print(f"{seconds:6.1f} s  {record.getMessage()}", file=sys.stderr, flush=True)


class LiveLine(logging.Handler):
    """A line with the current step, its bar, and the time since the start."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        step = TextColumn("{task.description}", markup=False)  # a name may hold brackets
        columns = (BarColumn(bar_width=24), step, TimeElapsedColumn())
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self.line = self.progress.add_task("", total=None)
        self.progress.start()

    def emit(self, record: logging.LogRecord) -> None:
        share = getattr(record, "share", None)  # None: unknown, the bar pulses
        total = None if share is None else 1.0
        step = record.getMessage()
        self.progress.update(self.line, description=step, total=total, completed=share or 0.0)

    def close(self) -> None:
        self.progress.stop()
        super().close()
