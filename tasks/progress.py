"""Progress of a command: events for the console, and lines for the log of the Prefect run.

The console listens to events, not to the logger: Prefect configures logging when it is imported,
which closes every handler that exists by then.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from ppdm_core.model.shown_text import show_line

LOGGER = logging.getLogger("ppdm")
LOGGER.setLevel(logging.INFO)  # Prefect adopts the logger's records but not its level
SERVED_VARIABLE = "PPDM_SERVED"  # set by `ppdm serve` in the environment of its releases


class Step(Enum):
    """A step that takes noticeable time.

    ``seconds`` is the processor time that it takes in `ppdm demo`, for a first estimate of what
    remains.
    """

    label: str
    seconds: float

    def __init__(self, label: str, seconds: float) -> None:
        self.label, self.seconds = label, seconds

    START = "start the libraries and servers", 13.0
    READ = "read the source", 1.0
    SUMMARIZE = "summarize its columns", 1.0
    VALIDATE = "validate the table", 2.0
    PERTURB = "perturb the table", 1.0
    DRAW = "draw copies to attack", 1.0
    SELF_TEST = "test the attacks on planted leaks", 8.0
    ATTACK = "attack the copies", 25.0
    POLICY_TEST = "test the policy on bad releases", 2.0
    TUNE = "try settings", 60.0
    REPRODUCE = "measure the claims", 1200.0
    JUDGE = "judge", 1.0
    PUBLISH = "publish", 1.0
    LOG = "log to Prefect and MLflow", 3.0
    JOIN = "exchange the roll with all parties", 5.0
    AGREE = "agree on a common fit", 5.0
    SEND = "send the part of this site", 1.0
    WAIT = "wait for the other parties", 60.0
    POOL = "put the rows of all sites together", 2.0


@dataclass(frozen=True)
class ProgressEvent:
    """A step that starts, or news of the current step."""

    text: str
    step: Step | None = None  # None: the current step goes on
    share: float | None = None  # part of the step that is done, if it is known
    seconds: float | None = None  # how long the step is expected to take, if there is an estimate
    is_heading: bool = False  # the text names what all following steps belong to


LISTENERS: list[Callable[[ProgressEvent], None]] = []  # the console of this process, if it has one


def start_step(step: Step) -> None:
    """Report that a step starts."""
    publish_event(ProgressEvent(step.label, step=step))


def log_heading(text: str) -> None:
    """Report what the following steps belong to, where a command does several things."""
    publish_event(ProgressEvent(show_line(text), is_heading=True))


def log_progress(text: str, share: float | None = None, seconds: float | None = None) -> None:
    """Report news of the current step; ``share`` is the part of it that is done."""
    publish_event(ProgressEvent(show_line(text), share=share, seconds=seconds))


def publish_event(event: ProgressEvent) -> None:
    """Send an event to the console and to the log."""
    LOGGER.info(event.text)
    for listener in LISTENERS:
        listener(event)


def print_served_outcome(message: str) -> None:
    """Print one line with the time if `ppdm serve` runs this release."""
    if os.environ.get(SERVED_VARIABLE):
        line = f"{datetime.now():%Y-%m-%d %H:%M}  {show_line(message)}"
        print(line, file=sys.stderr, flush=True)
