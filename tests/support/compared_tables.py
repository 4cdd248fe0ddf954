"""Tables that are validated one after the other in one home, with nothing but their sketches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from ppdm_core.numerics.noise import Noise
from tasks.judge.ledger_charge import name_records
from tests.support.sealed_home import new_store
from warehouse.clock import now
from warehouse.columns import Column
from warehouse.database import Change, Run, get_run, move_run
from warehouse.integrity.home_key import HomeKey, home_key
from warehouse.integrity.seals import SEALED, insert_sealed
from warehouse.runs import begin_run
from warehouse.same_data.cell_digests import CellDigests
from warehouse.same_data.sketches import store_sketch
from warehouse.sql import KEY, ROW, quote_name
from warehouse.stages import Stage
from warehouse.tables import VERDICTS, raw_table
from warehouse.transaction import Transaction

ID = "id"  # the column of record ids
Table = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Sketch:
    """What the warehouse stored of a table."""

    run: Run
    groups: list[int]
    records: int
    values: int
    unknown: int
    renumbered: int


@dataclass
class ComparedTables:
    """A home in one transaction, so that a year of releases takes seconds."""

    db: Transaction
    noise: dict[str, Noise] = field(default_factory=dict)

    def add(
        self, table: Table, dataset: str = "people", exclude: Sequence[str] = (), source: str = ""
    ) -> Sketch:
        """Store the sketch of a table; all cells are text, as those of a CSV file."""
        db, number = self.db, len(self.noise)
        noise = self.noise.setdefault(dataset, Noise(bytes([number]) * 32))
        run = self.begin(dataset, source)
        text = pa.table({name: [str(cell) for cell in cells] for name, cells in table.items()})
        db.register("incoming", text)
        names = ", ".join(map(quote_name, table))
        numbered = f"select row_number() over () - 1 as {ROW}, {names} from incoming"
        db.execute(f"create table {raw_table(run)} as {numbered}")
        db.unregister("incoming")
        roles = {ID: "identifier"} | dict.fromkeys(exclude, "exclude")
        columns = tuple(Column(name, roles.get(name, "feature"), "numeric") for name in table)
        ids = [str(each).encode() for each in table.get(ID, range(text.num_rows))]
        keys = noise.make_record_keys(ids, "id")
        digests = digest_table(db, raw_table(run), columns, keys, home_key(db))
        change = Change(db, {}, Stage.VALIDATED)
        store_sketch(
            change,
            run,
            digests,
            data=f"{dataset} {run.number}",
            name_accounts=(lambda keys: name_records(keys, noise)) if ID in table else None,
        )
        move_run(db, run.release_id, Stage.VALIDATED, change.detail)
        return self.read(run)

    def begin(self, dataset: str, source: str = "") -> Run:
        """Begin a run; every other one has another source and release file."""
        (count,) = self.db.execute("select count(*) from meta.run").fetchall()[0]
        run, _ = begin_run(
            self.db,
            dataset=dataset,
            owner="registry",
            source_digest=source or f"source {count}",
            file_digest=f"file {count}",
            code_version="c",
            pid=os.getpid(),
            flow_run_id=None,
        )
        move_run(self.db, run.release_id, Stage.RAW, {})
        return run

    def read(self, run: Run) -> Sketch:
        """Return the sketch of a run."""
        query = (
            "select data_groups, records, record_values, unknown_ids, renumbered "
            "from audit.sketch where release_id = ?"
        )
        groups, *counts = self.db.execute(query, [run.release_id]).fetchall()[0]
        return Sketch(get_run(self.db, run.release_id), json.loads(groups), *counts)

    def end(self, run: Run, outcome: str, *stages: Stage) -> None:
        """Audit a run and let it end with a verdict, which leads through these stages."""
        for stage in (Stage.SANITIZED, Stage.AUDITED):
            move_run(self.db, run.release_id, stage, {})
        verdict = {
            "release_id": run.release_id,
            "outcome": outcome,
            "data_digest": "d",
            "policy_digest": "p",
            "code_version": "c",
            "findings": "[]",
            "happened": now(),
        }
        sealed = [insert_sealed(self.db, VERDICTS, verdict)]
        for stage in stages:
            move_run(self.db, run.release_id, stage, {SEALED: sealed})
            sealed = []


def digest_table(
    db: duckdb.DuckDBPyConnection,
    raw: str,
    columns: tuple[Column, ...],
    keys: Sequence[bytes],
    key: HomeKey,
) -> CellDigests:
    """Digest the cells of a raw table as the validation does."""
    digests = CellDigests(db, raw, columns, key)
    cells = "".join(f", {cell} as {name}" for name, cell in digests.expressions.items())
    chunk = db.sql(f"select {ROW}{cells} from {raw} order by {ROW}").to_arrow_table()
    digests.take(chunk.append_column(KEY, pa.array(keys, type=pa.binary())))
    return digests


@contextmanager
def open_tables(folder: Path) -> Iterator[ComparedTables]:
    """Open a new home."""
    with new_store(folder).transaction("tests") as db:
        yield ComparedTables(db)


def number_people(n: int, columns: int = 6, seed: int = 1) -> dict[str, Any]:
    """Return a table of random numbers with ids."""
    X = np.random.default_rng(seed).normal(50, 9, (n, columns)).round(3)
    return {ID: [f"p{i}" for i in range(n)]} | {f"c{j}": list(X[:, j]) for j in range(columns)}


def select_rows(table: Table, rows: Sequence[int]) -> dict[str, Any]:
    return {name: [cells[i] for i in rows] for name, cells in table.items()}


def append_rows(table: Table, other: Table) -> dict[str, Any]:
    return {name: [*cells, *other[name]] for name, cells in table.items()}
