"""All releases of a dataset, with their verdicts and some of their scores, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from warehouse.integrity.seals import read_rows
from warehouse.stages import Stage
from warehouse.tables import EVENTS, LEDGER_ENTRIES, RUNS, SCORES, VERDICTS

if TYPE_CHECKING:
    import duckdb

RELEASES = f"""
select r.release_id, r.started, r.stage, v.outcome, e.method
from {RUNS} r
left join {VERDICTS} v using (release_id)
left join {LEDGER_ENTRIES} e using (release_id)
where r.dataset = ?
order by r.started, r.number
"""
VALUES = f"""
select s.release_id, s.name, s.value
from {SCORES} s join {RUNS} r using (release_id)
where r.dataset = ? and list_contains(?, s.name)
"""


@dataclass(frozen=True)
class PastRelease:
    """A release of a dataset, published or not."""

    release_id: str
    started: datetime
    stage: Stage
    outcome: str | None  # of the verdict
    method: str | None  # None: it was not judged
    scores: dict[str, float] = field(default_factory=dict)


def read_past_releases(
    db: duckdb.DuckDBPyConnection, dataset: str, score_names: Sequence[str]
) -> list[PastRelease]:
    """Return every release of a dataset, the oldest first, with these scores where measured."""
    found: dict[str, dict[str, float]] = {}
    for release_id, name, value in db.execute(VALUES, [dataset, list(score_names)]).fetchall():
        found.setdefault(release_id, {})[name] = value
    return [
        PastRelease(release_id, started, Stage(stage), outcome, method, found.get(release_id, {}))
        for release_id, started, stage, outcome, method in db.execute(
            RELEASES, [dataset]
        ).fetchall()
    ]


def read_events(db: duckdb.DuckDBPyConnection, release_id: str) -> list[dict[str, Any]]:
    """Return the events of a release, the oldest first."""
    rows = read_rows(db, EVENTS, "release_id = ?", [release_id])
    return sorted(rows, key=lambda row: row["number"])
