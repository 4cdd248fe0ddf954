"""Two sides in turn, round after round; the ratio of each round, and their median.

Seconds depend on the machine and on who else uses it. Both sides of a round meet the same load,
so that their ratio says something.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Side:
    label: str
    work: Callable[[], object]
    amount: int = 1  # what one call gets done, in the comparison's unit
    prepare: Callable[[], object] = nothing  # before each call, not measured


@dataclass(frozen=True)
class Figure:
    """Something else than time, which has a limit of its own."""

    label: str
    value: float
    at_most: float | None = None

    @property
    def is_kept(self) -> bool:
        return self.at_most is None or self.value <= self.at_most

    def __str__(self) -> str:
        limit = "" if self.at_most is None else f", at most {self.at_most:,.4g}"
        return f"{self.label}: {self.value:,.4g}{limit}{'' if self.is_kept else ' (missed)'}."


@dataclass(frozen=True)
class Comparison:
    """``at_least``: so many times as fast as the peer; ``at_most``: so many times as long."""

    name: str
    ours: Side
    peer: Side
    unit: str = "runs"
    at_least: float | None = None
    at_most: float | None = None
    is_speed: bool = False  # the ratio says how many times as fast, not how many times as long
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Times:
    """One entry for each round."""

    label: str
    amount: int
    wall: list[float]
    cpu: list[float]  # of this process and the children it waited for

    @property
    def median(self) -> float:
        """Seconds for one unit of work."""
        return statistics.median(self.wall) / self.amount


@dataclass(frozen=True)
class Result:
    comparison: Comparison
    ours: Times
    peer: Times

    @property
    def ratios(self) -> list[float]:
        pairs = zip(self.ours.wall, self.peer.wall, strict=True)
        longer = [(o / self.ours.amount) / (p / self.peer.amount) for o, p in pairs]
        return [1 / ratio for ratio in longer] if self.comparison.is_speed else longer

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def met(self) -> bool | None:
        """None where no target is stated."""
        asked = self.comparison
        limited = [figure for figure in asked.figures if figure.at_most is not None]
        if asked.at_least is None and asked.at_most is None and not limited:
            return None
        low, high = asked.at_least, asked.at_most
        in_time = (low is None or self.ratio >= low) and (high is None or self.ratio <= high)
        return in_time and all(figure.is_kept for figure in limited)

    def as_dict(self) -> dict[str, Any]:
        asked = self.comparison
        return {
            "name": asked.name,
            "unit": asked.unit,
            "ours": {**asdict(self.ours), "median": self.ours.median},
            "peer": {**asdict(self.peer), "median": self.peer.median},
            "ratio": {
                "says": "times as fast" if asked.is_speed else "times as long",
                "median": self.ratio,
                "low": min(self.ratios),
                "high": max(self.ratios),
                "rounds": self.ratios,
            },
            "target": {"at_least": asked.at_least, "at_most": asked.at_most},
            "met": self.met,
            "figures": [asdict(figure) for figure in asked.figures],
            "notes": list(asked.notes),
        }


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def measure(comparison: Comparison, rounds: int) -> Result:
    """The first round warms both sides up and is not counted."""
    sides = (comparison.ours, comparison.peer)
    ours, peer = (Times(side.label, side.amount, [], []) for side in sides)
    for number in range(rounds + 1):
        say(f"{comparison.name}: {f'round {number} of {rounds}' if number else 'warming up'}")
        for side, times in zip(sides, (ours, peer), strict=True):
            wall, cpu = timed(side)
            if number:
                times.wall.append(wall)
                times.cpu.append(cpu)
    return Result(comparison, ours, peer)


def timed(side: Side) -> tuple[float, float]:
    side.prepare()
    wall, cpu = time.perf_counter(), cpu_seconds()
    side.work()
    return time.perf_counter() - wall, cpu_seconds() - cpu


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
