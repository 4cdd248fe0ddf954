"""Progress of a release: log lines for the console and for the log of the Prefect run."""

from __future__ import annotations

import logging
import os
import sys
from datetime import datetime

from ppdm_core.model.shown_text import show_line

LOGGER = logging.getLogger("ppdm")
LOGGER.setLevel(logging.INFO)  # Prefect adopts the logger's records but not its level
SERVED_VARIABLE = "PPDM_SERVED"  # set by `ppdm serve` in the environment of its releases


def log_progress(text: str, share: float | None = None) -> None:
    """Log one line of progress; ``share`` is the part of the work that is done, if known."""
    LOGGER.info(show_line(text), extra={"share": share})


def print_served_outcome(message: str) -> None:
    """Print one line with the time if `ppdm serve` runs this release."""
    if os.environ.get(SERVED_VARIABLE):
        line = f"{datetime.now():%Y-%m-%d %H:%M}  {show_line(message)}"
        print(line, file=sys.stderr, flush=True)
