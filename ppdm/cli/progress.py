"""Progress on standard error: live steps on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tasks.progress import LISTENERS, ProgressEvent, Step

if TYPE_CHECKING:
    from rich.console import RenderableType

# The steps of each command, in order; a step that is not needed is passed over.
EXCHANGE_STEPS = (Step.JOIN, Step.AGREE, Step.SEND, Step.WAIT, Step.POOL)
RELEASE_STEPS = tuple(
    step
    for step in Step
    if step not in (Step.SUMMARIZE, Step.TUNE, Step.REPRODUCE, *EXCHANGE_STEPS)
)
SITE_STEPS = (
    Step.START,
    Step.JOIN,
    Step.READ,
    Step.VALIDATE,
    Step.AGREE,
    Step.PERTURB,
    Step.DRAW,
    Step.SELF_TEST,
    Step.ATTACK,
    Step.POLICY_TEST,
    Step.JUDGE,
    Step.PUBLISH,
    Step.LOG,
    Step.SEND,
    Step.WAIT,
)
CENTRE_STEPS = (
    Step.START,
    Step.JOIN,
    Step.AGREE,
    Step.WAIT,
    Step.POOL,
    Step.PUBLISH,
    Step.LOG,
)
TUNE_STEPS = (Step.START, Step.READ, Step.VALIDATE, Step.TUNE, Step.POLICY_TEST, Step.LOG)
REPRODUCE_STEPS = (Step.START, Step.REPRODUCE, Step.LOG)
DECIDE_STEPS = (Step.START, Step.PUBLISH, Step.LOG)
CHECK_STEPS = (Step.READ, Step.VALIDATE, Step.POLICY_TEST)
INIT_STEPS = (Step.READ, Step.SUMMARIZE)
AUDIT_STEPS = (Step.READ, Step.ATTACK)
SELF_TEST_STEPS = (Step.SELF_TEST,)
SERVER_STEPS = (Step.START,)

ESTIMATE_WEIGHT = 0.1  # of the expected time of a step, as a part of its measured time
REFRESHES_PER_SECOND = 8
BAR_WIDTH = 16


@contextmanager
def show_progress(steps: Sequence[Step] = (), *, live: bool = True) -> Iterator[None]:
    """Show what happens inside on standard error; ``live`` allows a live display on a terminal.

    The first step is shown at once on a terminal, before slow imports. Without steps, nothing is
    shown until there is news.
    """
    display: PlainLines | LiveSteps
    is_live = live and sys.stderr.isatty()
    display = LiveSteps(Timetable(steps)) if is_live else PlainLines(Timetable(steps))
    LISTENERS.append(display.show)
    if steps and isinstance(display, LiveSteps):
        display.show(ProgressEvent(steps[0].label, step=steps[0]))
    try:
        yield
    finally:
        LISTENERS.remove(display.show)
        display.close()


@dataclass
class StepTime:
    """One step that has started, with what is known about its progress."""

    step: Step | None
    started: float
    ended: float | None = None
    text: str = ""  # the latest news
    share: float | None = None
    seconds: float | None = None  # expected in total
    measured_from: float | None = None  # when the share became known
    expected_end: float | None = None

    def estimate_end(self, now: float) -> None:
        """Set the expected end from what is done, and from the estimate before it started."""
        expected = self.seconds or (self.step.seconds if self.step else 0.0)
        if self.share is None:
            self.expected_end = self.started + expected
        else:
            self.measured_from = self.measured_from or now
            spent = now - self.measured_from + ESTIMATE_WEIGHT * expected
            total = spent / (self.share + ESTIMATE_WEIGHT)
            self.expected_end = now + (1.0 - self.share) * total


@dataclass
class Timetable:
    """The steps of a command: those that ended, the current one, and how long the rest takes."""

    steps: Sequence[Step]
    started: float = field(default_factory=time.monotonic)
    times: list[StepTime] = field(default_factory=list)
    heading: str = ""

    def record(self, event: ProgressEvent) -> StepTime | None:
        """Record an event, and return the step that it belongs to; a heading belongs to none."""
        now = time.monotonic()
        if event.is_heading:
            self.heading = event.text
            return None
        if event.step is not None and not (self.times and self.times[-1].step == event.step):
            self.start(event.step, now)
        elif not self.times:
            self.times.append(StepTime(None, now))
        current = self.times[-1]
        current.text = event.text if event.step is None else ""
        current.share = current.share if event.share is None else event.share
        current.seconds = current.seconds if event.seconds is None else event.seconds
        current.estimate_end(now)
        return current

    def start(self, step: Step, now: float) -> None:
        """End the current step and start another; an earlier one begins another release."""
        if self.times:
            self.times[-1].ended = now
        if step in self.steps:
            later = self.steps[self.steps.index(step) :]
            self.times = [each for each in self.times if each.step not in later]
        self.times.append(StepTime(step, now))

    def number(self, step: Step | None) -> str:
        """Return the place of a step: "3/11"."""
        if step is None or step not in self.steps:
            return ""
        return f"{self.steps.index(step) + 1}/{len(self.steps)}"

    def estimate_remaining(self, now: float) -> float | None:
        """Return the expected seconds until the end, or None if the steps are not known."""
        current = self.times[-1] if self.times else None
        if current is None or current.step not in self.steps or current.expected_end is None:
            return None
        later = self.steps[self.steps.index(current.step) + 1 :]
        return max(0.0, current.expected_end - now) + sum(step.seconds for step in later)


class PlainLines:
    """One line for each event, with the seconds since the start."""

    def __init__(self, timetable: Timetable) -> None:
        self.timetable = timetable

    def show(self, event: ProgressEvent) -> None:
        now = time.monotonic()
        current = self.timetable.record(event)
        number, left = "", None
        if current is not None:
            number = self.timetable.number(current.step)
            left = self.timetable.estimate_remaining(now) if current.share is not None else None
        words = [f"{now - self.timetable.started:6.1f} s ", number, event.text]
        words.append("" if left is None else f"({format_remaining(left)})")
        print(" ".join(filter(None, words)), file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class LiveSteps:
    """The steps with their times, the news of the current one, and what remains."""

    def __init__(self, timetable: Timetable) -> None:
        from rich.console import Console
        from rich.live import Live

        self.timetable = timetable
        self.console = Console(stderr=True)
        self.live = Live(
            console=self.console,
            get_renderable=self.render,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
        )

    def show(self, event: ProgressEvent) -> None:
        self.timetable.record(event)
        if not self.live.is_started:
            self.live.start()
        elif event.step is not None:
            self.live.refresh()  # a short step is shown, too

    def close(self) -> None:
        self.live.stop()

    def render(self) -> RenderableType:
        """Return the display at this moment."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        now = time.monotonic()
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=1)
        table.add_column(justify="right", no_wrap=True)
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        table.add_column(width=BAR_WIDTH)
        table.add_column(justify="right", no_wrap=True)
        for each in list(self.timetable.times):
            table.add_row(*self.render_step(each, now))
            if each.ended is None and each.text and each.step:
                table.add_row("", "", Text(each.text, style="dim"))
        left = self.timetable.estimate_remaining(now)
        total = f"  {format_clock(now - self.timetable.started)} in all"
        summary = total if left is None else f"{total}, {format_remaining(left)}"
        heading = [Text(self.timetable.heading, style="bold")] if self.timetable.heading else []
        return Group(*heading, table, Text(f"{summary}; Ctrl-C stops", style="dim"))

    def render_step(self, each: StepTime, now: float) -> tuple[RenderableType, ...]:
        """Return the cells of one step: mark, number, name, bar and time."""
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        is_ascii = self.console.options.ascii_only
        elapsed = format_clock((each.ended or now) - each.started)
        name = Text(each.step.label if each.step else each.text)
        number = self.timetable.number(each.step)
        if each.ended is not None:
            mark = Text("v" if is_ascii else "✓", style="green")
            return mark, Text(number, style="dim"), name, "", Text(elapsed, style="dim")
        share = each.share
        bar = ProgressBar(
            total=None if share is None else 1.0,
            completed=share or 0.0,
            width=BAR_WIDTH,
            animation_time=now,
        )
        return Text(">" if is_ascii else "▸", style="bold"), number, name, bar, elapsed


def format_clock(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def format_remaining(seconds: float) -> str:
    """Return how long something still takes, in words."""
    if seconds < 1:
        return "almost done"
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    minutes = seconds / 60
    return f"about {minutes:.0f} min left" if minutes < 90 else f"about {minutes / 60:.1f} h left"
