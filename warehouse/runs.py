"""Beginning, continuing and tidying up runs. The caller holds the dataset's lock."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import BadInput
from warehouse.approvals import keep_authors
from warehouse.checkpoints import checkpoint
from warehouse.clock import now
from warehouse.database import RUN_COLUMNS, Run, Store, find_run, first, list_runs, move, tell
from warehouse.home import Home
from warehouse.integrity.seals import NAMED
from warehouse.stages import FINISHED, Stage

if TYPE_CHECKING:
    import duckdb

STAGE_SCHEMAS = ("raw", "validated", "sanitized")
# What follows the run's own name, which ends in four digits: exact, because the names of two
# datasets may start with each other, such as "a" and "a_0001".
TABLE_END = re.compile(r"(_kept|_draws|_candidate|_(shadow|half)_[0-9]{1,2})$")


def begin_run(
    store: Store,
    *,
    dataset: str,
    owner: str,
    source_digest: str,
    file_digest: str,
    code_version: str,
    pid: int,
    flow_run_id: str | None,
) -> tuple[Run, list[Run]]:
    """The unfinished run of the same identity, or a new one; and all earlier ones as they were.

    The dataset's lock is held, so every other unfinished run of the dataset is dead, or waits for
    a decision about what is not asked for any more.
    """
    with store.transaction(f"{dataset} begins") as db:
        learn_dataset(db, dataset, owner)
        earlier = list_runs(db, dataset)
        dead = [run for run in earlier if run.stage not in FINISHED]
        identity = (source_digest, file_digest, code_version)
        for run in dead:
            if (run.source_digest, run.file_digest, run.code_version) != identity:
                drop_tables(db, [run])  # nobody will continue it
                move(db, run.release_id, Stage.ABANDONED, {})
        number = 1 + max((run.number for run in earlier), default=0)
        for run in dead:
            if (run.source_digest, run.file_digest, run.code_version) == identity:
                db.execute(
                    "update meta.run set pid = ?, flow_run_id = ? where release_id = ?",
                    [pid, flow_run_id, run.release_id],
                )
                # Whoever only looks at what waits has no part in it.
                sealed = (
                    []
                    if run.stage == Stage.AWAITING_REVIEW
                    else keep_authors(db, run.release_id, owner)
                )
                told = {"at stage": run.stage, NAMED: sealed}
                tell(db, dataset, run.release_id, "continued", told)
                return must_find(db, run.release_id), earlier
        release_id = f"{dataset}-{number:04d}"
        db.execute(
            f"insert into meta.run ({RUN_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                release_id,
                dataset,
                number,
                source_digest,
                file_digest,
                code_version,
                Stage.CREATED,
                pid,
                flow_run_id,
                now(),
            ],
        )
        told = {"source": source_digest, "file": file_digest, "code": code_version}
        sealed = keep_authors(db, release_id, owner)
        tell(db, dataset, release_id, Stage.CREATED, {**told, NAMED: sealed})
        return must_find(db, release_id), earlier


def learn_dataset(db: duckdb.DuckDBPyConnection, dataset: str, owner: str) -> None:
    if not first(db, "select 1 from meta.dataset where name = ?", [dataset]):
        db.execute("insert into meta.dataset values (?, ?, null, ?)", [dataset, owner, now()])


def must_find(db: duckdb.DuckDBPyConnection, release_id: str) -> Run:
    run = find_run(db, release_id)
    if run is None:
        raise BadInput(f"There is no release '{release_id}'.", remedy="See: ppdm status")
    return run


def reject_run(store: Store, run: Run, why: dict[str, str | None]) -> None:
    """Bad input: the run ends, and none of its tables stay."""
    with store.advance(run, Stage.REJECTED, **why) as change:
        drop_tables(change.db, [run])
    store.home.clear_work(run.release_id)


def drop_tables(db: duckdb.DuckDBPyConnection, runs: Iterable[Run]) -> None:
    tables = {run.table for run in runs}
    rows = db.execute(
        "select table_schema, table_name from information_schema.tables "
        "where list_contains(?, table_schema)",
        [list(STAGE_SCHEMAS)],
    ).fetchall()
    for schema, table in rows:
        if TABLE_END.sub("", table) in tables:
            db.execute(f'drop table {schema}."{table}"')


def tidy(store: Store, dataset: str, keep_raw: int) -> None:
    """Drops private tables of runs older than ``keep_raw`` and whatever dead runs left in folders.

    Digests, facts and events stay.
    """
    with store.transaction(f"{dataset} tidies") as db:
        runs = list_runs(db, dataset)
        finished = [run for run in runs if run.stage in FINISHED]
        drop_tables(db, finished[: max(0, len(finished) - keep_raw)])
        recorded = {
            row[0]
            for row in db.execute(
                "select number from published.version where dataset = ?", [dataset]
            ).fetchall()
        }
    for run in (*finished, *(run for run in runs if run.stage == Stage.AWAITING_REVIEW)):
        store.home.clear_work(run.release_id)
        if run.number not in recorded:  # a crash between rename and commit left it
            discard(version_folder(store.home, run))
    sweep(store.home, dataset)


def discard(folder: Path) -> None:
    """Out of sight at once, so that a crash leaves no half of it; ``sweep`` removes it."""
    if folder.exists():
        hidden = folder.with_name(f".{folder.name}.old.tmp")
        shutil.rmtree(hidden, ignore_errors=True)
        folder.rename(hidden)
        checkpoint("leftover hidden")


def sweep(home: Home, dataset: str) -> None:
    """Removes temporary folders and links that a killed process left; never a version."""
    for leftover in (home.published / dataset).glob(".*.tmp"):
        if leftover.is_symlink():
            leftover.unlink()
        else:
            shutil.rmtree(leftover, ignore_errors=True)


def version_folder(home: Home, run: Run) -> Path:
    return home.published / run.dataset / f"{run.number:04d}"


def last_raw(db: duckdb.DuckDBPyConnection, dataset: str) -> Any:
    """The raw table of the newest run that has one still, for Arrow; None if there is none."""
    rows = db.execute(
        "select table_name from information_schema.tables where table_schema = 'raw'"
    ).fetchall()
    kept = {name for (name,) in rows}
    for run in reversed(list_runs(db, dataset)):
        if run.table in kept:
            return db.sql(f'select * from raw."{run.table}"').to_arrow_table()
    return None
