"""Progress on standard error: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BAR_CHARACTERS = 24


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
    """A spinner with the current step, its bar if it has one, and the time since the start."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        step = TextColumn("{task.fields[bar]}{task.description}")
        columns = (SpinnerColumn(), step, TimeElapsedColumn())
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self.line = self.progress.add_task("", total=None, bar="")
        self.progress.start()

    def emit(self, record: logging.LogRecord) -> None:
        bar = format_bar(getattr(record, "share", None))
        self.progress.update(self.line, description=record.getMessage(), bar=bar)

    def close(self) -> None:
        self.progress.stop()
        super().close()


def format_bar(share: float | None) -> str:
    """Return a bar for the share of the work that is done, or "" if it is unknown."""
    if share is None:
        return ""
    done = round(share * BAR_CHARACTERS)
    return "━" * done + "·" * (BAR_CHARACTERS - done) + "  "
