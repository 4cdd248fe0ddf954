"""How long the measurements took, over all runs that made them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunTime:
    """Wall time of measurements, and on how many processes they ran at once."""

    seconds: float
    processes: int
    measured: int  # measurements that ended; a killed run does not count those it made

    def add(self, earlier: RunTime | None) -> RunTime:
        """Return the time of this run and of earlier ones that it continues."""
        if earlier is None:
            return self
        return RunTime(
            self.seconds + earlier.seconds,
            max(self.processes, earlier.processes),
            self.measured + earlier.measured,
        )


def read_run_time(path: Path) -> RunTime | None:
    """Return the time in a file, or None if there is none."""
    if not path.exists():
        return None
    return RunTime(**json.loads(path.read_text(encoding="utf-8")))


def write_run_time(path: Path, time: RunTime) -> None:
    """Write a time; the file appears when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(json.dumps(asdict(time)) + "\n", encoding="utf-8")
    partial.replace(path)


def update_run_time(path: Path, time: RunTime, total: int) -> RunTime | None:
    """Add a run to the time of those that it continues; a run of everything starts anew."""
    if not time.measured:
        return read_run_time(path)
    known = time if time.measured == total else time.add(read_run_time(path))
    write_run_time(path, known)
    return known
