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

# What left twice was drawn once.
DRAWN = """
with released as ({released})
select distinct {row}, {columns} from released join {people} using ({key}) order by {row}
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


def published_runs(db: duckdb.DuckDBPyConnection, dataset: str) -> tuple[list[Run], int]:
    """Those whose rows were kept by record, the oldest first, and how many others there are."""
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
    found = [run for run in runs if run is not None and run.table in kept]
    return found, len(rows) - len(found)


def read_drawn(
    db: duckdb.DuckDBPyConnection, runs: Sequence[Run], columns: Sequence[str], people: str
) -> dict[str, Any]:
    """Places of the records now, and the released columns: every draw of each once."""
    names = ", ".join(map(quoted, columns))
    released = " union all ".join(f"select {KEY}, {names} from {kept_rows(run)}" for run in runs)
    query = DRAWN.format(released=released, columns=names, people=who(people), key=KEY, row=ROW)
    return dict(db.execute(query).fetchnumpy())
