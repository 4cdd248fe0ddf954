"""An attack job that loads no table and never ends, for tests that kill whoever waits for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tasks.audit.attack_worker import AttackJob


@dataclass(frozen=True, eq=False)
class BlockingJob(AttackJob):
    """Writes a file in the attack process, and blocks it."""

    started: str

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 1

    @property
    def draws(self) -> int:
        return 1

    def make_auditor(self) -> None:
        Path(self.started).touch()
        time.sleep(3600)
