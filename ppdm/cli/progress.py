"""Progress on standard error: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BAR = 24  # characters


@contextmanager
def shown_progress(live: bool = True) -> Iterator[None]:
    logger = logging.getLogger("ppdm")
    handler: logging.Handler = Live() if live and sys.stderr.isatty() else Lines()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.start = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        seconds = time.monotonic() - self.start
        print(f"{seconds:6.1f} s  {record.getMessage()}", file=sys.stderr, flush=True)


class Live(logging.Handler):
    """A spinner with the current step and the time since the start; a bar where it has one."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        words = TextColumn("{task.fields[bar]}{task.description}")
        columns = (SpinnerColumn(), words, TimeElapsedColumn())
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self.line = self.progress.add_task("", total=None, bar="")
        self.progress.start()

    def emit(self, record: logging.LogRecord) -> None:
        bar = bar_of(getattr(record, "share", None))
        self.progress.update(self.line, description=record.getMessage(), bar=bar)

    def close(self) -> None:
        self.progress.stop()
        super().close()


def bar_of(share: float | None) -> str:
    if share is None:
        return ""
    done = round(share * BAR)
    return "━" * done + "·" * (BAR - done) + "  "
