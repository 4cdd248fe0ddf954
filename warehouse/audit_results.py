"""Scores and verdicts of audits, and what earlier audits of the same data ended in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Verdict
from warehouse.integrity.seals import monotonic_now
from warehouse.stages import Stage
from warehouse.tables import DECISIONS, EVENTS, RUNS, SCORES, VERDICTS

if TYPE_CHECKING:
    import duckdb

    from warehouse.database import Change, Run

# The same data: the same digest of the records, or the same source file.
EARLIER_REFUSALS = f"""
    with audited as (
        select release_id, max(json_extract_string(detail, '$.data')) as data
        from {EVENTS}
        where dataset = $dataset
        group by release_id
        having bool_or(kind = $audited)
    )
    select
        release_id,
        d.release_id is not null and file_digest = $file and r.code_version = $code as is_rejected
    from {RUNS} r
    join audited a using (release_id)
    left join {VERDICTS} v using (release_id)
    left join (from {DECISIONS} where choice = 'reject') d using (release_id)
    where release_id <> $release and (a.data = $data or source_digest = $source) and (
        d.release_id is not null
        or (file_digest <> $file or r.code_version <> $code) and (
            stage = $refused
            or coalesce(v.outcome, '') <> 'PASS' and not list_contains($released, stage)
        )
    )
    order by number
"""


@dataclass(frozen=True)
class EarlierRefusal:
    """An earlier audit of the same data that did not pass."""

    release_id: str
    is_rejected: bool  # a person rejected the same release file, made by the same code


def store_scores(db: duckdb.DuckDBPyConnection, release_id: str, scores: Iterable[Score]) -> None:
    """Insert the figures of an audit, one row for each score."""
    rows = [[release_id, s.name, s.value, s.low, s.high, s.n, s.baseline, s.worst] for s in scores]
    if rows:
        db.executemany(f"insert into {SCORES} values (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def store_verdict(change: Change, release_id: str, verdict: Verdict) -> None:
    """Insert the verdict on a release as a sealed row."""
    change.insert_sealed(
        VERDICTS,
        {
            "release_id": release_id,
            "outcome": verdict.outcome,
            "data_digest": verdict.data_digest,
            "policy_digest": verdict.policy_digest,
            "code_version": verdict.code_version,
            "findings": json.dumps([asdict(finding) for finding in verdict.findings]),
            "happened": monotonic_now(change.db),
        },
    )


def find_verdict(db: duckdb.DuckDBPyConnection, release_id: str) -> Verdict | None:
    """Return the only verdict on a release; None if there is none, or more than one."""
    names = ("outcome", "data_digest", "policy_digest", "code_version", "findings")
    rows = db.execute(
        f"select {', '.join(names)} from {VERDICTS} where release_id = ?", [release_id]
    ).fetchall()
    if len(rows) != 1:  # of two verdicts neither can be trusted
        return None
    data = dict(zip(names, rows[0], strict=True))
    return Verdict.from_dict({**data, "findings": json.loads(data["findings"])})


def find_earlier_refusals(
    db: duckdb.DuckDBPyConnection, run: Run, data: str
) -> list[EarlierRefusal]:
    """Return the releases that earlier audits refused for the same data.

    ``data`` is the digest of the records. Audits with the same release file and the same code
    count only if a person rejected the release.
    """
    values = {
        "dataset": run.dataset,
        "release": run.release_id,
        "data": data,
        "source": run.source_digest,
        "file": run.file_digest,
        "code": run.code_version,
        "audited": Stage.AUDITED,
        "refused": Stage.REFUSED,
        "released": [Stage.PUBLISHED, Stage.NO_CHANGE],
    }
    rows = db.execute(EARLIER_REFUSALS, values).fetchall()
    return [EarlierRefusal(*row) for row in rows]
