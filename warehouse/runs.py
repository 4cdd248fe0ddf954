"""How runs begin, continue and are cleaned up. The caller holds the dataset's lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.approvals import store_authors
from warehouse.clock import now
from warehouse.database import RUN_COLUMNS, Run, Store, fetch_first, get_run, list_runs, move_run
from warehouse.integrity.events import append_event
from warehouse.integrity.published_folders import check_known_folders
from warehouse.integrity.seals import SEALED
from warehouse.publishing.version_folders import hide_folder, remove_leftovers, version_folder
from warehouse.signatures import check_author_key
from warehouse.sql import literal
from warehouse.stages import FINISHED, Stage
from warehouse.tables import DATASETS, EVENTS, RUN_SCHEMAS, RUNS, VERSIONS, is_table_of, raw_table

if TYPE_CHECKING:
    import duckdb
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from warehouse.home import Home
    from warehouse.transaction import Transaction

CONTINUED = "continued"  # kind of an event


@dataclass(frozen=True)
class EndedRuns:
    """The runs of a dataset that no process continues."""

    finished: tuple[Run, ...]
    pending: tuple[Run, ...]  # they await a review
    published: frozenset[int]  # numbers of the recorded versions


def begin_run(
    db: Transaction,
    *,
    dataset: str,
    owner: str,
    source_digest: str,
    file_digest: str,
    code_version: str,
    pid: int,
    flow_run_id: str | None,
    author_key: Ed25519PrivateKey | None = None,
) -> tuple[Run, list[Run]]:
    """Return the unfinished run of the same source, file and code, or a new one; and all earlier.

    The dataset's lock is held, so every other unfinished run of the dataset is dead, or awaits a
    decision about a release that is not asked for any more: both are abandoned. A published folder
    that the history lacks stays as it is, as evidence: then no run begins. In a home with
    reviewers' keys the author signs with ``author_key``.
    """
    check_known_folders(db)
    check_author_key(db, author_key)
    identity = (source_digest, file_digest, code_version)
    add_dataset(db, dataset, owner)
    earlier = list_runs(db, dataset)
    unfinished = [run for run in earlier if run.stage not in FINISHED]
    for run in unfinished:
        if (run.source_digest, run.file_digest, run.code_version) != identity:
            drop_tables(db, [run])
            move_run(db, run.release_id, Stage.ABANDONED, {})
    for run in unfinished:
        if (run.source_digest, run.file_digest, run.code_version) == identity:
            continue_run(db, run, owner, pid, flow_run_id, author_key)
            return get_run(db, run.release_id), earlier
    number = 1 + max((run.number for run in earlier), default=0)
    release_id = f"{dataset}-{number:04d}"
    values = [release_id, dataset, number, *identity, Stage.CREATED, pid, flow_run_id, now()]
    marks = ", ".join("?" for _ in values)
    db.execute(f"insert into {RUNS} ({RUN_COLUMNS}) values ({marks})", values)
    detail = {"source": source_digest, "file": file_digest, "code": code_version}
    run = get_run(db, release_id)
    sealed = store_authors(db, run, owner, author_key)
    append_event(db, dataset, release_id, Stage.CREATED, {**detail, SEALED: sealed})
    return run, earlier


def continue_run(
    db: Transaction,
    run: Run,
    owner: str,
    pid: int,
    flow_run_id: str | None,
    author_key: Ed25519PrivateKey | None,
) -> None:
    """Record that another process continues a run."""
    db.execute(
        f"update {RUNS} set pid = ?, flow_run_id = ? where release_id = ?",
        [pid, flow_run_id, run.release_id],
    )
    # A process that finds a release awaiting a decision does not become one of its authors.
    is_author = run.stage != Stage.AWAITING_REVIEW
    sealed = store_authors(db, run, owner, author_key) if is_author else []
    detail = {"at stage": run.stage, SEALED: sealed}
    append_event(db, run.dataset, run.release_id, CONTINUED, detail)


def add_dataset(db: duckdb.DuckDBPyConnection, dataset: str, owner: str) -> None:
    """Insert a dataset that is not known yet."""
    if not fetch_first(db, f"select 1 from {DATASETS} where name = ?", [dataset]):
        db.execute(f"insert into {DATASETS} values (?, ?, null, ?)", [dataset, owner, now()])


def list_datasets(db: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the names of all datasets, sorted."""
    return [name for (name,) in db.execute(f"select name from {DATASETS} order by name").fetchall()]


