"""The only place that opens the DuckDB file.

One process at a time: a file lock is taken before connecting and released right after the
operation, so that many releases of one home work in turn. Every change of a run's stage happens in
one transaction with the rows that belong to it and the event that records it.
"""

from __future__ import annotations

import atexit
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
from warehouse.integrity.events import append_event, update_head
from warehouse.integrity.seals import SEALED, insert_sealed, integrity_error
from warehouse.locks import hold
from warehouse.stages import Stage, check_step
from warehouse.tables import MIGRATIONS, RUNS
from warehouse.transaction import Transaction

if TYPE_CHECKING:
    import duckdb

SCHEMA_FILES = Path(__file__).parent / "migrations"
SETTINGS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
MEMORY_LIMIT = (
    "256MB"  # of the warehouse's engine; what needs more is spilled to its private folder
)
LOCK_LIMIT = 300.0  # seconds
ATTACH, DETACH = "attach ? as warehouse", "detach warehouse"
RUN_COLUMNS = (
    "release_id, dataset, number, source_digest, file_digest, code_version, stage, pid, "
    "flow_run_id, started"
)


@dataclass(frozen=True)
class Run:
    """One attempt to release a dataset."""

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
    """A step of a run in progress: write rows through ``db``, put counts into ``detail``."""

    db: Transaction
    detail: dict[str, Any]
    to: Stage  # the stage that it leads to; what is written may decide that

    def insert_sealed(self, table: str, row: Mapping[str, Any]) -> None:
        """Insert a sealed row, which the event of the step then names."""
        self.detail.setdefault(SEALED, []).append(insert_sealed(self.db, table, row))


class Store:
    """The warehouse of one home."""

    def __init__(
        self,
        home: Home,
        *,
        say: Callable[[str], None] = lambda text: None,
        limit: float = LOCK_LIMIT,
    ) -> None:
        self.home, self._say, self._limit = home, say, limit

    @contextmanager
    def transaction(self, purpose: str = "reading") -> Iterator[Transaction]:
        """Hold the warehouse for one transaction; ``purpose`` is shown to processes that wait."""
        lock = self.home.locks / "warehouse.lock"
        with (
            hold(lock, holder=purpose, limit=self._limit, say=self._say),
            open_database(self.home.database) as connection,
        ):
            migrate(connection, self.home.database)
            transaction = Transaction(connection, self.home)
            with commit_at_end(connection):
                yield transaction
            if transaction.has_new_events:
                # The commit already succeeded; a stale head file is acceptable.
                with suppress(PpdmError):
                    update_head(transaction)

    @contextmanager
    def advance(self, run: Run, to: Stage, **detail: Any) -> Iterator[Change]:
        """Take one step of a run: the caller's writes, the new stage and its event, or nothing."""
        with self.transaction(run.release_id) as db:
            change = Change(db, dict(detail), to)
            yield change
            move_run(db, run.release_id, change.to, change.detail)
            checkpoint(f"before commit of {change.to}")
        checkpoint(f"after commit of {change.to}")


