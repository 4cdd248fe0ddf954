"""The timetable of a command: which step runs, and how long the rest takes."""

from __future__ import annotations

import pytest

from ppdm.cli import progress
from ppdm.cli.progress import Timetable, format_clock, format_remaining
from tasks.progress import ProgressEvent, Step

STEPS = (Step.READ, Step.ATTACK, Step.PUBLISH)


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def start(table: Timetable, step: Step) -> None:
    table.record(ProgressEvent(step.label, step=step))


def test_timetable_remaining_follows_share_and_later_steps(clock: Clock) -> None:
    table = Timetable(STEPS, started=clock.now)
    start(table, Step.ATTACK)
    table.record(ProgressEvent("x", share=0.0, seconds=50.0))
    later = Step.PUBLISH.seconds
    assert table.estimate_remaining(clock.now) == pytest.approx(50 + later)
    clock.now += 40  # half of the work took 40 s
    table.record(ProgressEvent("y", share=0.5))
    assert table.estimate_remaining(clock.now) == pytest.approx(0.5 * 45 / 0.6 + later)
    clock.now += 1000  # longer than expected
    assert table.estimate_remaining(clock.now) == later


def test_timetable_second_release_starts_again_after_the_common_step(clock: Clock) -> None:
    table = Timetable(STEPS, started=clock.now)
    for step in (*STEPS, Step.ATTACK):
        clock.now += 1
        start(table, step)
    assert [each.step for each in table.times] == [Step.READ, Step.ATTACK]
    assert table.number(Step.ATTACK) == "2/3" and table.times[0].ended is not None


def test_timetable_news_without_step_or_heading_no_estimate(clock: Clock) -> None:
    table = Timetable((), started=clock.now)
    assert table.record(ProgressEvent("part 1", is_heading=True)) is None
    table.record(ProgressEvent("waiting for a lock"))
    assert (table.heading, table.times[-1].text) == ("part 1", "waiting for a lock")
    assert table.estimate_remaining(clock.now) is None


@pytest.mark.parametrize(
    ("seconds", "clock_text", "words"),
    [
        (0.2, "0:00", "almost done"),
        (61, "1:01", "about 61 s left"),
        (600, "10:00", "about 10 min left"),
        (7_300, "2:01:40", "about 2.0 h left"),
    ],
)
def test_format_times(seconds: float, clock_text: str, words: str) -> None:
    assert (format_clock(seconds), format_remaining(seconds)) == (clock_text, words)