def list_record_ids(db: duckdb.DuckDBPyConnection, dataset: str) -> set[str]:
    """Return the columns that earlier runs of a dataset used as record id."""
    rows = db.execute(
        f"select distinct json_extract_string(detail, '$.record_id') from {EVENTS} "
        "where dataset = ? and kind = ?",
        [dataset, Stage.VALIDATED],
    ).fetchall()
    return {name for (name,) in rows if name is not None}


def reject_run(store: Store, release_id: str, detail: Mapping[str, Any]) -> None:
    """End a run that has bad input, and drop its tables."""
    with store.transaction(release_id) as db:
        run = get_run(db, release_id)
    with store.advance(run, Stage.REJECTED, **detail) as change:
        drop_tables(change.db, [run])
    store.home.clear_work(release_id)
    store.home.candidate(release_id).unlink(missing_ok=True)


def has_validated_table(db: duckdb.DuckDBPyConnection, run: Run) -> bool:
    """Return whether the checked records of a run are still stored."""
    query = "select 1 from information_schema.tables where table_schema = ? and table_name = ?"
    return bool(fetch_first(db, query, ["validated", run.table]))


def drop_tables(db: duckdb.DuckDBPyConnection, runs: Iterable[Run]) -> None:
    """Drop the private tables of these runs."""
    names = {run.table for run in runs}
    rows = db.execute(
        "select table_schema, table_name from information_schema.tables "
        "where list_contains(?, table_schema)",
        [list(RUN_SCHEMAS)],
    ).fetchall()
    for schema, table in rows:
        if is_table_of(table, names):
            db.execute(f'drop table {schema}."{table}"')


def drop_old_tables(db: duckdb.DuckDBPyConnection, dataset: str, keep_raw: int) -> EndedRuns:
    """Drop private tables of finished runs older than ``keep_raw``; return all ended runs."""
    runs = list_runs(db, dataset)
    finished = [run for run in runs if run.stage in FINISHED]
    drop_tables(db, finished[: max(0, len(finished) - keep_raw)])
    rows = db.execute(f"select number from {VERSIONS} where dataset = ?", [dataset]).fetchall()
    pending = [run for run in runs if run.stage == Stage.AWAITING_REVIEW]
    return EndedRuns(tuple(finished), tuple(pending), frozenset(number for (number,) in rows))


def remove_files(home: Home, dataset: str, ended: EndedRuns) -> None:
    """Remove the work files of runs that no process continues, and what a crash left of them."""
    for run in (*ended.finished, *ended.pending):
        home.clear_work(run.release_id)
        if run.number not in ended.published:  # a crash between rename and commit left it
            hide_folder(version_folder(home, run))
    for run in ended.finished:
        home.candidate(run.release_id).unlink(missing_ok=True)
    remove_leftovers(home, dataset)


def export_last_raw(db: duckdb.DuckDBPyConnection, dataset: str, path: Path) -> bool:
    """Write the raw table of the newest run that still has one to a Parquet file, if one has."""
    rows = db.execute(
        "select table_name from information_schema.tables where table_schema = 'raw'"
    ).fetchall()
    existing = {name for (name,) in rows}
    for run in reversed(list_runs(db, dataset)):
        if run.table in existing:
            db.execute(f"copy {raw_table(run)} to {literal(str(path))} (format parquet)")
            return True
    return False
