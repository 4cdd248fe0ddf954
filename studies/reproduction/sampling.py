"""The random tenth of the claims that `--check` measures again, and the committed verdicts."""

from __future__ import annotations

import math
import secrets
from pathlib import Path

from studies.reproduction.decision import Decided, Finding
from studies.reproduction.registry import FOLDER, Claim

COMMITTED = FOLDER / "measured.parquet"
COMMITTED_TIME = FOLDER / "run_time.json"


def choose_tenth(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """Return a random tenth of the claims, at least one, in their order."""
    count = max(1, math.ceil(len(claims) / 10))
    chosen = set(secrets.SystemRandom().sample(range(len(claims)), count))
    return tuple(claim for place, claim in enumerate(claims) if place in chosen)


def read_committed_verdicts(path: Path = COMMITTED) -> dict[str, str]:
    """Return the verdicts of the committed run by claim; nothing if there is none."""
    import pyarrow.parquet as pq

    if not path.exists():
        return {}
    table = pq.read_table(path, columns=["claim", "verdict"]).to_pydict()
    return dict(zip(table["claim"], table["verdict"], strict=True))


def read_committed_statements(path: Path = COMMITTED) -> dict[str, list[Decided]]:
    """Return the intervals of the committed run by claim; nothing if there is none."""
    import pyarrow.parquet as pq

    found: dict[str, list[Decided]] = {}
    for row in pq.read_table(path).to_pylist() if path.exists() else []:
        decided = Decided(
            quantity=row["quantity"],
            value=row["value"],
            low=row["low"],
            high=row["high"],
            draws=row["draws"],
            claimed=(row["claimed_low"], row["claimed_high"]),
            is_true=row["is_true"],
        )
        found.setdefault(row["claim"], []).append(decided)
    return found


def find_changed(findings: tuple[Finding, ...], path: Path = COMMITTED) -> tuple[str, ...]:
    """Return the claims whose verdict is not that of the committed run."""
    before = read_committed_verdicts(path)
    return tuple(
        each.claim.id
        for each in findings
        if before.get(each.claim.id, str(each.verdict)) != str(each.verdict)
    )
