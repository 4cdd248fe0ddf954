"""A shared folder that is gone when a common release begins, and full when rows are sent."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.forkserver import Result
from tests.support.small_disk import fill_disk
from warehouse.messages.roll import ROLL_NAME

GONE, BEGUN, FULL, OVER = range(4)


class SharedTrouble:
    """What goes wrong with the shared folder, and what each party said about it."""

    def __init__(self, shared: Path, parties: int, sites: int) -> None:
        self.shared, self.away = shared, shared.with_name("away")
        self.counts = {GONE: parties, FULL: sites}  # how many parties stop each time
        self.phase = GONE
        self.said: dict[int, dict[str, str]] = {GONE: {}, FULL: {}}
        self.left: list[str] = []  # unfinished files in the shared folder while it was full
        shared.rename(self.away)

    @property
    def holds(self) -> bool:
        """Whether a party that stopped has to wait before it runs again."""
        return self.phase in self.counts

    def watch(self) -> None:
        """Fill the disk as soon as all parties have agreed on the roll."""
        if self.phase == BEGUN and list(self.shared.glob(f"*/*/{ROLL_NAME}")):
            self.ballast = fill_disk(self.shared.parent, 0)
            self.phase = FULL

    def record(self, name: str, result: Result) -> None:
        """Note what a party said; end the trouble when all that it stops have stopped."""
        said = self.said[self.phase]
        said[name] = json.loads(result.stdout)["error"]["message"]
        if len(said) < self.counts[self.phase]:
            return
        if self.phase == GONE:
            self.away.rename(self.shared)
            self.phase = BEGUN
        else:
            self.left = [path.name for path in self.shared.rglob("*.tmp")]
            self.ballast.unlink()
            self.phase = OVER
