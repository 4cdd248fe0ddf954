"""A home with a row in every sealed table, and ways to damage it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb

from ppdm_core.model.errors import Refused
from ppdm_core.model.ledger import LedgerBalance
from ppdm_core.model.manifest import NAME
from tests.support.contexts import create_home, start_run
from warehouse.database import Run, Store
from warehouse.integrity.history import check_history
from warehouse.ledger.entries import LedgerScope, insert_entry, next_entry_number
from warehouse.publishing.deliveries import store_deliveries
from warehouse.publishing.manifest import file_digest
from warehouse.publishing.publish import FILES, describe_files, write_manifest
from warehouse.publishing.version_folders import point_latest, version_folder
from warehouse.same_data.renumbered import IdCounts
from warehouse.same_data.sketches import insert_sketch, next_sketch_number
from warehouse.sinks import Delivery
from warehouse.stages import Stage

TIME = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
VERDICT: dict[str, Any] = {
    "release_id": "wine-0001",
    "outcome": "FAIL",
    "data_digest": "d",
    "policy_digest": "p",
    "code_version": "c",
    "findings": '[{"b": 1,  "a": 2}]',
    "happened": TIME,
}
OTHERS = ("audit.decision", "audit.waiting", "audit.self_test", "audit.tune")
ANY = {
    "VARCHAR": "text",
    "JSON": "{}",
    "BIGINT": 7,
    "INTEGER": 7,
    "TIMESTAMP WITH TIME ZONE": TIME,
}
STEPS = ("raw", "validated", "sanitized", "audited")
SIGNED = {"verdict_digest", "salt", "public", "signature"}  # empty in a home without keys


def new_store(folder: Path) -> Store:
    return Store(create_home(folder))


def begin(store: Store, dataset: str = "wine") -> Run:
    run, _ = start_run(
        store,
        dataset=dataset,
        owner="cellar",
        source_digest="s",
        file_digest="f",
        code_version="c",
        pid=os.getpid(),
        flow_run_id=None,
    )
    return run


def judge(store: Store, run: Run) -> None:
    """With a row in every table that is sealed; begin_run wrote those of the authors."""
    for stage in STEPS:
        with store.advance(run, Stage(stage)):
            pass
    with store.advance(run, Stage.REFUSED) as change:
        change.insert_sealed("audit.verdict", {**VERDICT, "release_id": run.release_id})
        terms = LedgerScope(run.dataset, "all", "pca_laplace")
        charged = LedgerBalance(spent=0.0, asked=0.0, after=0.0, records=0)
        number = next_entry_number(change.db)
        insert_entry(change, run.release_id, number, terms, charged, "refused")
        insert_sketch(change, run, next_sketch_number(change.db), [1], IdCounts())
        for table in OTHERS:
            types = columns(change.db, table)
            row = {name: ANY[types[name]] for name in types.keys() - SIGNED - {"mac"}}
            name = "release_id" if "release_id" in row else "dataset"
            change.insert_sealed(table, {**row, name: run.release_id})


def edit(store: Store, *statements: str) -> None:
    with store.transaction("tests") as db:
        for statement in statements:
            db.execute(statement)


class RollBack(Exception):
    pass


@contextmanager
def damaged(store: Store, *statements: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """For a moment; nothing of it stays."""
    with suppress(RollBack), store.transaction("tests") as db:
        for statement in statements:
            db.execute(statement)
        yield db
        raise RollBack


def check(store: Store) -> None:
    with store.transaction("tests") as db:
        check_history(db)


def trouble(db: duckdb.DuckDBPyConnection) -> str:
    """What is said to be wrong, if anything."""
    try:
        check_history(db)
    except Refused as refusal:
        return refusal.message
    return ""


def columns(db: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    rows = db.execute(
        "select column_name, data_type from information_schema.columns "
        "where table_schema || '.' || table_name = ?",
        [table],
    )
    return dict(rows.fetchall())


def publish(
    store: Store,
    dataset: str = "wine",
    *,
    is_recorded: bool = True,
    deliveries: tuple[Delivery, ...] = (),
) -> Path:
    """Publish the next version of a dataset as the pipeline does; data and card are two words.

    Without a record it is as if the process had been killed before the commit.
    """
    run = begin(store, dataset)
    for stage in (*STEPS, "approved"):
        with store.advance(run, Stage(stage)):
            pass
    folder = version_folder(store.home, run)
    folder.mkdir(parents=True)
    (folder / "card.md").write_text("A card.")
    with suppress(RollBack), store.advance(run, Stage.PUBLISHED) as change:
        manifest = {"release_id": run.release_id, "rows": 1}
        request: Any = SimpleNamespace(run=run, manifest=manifest, deliveries=deliveries)
        write_manifest(change.db, request, folder, {FILES: describe_files(folder)})
        if not is_recorded:
            raise RollBack
        digests = ("d", file_digest(folder / NAME))
        change.db.execute(
            "insert into published.version values (?, ?, ?, ?, ?, ?)",
            [dataset, run.number, run.release_id, *digests, TIME],
        )
        change.detail.update(data=digests[0], manifest=digests[1])
        change.detail.update(store_deliveries(deliveries))
    if is_recorded:
        point_latest(store.home, dataset, folder.name)
    return folder
