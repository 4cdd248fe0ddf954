"""A measurement: an experiment on a table with parameters."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

NO_TABLE = ""  # of an experiment that generates its own numbers


@dataclass(frozen=True)
class Measurement:
    """One run of an experiment on one table; several claims may use it."""

    experiment: str
    table: str
    parameters: str  # JSON, with sorted keys
    draws: int
    is_full: bool

    @property
    def options(self) -> dict[str, Any]:
        """The parameters of the experiment."""
        found: dict[str, Any] = json.loads(self.parameters)
        return found

    @property
    def title(self) -> str:
        """Experiment and table, for a line of progress."""
        return f"{self.experiment} {self.table}".rstrip()

    def compute_digest(self, code: str) -> str:
        """Return what identifies the result, given the version of the code."""
        parts = (self.experiment, self.table, self.parameters, self.draws, self.is_full, code)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]
