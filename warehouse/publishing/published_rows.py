"""Released rows with the keys of their records, which later releases are compared with.

Rows are published without keys and in a random order. Inside the warehouse the audit can collect
the rows of one record, as a subscriber who knows the rows of some persons could.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warehouse.columns import RESERVED
from warehouse.database import Run, fetch_first, find_run
from warehouse.integrity.seals import integrity_error
from warehouse.sql import KEY, ROW, quote_name
from warehouse.stages import Stage
from warehouse.table_digest import content_digest
from warehouse.tables import EVENTS, VERSIONS, candidate_table, published_rows_table

if TYPE_CHECKING:
    import duckdb

NUMBER = f"{RESERVED}number"
SEEN, LAST = f"{RESERVED}seen", f"{RESERVED}last"  # the releases that a draw was in
# A row that was published twice was drawn once.
DISTINCT_DRAWS = """
with released as ({released})
select {row}, {columns}, max({number}) as {last},
    string_agg({number}::varchar, ' ' order by {number}) as {seen}
from released join {records} using ({key}) group by {row}, {columns} order by {row}
"""


def select_keys(records: str) -> str:
    """Return SQL for keys and rows of a table of records.

    Its other columns are left out, because they may have the names of released ones.
    """
    return f"(select {KEY}, {ROW} from {records}) as records"


def store_published_rows(db: duckdb.DuckDBPyConnection, run: Run, columns: Sequence[str]) -> str:
    """Store the rows of the candidate by record key; return their digest for the event."""
    names = ", ".join((KEY, *map(quote_name, columns)))
    table = published_rows_table(run)
    db.execute(f"create table {table} as select {names} from {candidate_table(run)}")
    return content_digest(db, table, (KEY, *columns))


def check_published_rows(db: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Check that the stored rows are those that were published; attacks compare with them."""
    row = fetch_first(
        db,
        f"select detail from {EVENTS} where release_id = ? and kind = ?",
        [run.release_id, Stage.PUBLISHED],
    )
    expected = json.loads(row[0]).get("rows") if row else None
    table = published_rows_table(run)
    names = [name for (name, *_) in db.execute(f"describe {table}").fetchall()]
    if expected != content_digest(db, table, names):
        raise integrity_error(f"The stored rows of {run.release_id} are not the published ones.")


def list_comparable_runs(db: duckdb.DuckDBPyConnection, dataset: str) -> tuple[list[Run], int]:
    """Return the published runs whose rows are stored by record, the oldest first.

    In addition return how many other versions there are.
    """
    rows = db.execute(
        f"select release_id from {VERSIONS} where dataset = ? order by number", [dataset]
    ).fetchall()
    stored = {
        name
        for (name,) in db.execute(
            "select table_name from information_schema.tables where table_schema = 'published'"
        ).fetchall()
    }
    runs = [find_run(db, release_id) for (release_id,) in rows]
    found = [run for run in runs if run is not None and run.table in stored]
    for run in found:
        check_published_rows(db, run)
    return found, len(rows) - len(found)


def read_distinct_draws(
    db: duckdb.DuckDBPyConnection, runs: Sequence[Run], columns: Sequence[str], records: str
) -> dict[str, Any]:
    """Return every draw of each record once, with the releases that it was in.

    ``records`` is a table, or a selection, with the keys and the current rows of the records. The
    result holds the rows, the released columns, ``SEEN`` and ``LAST``.
    """
    names = ", ".join(map(quote_name, columns))
    released = " union all ".join(
        f"select {KEY}, {names}, {run.number} as {NUMBER} from {published_rows_table(run)}"
        for run in runs
    )
    query = DISTINCT_DRAWS.format(
        released=released,
        columns=names,
        records=select_keys(records),
        key=KEY,
        row=ROW,
        number=NUMBER,
        seen=SEEN,
        last=LAST,
    )
    return dict(db.execute(query).fetchnumpy())
