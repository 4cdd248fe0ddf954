"""The only place that opens the DuckDB file.

One process at a time: a file lock is taken before connecting and given back right after the
operation, so that many releases of one home take turns. Every change of a run's stage happens in
one transaction with the rows it belongs to and the event that tells of it.
"""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import BadInput, MachineTrouble, PpdmError
from warehouse.checkpoints import checkpoint
from warehouse.home import Home
from warehouse.integrity import events
from warehouse.integrity.events import append_event, keep_head
from warehouse.integrity.home_key import home_key
from warehouse.integrity.seals import NAMED, broken, insert, is_sealed_by, keep, mac_of, read_rows
from warehouse.locks import hold
from warehouse.stages import Stage, check_step

if TYPE_CHECKING:
    import duckdb

MIGRATIONS = Path(__file__).parent / "migrations"
SETTINGS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
LOCK_LIMIT = 300.0  # seconds
ATTACH, DETACH = "attach ? as warehouse", "detach warehouse"


@dataclass(frozen=True)
class Run:
    release_id: str
    dataset: str
    number: int
    source_digest: str
    file_digest: str
    code_version: str
    stage: Stage
    pid: int
    flow_run_id: str | None
    started: datetime

    @property
    def table(self) -> str:
        """The run's name inside a schema; ids hold a dash, which SQL names cannot."""
        return f"{self.dataset}_{self.number:04d}"


@dataclass
class Change:
    """A run's step in progress: write through ``db``, tell counts in ``detail``."""

    db: duckdb.DuckDBPyConnection
    detail: dict[str, Any]
    to: Stage  # the stage that it leads to; what is written may decide that

    def keep(self, table: str, row: Mapping[str, Any]) -> None:
        """Writes a sealed row, which the step's event then names."""
        self.detail.setdefault(NAMED, []).append(keep(self.db, table, row))


class Store:
    def __init__(
        self,
        home: Home,
        *,
        say: Callable[[str], None] = lambda text: None,
        limit: float = LOCK_LIMIT,
    ) -> None:
        self.home, self._say, self._limit = home, say, limit

    @contextmanager
    def transaction(self, purpose: str = "reading") -> Iterator[duckdb.DuckDBPyConnection]:
        lock = self.home.locks / "warehouse.lock"
        with (
            hold(lock, holder=purpose, limit=self._limit, say=self._say),
            opened(self.home.database) as connection,
        ):
            migrate(connection)
            before = events.appended
            yield from committed(connection)
            if events.appended != before:
                with suppress(PpdmError):  # what is committed is; a head may lag behind
                    keep_head(connection)

    @contextmanager
    def advance(self, run: Run, to: Stage, **detail: Any) -> Iterator[Change]:
        """One step of a run: the caller's writes, the new stage and its event, or nothing."""
        with self.transaction(run.release_id) as db:
            change = Change(db, dict(detail), to)
            yield change
            move(db, run.release_id, change.to, change.detail)
            checkpoint(f"before commit of {change.to}")
        checkpoint(f"after commit of {change.to}")


