"""Released rows with the keys of their records: what later releases can be compared with.

Rows leave without keys and in a keyed order; here, inside, the audit can put together what
belongs to one record, as a subscriber who knows people's rows would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warehouse.sql import KEY, ROW, quoted
from warehouse.store import Run, find_run

if TYPE_CHECKING:
    import duckdb

VERSION = "__ppdm_version"
# One row for each draw of a record, the latest first: what left twice was drawn once.
DRAWN = """
with released as ({released}),
drawn as (
    select {key}, {columns}, max(number) as number from released group by {key}, {columns}
),
ranked as (
    select *, row_number() over (partition by {key} order by number desc) - 1 as {version}
    from drawn
)
select {row}, {version}, {columns} from ranked join {people} using ({key}) order by {row}
"""
AGAIN = """
with released as ({released})
select {row}, {columns}
from {candidate}
join {people} using ({row})
join released using ({key}, {columns})
group by {row}, {columns}
order by {row}
"""


def who(people: str) -> str:
    """Keys and places alone: the table's columns may have the names of released ones."""
    return f"(select {KEY}, {ROW} from {people}) as who"


def kept_rows(run: Run) -> str:
    return f'published."{run.table}"'


def keep_rows(
    db: duckdb.DuckDBPyConnection, run: Run, candidate: str, columns: Sequence[str], people: str
) -> None:
    names = ", ".join((KEY, *map(quoted, columns)))
    db.execute(
        f"create table {kept_rows(run)} as "
        f"select {names} from {candidate} join {who(people)} using ({ROW})"
    )


def published_runs(db: duckdb.DuckDBPyConnection, dataset: str) -> list[Run]:
    """Those whose rows were kept by record, the oldest first."""
    rows = db.execute(
        "select release_id from published.version where dataset = ? order by number", [dataset]
    ).fetchall()
    kept = {
        name
        for (name,) in db.execute(
            "select table_name from information_schema.tables where table_schema = 'published'"
        ).fetchall()
    }
    runs = [find_run(db, release_id) for (release_id,) in rows]
    return [run for run in runs if run is not None and run.table in kept]


def read_drawn(
    db: duckdb.DuckDBPyConnection, runs: Sequence[Run], columns: Sequence[str], people: str
) -> dict[str, Any]:
    """Place of the record now, number of the draw (0 is the latest), and the released columns."""
    return _read(db, DRAWN, runs, columns, people)


def read_again(
    db: duckdb.DuckDBPyConnection,
    runs: Sequence[Run],
    columns: Sequence[str],
    people: str,
    candidate: str,
) -> dict[str, Any]:
    """Places and rows of the records whose candidate row has left before, to the last digit."""
    return _read(db, AGAIN, runs, columns, people, candidate=candidate)


def _read(
    db: duckdb.DuckDBPyConnection,
    query: str,
    runs: Sequence[Run],
    columns: Sequence[str],
    people: str,
    **more: str,
) -> dict[str, Any]:
    released = " union all ".join(
        f"select *, {run.number} as number from {kept_rows(run)}" for run in runs
    )
    names = ", ".join(map(quoted, columns))
    text = query.format(
        released=released,
        columns=names,
        people=who(people),
        key=KEY,
        row=ROW,
        version=VERSION,
        **more,
    )
    return dict(db.execute(text).fetchnumpy())
