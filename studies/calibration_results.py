"""The results of studies/audit_calibration.py: one line of JSON for each audit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.release_kinds.kinds import Kind
from tests.support.unsafe_releases import SAFE, UNSAFE

KINDS: dict[str, Kind] = {**UNSAFE, **SAFE}


@dataclass(frozen=True)
class Case:
    """One audit: a release of a table, and how many records its attacker knows."""

    table: str
    kind: str
    n: int
    seed: int
    known: int


@dataclass(frozen=True)
class Result:
    """The verdict of one audit, and whether an unsafe release was proved to be unsafe."""

    case: Case
    verdict: str  # PASS, REVIEW, FAIL, or ERROR if the tables were not accepted
    checks: Mapping[str, str] = field(default_factory=dict)  # that did not pass: their outcome
    proof: tuple[float, float, float] | None = None  # value, baseline, limit
    seconds: float = 0.0

    @property
    def is_proved(self) -> bool:
        return self.proof is not None and self.proof[0] - self.proof[1] >= 2 * self.proof[2]


def read_results(path: Path) -> list[Result]:
    """Return the results of a file; a last line that was cut off is ignored."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        proof = entry["proof"]
        found.append(
            Result(
                Case(**entry["case"]),
                entry["verdict"],
                entry["checks"],
                None if proof is None else tuple(proof),
                entry["seconds"],
            )
        )
    return found