@contextmanager
def opened(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The file is attached and let go again: a tenth of the time that ``connect`` takes."""
    import duckdb

    engine = engine_of(str(database), os.getpid())
    connection = engine.cursor()
    try:
        connection.execute(ATTACH, [str(database)])
    except duckdb.Error as error:
        connection.close()
        raise unreadable(database, error) from None
    try:
        connection.execute("use warehouse")
        yield connection
    finally:
        connection.close()
        let_go(engine)


def let_go(engine: duckdb.DuckDBPyConnection) -> None:
    import duckdb

    try:
        engine.execute(DETACH)
    except duckdb.Error:  # what was committed is in the file's log, and the next to open it goes on
        engine_of.cache_clear()
        engine.close()


@lru_cache(maxsize=1)
def engine_of(database: str, pid: int) -> duckdb.DuckDBPyConnection:
    """An empty database in memory, for one process: its threads do not survive a fork."""
    import duckdb

    return duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": f"{database}.tmp"})


atexit.register(engine_of.cache_clear)  # DuckDB complains of what lives longer than its module


@contextmanager
def scratch() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that leaves nothing behind."""
    import duckdb

    # Better to fail than to spill rows into whatever folder this is.
    connection = duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": ""})
    try:
        yield from committed(connection)
    finally:
        connection.close()


def committed(connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    connection.begin()
    try:
        yield connection
    except BaseException:
        with suppress(duckdb.Error):  # mid-statement it cannot; closing it rolls back as well
            connection.rollback()
        raise
    connection.commit()


def unreadable(database: Path, error: Exception) -> Exception:
    words = str(error).replace(str(database), "")
    if "newer" in words or "version" in words:
        return BadInput(
            f"The warehouse {database.name} was written by a newer version of DuckDB.",
            file=str(database),
            remedy="Install the version of ppdm that made it, or name another PPDM_HOME.",
        )
    return MachineTrouble(
        f"The warehouse {database.name} cannot be opened ({type(error).__name__}).",
        file=str(database),
        remedy="Check the disk and the folder's permissions, and try again.",
    )


def migrate(db: duckdb.DuckDBPyConnection) -> None:
    """Brings a warehouse to this version; refuses one from a later version."""
    steps = sorted(MIGRATIONS.glob("*.sql"))
    done = migrations_done(db)
    if done > len(steps):
        raise BadInput(
            f"The warehouse has migration {done}; this version of ppdm knows {len(steps)}.",
            remedy="Install the newer version of ppdm that made it, or name another PPDM_HOME.",
        )
    for number, path in enumerate(steps[done:], start=done + 1):
        db.begin()
        db.execute(path.read_text())
        db.execute("insert into meta.migration values (?, ?)", [number, path.stem])
        db.commit()


def migrations_done(db: duckdb.DuckDBPyConnection) -> int:
    import duckdb

    try:
        row = first(db, "select coalesce(max(number), 0) from meta.migration")
    except duckdb.CatalogException:  # a new file
        db.execute("create schema if not exists meta")
        db.execute("create table if not exists meta.migration (number integer, name varchar)")
        return 0
    return row[0] if row else 0


def first(
    db: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] = ()
) -> tuple[Any, ...] | None:
    """The first row; fetched to the end, because DuckDB refuses work beside an open result."""
    rows = db.execute(query, list(values)).fetchall()
    return rows[0] if rows else None


RUN_COLUMNS = (
    "release_id, dataset, number, source_digest, file_digest, code_version, stage, pid, "
    "flow_run_id, started"
)


def find_run(db: duckdb.DuckDBPyConnection, release_id: str) -> Run | None:
    row = first(db, f"select {RUN_COLUMNS} from meta.run where release_id = ?", [release_id])
    return read_run(row) if row else None


def list_runs(db: duckdb.DuckDBPyConnection, dataset: str | None = None) -> list[Run]:
    rows = db.execute(
        f"select {RUN_COLUMNS} from meta.run where ? is null or dataset = ? "
        "order by started, number",
        [dataset, dataset],
    ).fetchall()
    return [read_run(row) for row in rows]


def read_run(row: tuple[Any, ...]) -> Run:
    """Return the run of a row with ``RUN_COLUMNS``; refuse a stage that does not exist."""
    fields = dict(zip(RUN_COLUMNS.split(", "), row, strict=True))
    try:
        return Run(**{**fields, "stage": Stage(fields["stage"])})
    except ValueError:
        raise broken(f"The stage of {fields['release_id']} was changed.") from None


def move(
    db: duckdb.DuckDBPyConnection, release_id: str, to: Stage, detail: Mapping[str, Any]
) -> None:
    run = find_run(db, release_id)
    if run is None:
        raise BadInput(f"There is no release '{release_id}'.", remedy="See: ppdm status")
    check_step(run.stage, to)
    db.execute("update meta.run set stage = ? where release_id = ?", [to, release_id])
    tell(db, run.dataset, release_id, to, detail)


def tell(
    db: duckdb.DuckDBPyConnection,
    dataset: str,
    release_id: str,
    kind: str,
    detail: Mapping[str, Any],
) -> None:
    append_event(db, dataset, release_id, kind, detail)


FACTS = "meta.fact"


def keep_fact(db: duckdb.DuckDBPyConnection, run: Run, kind: str, value: Mapping[str, Any]) -> None:
    row = {"release_id": run.release_id, "kind": kind, "value": json.dumps(dict(value))}
    insert(db, FACTS, {**row, "seal": mac_of(home_key(db), FACTS, row)})


def read_fact(db: duckdb.DuckDBPyConnection, release_id: str, kind: str) -> dict[str, Any] | None:
    """What a step left for the next ones; refused if it was changed since."""
    rows = read_rows(db, FACTS, "release_id = ? and kind = ?", [release_id, kind])
    for row in rows:
        seal = row.pop("seal", None)
        if seal is None and is_older(db, release_id):
            continue
        if not is_sealed_by(seal, mac_of(home_key(db), FACTS, row)):
            raise broken(f"What was noted of {release_id} ({kind}) was changed afterwards.")
    return json.loads(rows[0]["value"]) if rows else None


def is_older(db: duckdb.DuckDBPyConnection, release_id: str) -> bool:
    """A run from before there were seals has no sealed event."""
    query = "select 1 from meta.event where release_id = ? and mac is not null limit 1"
    return first(db, query, [release_id]) is None
