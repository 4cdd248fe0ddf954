"""Run two sides alternately in rounds; report the ratio of each round and the median ratio.

Seconds depend on the machine and its load. Both sides of a round run under the same load, so their
ratio is comparable.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


def do_nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True)
class Side:
    """One of the two things to be timed."""

    label: str
    work: Callable[[], object]
    amount: int = 1  # work of one call, in the unit of the comparison
    prepare: Callable[[], object] = do_nothing  # before each call, not measured


@dataclass(frozen=True)
class Figure:
    """A figure other than time, with its own limit."""

    label: str
    value: float
    at_most: float | None = None

    @property
    def is_within_limit(self) -> bool:
        return self.at_most is None or self.value <= self.at_most

    def __str__(self) -> str:
        limit = "" if self.at_most is None else f", at most {self.at_most:,.4g}"
        return (
            f"{self.label}: {self.value:,.4g}{limit}{'' if self.is_within_limit else ' (missed)'}."
        )


@dataclass(frozen=True)
class Comparison:
    """Two sides and their targets.

    ``at_least``: how many times as fast as the peer; ``at_most``: how many times as long.
    """

    name: str
    ours: Side
    peer: Side
    unit: str = "runs"
    at_least: float | None = None
    at_most: float | None = None
    is_speed: bool = False  # the ratio is "times as fast" instead of "times as long"
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Times:
    """Measured seconds of one side, one entry for each round."""

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
    """A comparison with its measured times."""

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
        """Whether all targets are met; None without a target."""
        comparison = self.comparison
        limited_figures = [figure for figure in comparison.figures if figure.at_most is not None]
        if comparison.at_least is None and comparison.at_most is None and not limited_figures:
            return None
        low, high = comparison.at_least, comparison.at_most
        in_time = (low is None or self.ratio >= low) and (high is None or self.ratio <= high)
        return in_time and all(figure.is_within_limit for figure in limited_figures)

    def as_dict(self) -> dict[str, Any]:
        comparison = self.comparison
        return {
            "name": comparison.name,
            "unit": comparison.unit,
            "ours": {**asdict(self.ours), "median": self.ours.median},
            "peer": {**asdict(self.peer), "median": self.peer.median},
            "ratio": {
                "says": "times as fast" if comparison.is_speed else "times as long",
                "median": self.ratio,
                "low": min(self.ratios),
                "high": max(self.ratios),
                "rounds": self.ratios,
            },
            "target": {"at_least": comparison.at_least, "at_most": comparison.at_most},
            "met": self.met,
            "figures": [asdict(figure) for figure in comparison.figures],
            "notes": list(comparison.notes),
        }


def log(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def measure(comparison: Comparison, rounds: int) -> Result:
    """Run all rounds; the first one warms both sides up and is not counted."""
    sides = (comparison.ours, comparison.peer)
    ours, peer = (Times(side.label, side.amount, [], []) for side in sides)
    for number in range(rounds + 1):
        log(f"{comparison.name}: {f'round {number} of {rounds}' if number else 'warming up'}")
        for side, times in zip(sides, (ours, peer), strict=True):
            wall, cpu = time_side(side)
            if number:
                times.wall.append(wall)
                times.cpu.append(cpu)
    return Result(comparison, ours, peer)


def time_side(side: Side) -> tuple[float, float]:
    """Return wall and CPU seconds of one call."""
    side.prepare()
    wall, cpu = time.perf_counter(), cpu_seconds()
    side.work()
    return time.perf_counter() - wall, cpu_seconds() - cpu


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of children that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