@contextmanager
def open_database(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach the file and detach it at the end: this takes a tenth of the time of ``connect``."""
    import duckdb

    engine = connect_engine(str(database), os.getpid())
    connection = engine.cursor()
    try:
        connection.execute(ATTACH, [str(database)])
    except duckdb.Error as error:
        connection.close()
        raise describe_open_error(database, error) from None
    try:
        connection.execute("use warehouse")
        yield connection
    finally:
        connection.close()
        detach(engine)


def detach(engine: duckdb.DuckDBPyConnection) -> None:
    """Detach the file; close the engine if that fails."""
    import duckdb

    try:
        engine.execute(DETACH)
    except duckdb.Error:  # what was committed is in the file's log, which the next process reads
        connect_engine.cache_clear()
        engine.close()


@lru_cache(maxsize=1)
def connect_engine(database: str, pid: int) -> duckdb.DuckDBPyConnection:
    """Return an empty database in memory, one for each process: threads do not survive a fork."""
    import duckdb

    limits = {"memory_limit": MEMORY_LIMIT, "temp_directory": f"{database}.tmp"}
    return duckdb.connect(":memory:", config={**SETTINGS, **limits})


atexit.register(connect_engine.cache_clear)  # DuckDB must not outlive its module


@contextmanager
def commit_at_end(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit if no exception was raised inside, else roll back."""
    import duckdb

    connection.begin()
    try:
        yield
    except BaseException:
        with suppress(duckdb.Error):  # impossible within a statement; closing also rolls back
            connection.rollback()
        raise
    connection.commit()


def describe_open_error(database: Path, error: Exception) -> PpdmError:
    """Return the error of a file that DuckDB cannot open, without the values in its message."""
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


def migrate(db: duckdb.DuckDBPyConnection, database: Path) -> None:
    """Create the tables of a new warehouse; refuse one that another version made."""
    steps = list(enumerate(sorted(SCHEMA_FILES.glob("*.sql")), start=1))
    done = read_migrations(db)
    if done != [(number, path.stem) for number, path in steps[: len(done)]]:
        raise BadInput(
            f"The warehouse {database.name} was made by another version of ppdm, and this version "
            "cannot read it.",
            file=str(database),
            remedy="Name another PPDM_HOME, or use the version of ppdm that made it.",
        )
    for number, path in steps[len(done) :]:
        db.begin()
        db.execute(path.read_text())
        db.execute(f"insert into {MIGRATIONS} values (?, ?)", [number, path.stem])
        db.commit()


def read_migrations(db: duckdb.DuckDBPyConnection) -> list[tuple[int, str]]:
    """Return number and name of the schema files that made this warehouse; none if it is new."""
    import duckdb

    try:
        return db.execute(f"select number, name from {MIGRATIONS} order by number").fetchall()
    except duckdb.CatalogException:  # a new file
        db.execute("create schema if not exists meta")
        db.execute(f"create table if not exists {MIGRATIONS} (number integer, name varchar)")
        return []


def fetch_first(
    db: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] = ()
) -> tuple[Any, ...] | None:
    """Return the first row of a result, or None.

    All rows are fetched, because DuckDB runs no statement while a result is open.
    """
    rows = db.execute(query, list(values)).fetchall()
    return rows[0] if rows else None


def find_run(db: duckdb.DuckDBPyConnection, release_id: str) -> Run | None:
    """Return the run of a release, or None if there is none."""
    row = fetch_first(db, f"select {RUN_COLUMNS} from {RUNS} where release_id = ?", [release_id])
    return read_run(row) if row else None


def get_run(db: duckdb.DuckDBPyConnection, release_id: str) -> Run:
    """Return the run of a release; raise BadInput if there is none."""
    run = find_run(db, release_id)
    if run is None:
        raise BadInput(f"There is no release '{release_id}'.", remedy="See: ppdm status")
    return run


def list_runs(db: duckdb.DuckDBPyConnection, dataset: str | None = None) -> list[Run]:
    """Return the runs of a dataset, or of all, in the order in which they started."""
    rows = db.execute(
        f"select {RUN_COLUMNS} from {RUNS} where ? is null or dataset = ? order by started, number",
        [dataset, dataset],
    ).fetchall()
    return [read_run(row) for row in rows]


def read_run(row: tuple[Any, ...]) -> Run:
    """Return the run of a row with ``RUN_COLUMNS``; refuse a stage that does not exist."""
    fields = dict(zip(RUN_COLUMNS.split(", "), row, strict=True))
    try:
        return Run(**{**fields, "stage": Stage(fields["stage"])})
    except ValueError:
        raise integrity_error(f"The stage of {fields['release_id']} was changed.") from None


def move_run(db: Transaction, release_id: str, to: Stage, detail: Mapping[str, Any]) -> None:
    """Set the stage of a run and append the event of that step."""
    run = get_run(db, release_id)
    check_step(run.stage, to)
    db.execute(f"update {RUNS} set stage = ? where release_id = ?", [to, release_id])
    append_event(db, run.dataset, release_id, to, detail)
