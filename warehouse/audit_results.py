"""Scores and verdicts of audits, and what earlier audits of the same data ended in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Verdict
from warehouse.integrity.seals import integrity_error, monotonic_now
from warehouse.same_data.renumbered import IdCounts
from warehouse.stages import Stage
from warehouse.tables import DECISIONS, EVENTS, RUNS, SCORES, SKETCHES, VERDICTS

if TYPE_CHECKING:
    import duckdb

    from warehouse.database import Change, Run

# Of every data group of the release: the audits since the last one that was passed or approved. A
# review that ended without a new version decided nothing.
OPEN_REFUSALS = f"""
with members as (
    select release_id, unnest(data_groups::integer[]) as data_group from {SKETCHES}
),
audits as (
    select release_id, max(number) as audited from {EVENTS} where kind = $audited group by all
),
earlier as (
    select
        release_id, data_group, audited,
        stage = $published or coalesce(v.outcome, '') = 'PASS' and stage <> $refused as is_passed
    from members m
    join {RUNS} using (release_id)
    join audits using (release_id)
    left join {VERDICTS} v using (release_id)
    where release_id <> $release
    and data_group in (select data_group from members where release_id = $release)
    and (stage <> $no_change or v.outcome = 'PASS')
),
passed as (
    select data_group, max(audited) as last from earlier where is_passed group by data_group
)
select release_id
from earlier left join passed using (data_group)
where audited > coalesce(last, 0)
group by release_id, audited
order by audited
"""
# Of the same source or records: what a person rejected when the same file and code made it.
REJECTIONS = f"""
select distinct release_id, r.number
from {RUNS} r join {EVENTS} e using (release_id) join {DECISIONS} d using (release_id)
where release_id <> $release and d.choice = 'reject'
and r.dataset = $dataset and file_digest = $file and r.code_version = $code
and (source_digest = $source or json_extract_string(e.detail, '$.data') = $data)
order by r.number
"""


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


def find_open_refusals(db: duckdb.DuckDBPyConnection, run: Run) -> list[str]:
    """Return the releases of the same data that were audited since its last pass or approval.

    An audit without a verdict counts: its scores could be read.
    """
    values = {
        "release": run.release_id,
        "audited": Stage.AUDITED,
        "refused": Stage.REFUSED,
        "published": Stage.PUBLISHED,
        "no_change": Stage.NO_CHANGE,
    }
    return [name for (name,) in db.execute(OPEN_REFUSALS, values).fetchall()]


def find_rejections(db: duckdb.DuckDBPyConnection, run: Run, data: str) -> list[str]:
    """Return the releases of the same file, code and records that a person rejected.

    ``data`` is the digest of the records.
    """
    values = {
        "release": run.release_id,
        "dataset": run.dataset,
        "file": run.file_digest,
        "code": run.code_version,
        "source": run.source_digest,
        "data": data,
    }
    return [name for name, _ in db.execute(REJECTIONS, values).fetchall()]


def find_id_counts(db: duckdb.DuckDBPyConnection, release_id: str) -> IdCounts:
    """Return how many records of a release have unknown ids, and how many of them known values."""
    query = f"select unknown_ids, renumbered from {SKETCHES} where release_id = ?"
    rows = db.execute(query, [release_id]).fetchall()
    if len(rows) != 1:
        raise integrity_error(f"The records that {release_id} is recognised by are missing.")
    return IdCounts(*rows[0])
