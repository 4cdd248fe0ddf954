"""Released rows with the keys of their records: what later releases can be compared with.

Rows leave without keys and in a keyed order; here, inside, the audit can put together what
belongs to one record, as a subscriber who knows people's rows would.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warehouse.columns import RESERVED
from warehouse.database import Run, find_run, first
from warehouse.integrity.seals import broken
from warehouse.sql import KEY, ROW, quoted
from warehouse.stages import Stage
from warehouse.table_digest import content_digest

if TYPE_CHECKING:
    import duckdb

NUMBER = f"{RESERVED}number"
SEEN, LAST = f"{RESERVED}seen", f"{RESERVED}last"  # the releases that a draw was in
# What left twice was drawn once.
DRAWN = """
with released as ({released})
select {row}, {columns}, max({number}) as {last},
    string_agg({number}::varchar, ' ' order by {number}) as {seen}
from released join {people} using ({key}) group by {row}, {columns} order by {row}
"""


def who(people: str) -> str:
    """Keys and places alone: the table's columns may have the names of released ones."""
    return f"(select {KEY}, {ROW} from {people}) as who"


def kept_rows(run: Run) -> str:
    return f'published."{run.table}"'


def keep_rows(
    db: duckdb.DuckDBPyConnection, run: Run, candidate: str, columns: Sequence[str], people: str
) -> str:
    """Their digest, which the event of their publication is to tell."""
    names = ", ".join((KEY, *map(quoted, columns)))
    db.execute(
        f"create table {kept_rows(run)} as "
        f"select {names} from {candidate} join {who(people)} using ({ROW})"
    )
    return content_digest(db, kept_rows(run), (KEY, *columns))


def check_kept(db: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Kept rows are those that left, or attackers would be handed others."""
    row = first(
        db,
        "select detail from meta.event where release_id = ? and kind = ?",
        [run.release_id, Stage.PUBLISHED],
    )
    told = json.loads(row[0]).get("rows") if row else None  # older releases tell nothing
    names = [name for (name, *_) in db.execute(f"describe {kept_rows(run)}").fetchall()]
    if told is not None and told != content_digest(db, kept_rows(run), names):
        raise broken(f"The kept rows of {run.release_id} are not those that left.")


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
    for run in found:
        check_kept(db, run)
    return found, len(rows) - len(found)


def read_drawn(
    db: duckdb.DuckDBPyConnection, runs: Sequence[Run], columns: Sequence[str], people: str
) -> dict[str, Any]:
    """Places of the records now, and the released columns: every draw of each once, with the
    releases that it was in."""
    names = ", ".join(map(quoted, columns))
    released = " union all ".join(
        f"select {KEY}, {names}, {run.number} as {NUMBER} from {kept_rows(run)}" for run in runs
    )
    query = DRAWN.format(
        released=released,
        columns=names,
        people=who(people),
        key=KEY,
        row=ROW,
        number=NUMBER,
        seen=SEEN,
        last=LAST,
    )
    return dict(db.execute(query).fetchnumpy())


def count_rows(db: duckdb.DuckDBPyConnection, run: Run) -> int:
    row = first(db, f"select count(*) from {kept_rows(run)}")
    assert row is not None
    return int(row[0])
