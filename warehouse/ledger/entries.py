"""What was drawn of which record, over all releases of a dataset, and what that adds up to.

A charge is keyed by what decides the noise of a record: the same draw again is free, because only
draws that do not exist yet are inserted. The warehouse has one writer at a time, so that no index
must enforce it, which would make the file four times as large. Entries are sealed and hold a digest
of their charges. No charge is ever removed.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.model.ledger import LedgerBalance
from warehouse.database import fetch_first
from warehouse.integrity.seals import (
    integrity_error,
    monotonic_now,
    read_rows,
    read_sealed_rows,
)
from warehouse.ledger.balance import LedgerScope
from warehouse.sanitized_tables import create_table
from warehouse.table_digest import content_digest
from warehouse.tables import LEDGER_CHARGES, LEDGER_ENTRIES, VERDICTS, draws_table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from warehouse.database import Change, Run
    from warehouse.transaction import Transaction

BATCH_CHARGES = 65_536  # in memory at a time
CHARGE = np.dtype(  # a line in the digest of an entry
    [
        ("record", "<u8"),
        ("draw_high", "<u8"),
        ("draw_low", "<u8"),
        ("ln_gamma", "<f8"),
        ("is_first", "u1"),
    ]
)
INSERT_CHARGES = f"""
insert into {LEDGER_CHARGES}
with known as (
    select c.draw_high, c.draw_low, bool_or(e.audience = $audience) as is_ours
    from {LEDGER_CHARGES} c
    join {LEDGER_ENTRIES} e on e.number = c.entry
    semi join {{draws}} d using (draw_high, draw_low)
    where e.dataset = $dataset
    group by c.draw_high, c.draw_low
)
select $entry, d.record, d.draw_high, d.draw_low, d.ln_gamma, k.is_ours is null
from {{draws}} d left join known k using (draw_high, draw_low)
where not coalesce(k.is_ours, false)
"""
REPEATED_FIRST_CHARGES = f"""
select 1 from {LEDGER_CHARGES} c join {LEDGER_ENTRIES} e on e.number = c.entry
where c.is_first group by e.dataset, c.record, c.draw_high, c.draw_low having count(*) > 1 limit 1
"""


def store_draws(db: duckdb.DuckDBPyConnection, run: Run, draws: pa.RecordBatchReader) -> str:
    """Store what a candidate draws: record, draw_high, draw_low, ln_gamma; return the digest."""
    create_table(db, draws_table(run), draws)
    return digest_draws(db, run)


def digest_draws(db: duckdb.DuckDBPyConnection, run: Run) -> str:
    """Return the digest of what a candidate draws."""
    columns = ("record", "draw_high", "draw_low", "ln_gamma")
    return content_digest(db, draws_table(run), columns)


def store_entry(
    change: Change, run: Run, scope: LedgerScope, balance: LedgerBalance | None, kind: str
) -> None:
    """Store the entry of a verdict; with the charges of its draws unless the ledger refused it."""
    number = next_entry_number(change.db)
    if kind == "charged":
        change.db.execute(
            INSERT_CHARGES.format(draws=draws_table(run)),
            {"entry": number, "dataset": scope.dataset, "audience": scope.audience},
        )
    balance = balance or LedgerBalance(0.0, 0.0, 0.0, 0)
    insert_entry(change, run.release_id, number, scope, balance, kind)


def insert_entry(
    change: Change,
    release_id: str,
    number: int,
    scope: LedgerScope,
    balance: LedgerBalance,
    kind: str,
) -> None:
    """Insert an entry as a sealed row, with the digest of its charges."""
    change.insert_sealed(
        LEDGER_ENTRIES,
        {
            "number": number,
            "dataset": scope.dataset,
            "audience": scope.audience,
            "release_id": release_id,
            "kind": kind,
            "method": scope.method,
            "records": balance.records if kind == "charged" else 0,
            "spent": balance.spent,
            "asked": balance.asked,
            "total": balance.after,
            "draws": balance.draws_after,
            **recount_charges(change.db, number),
            "terms": json.dumps(dict(scope.terms), sort_keys=True),
            "happened": monotonic_now(change.db),
        },
    )


def next_entry_number(db: duckdb.DuckDBPyConnection) -> int:
    """Return the number of the next entry."""
    row = fetch_first(db, f"select coalesce(max(number), 0) + 1 from {LEDGER_ENTRIES}")
    assert row is not None
    return int(row[0])


def recount_charges(db: duckdb.DuckDBPyConnection, number: int) -> dict[str, Any]:
    """Return what an entry says of its charges, computed from the charges."""
    reader = db.sql(
        f"select record, draw_high, draw_low, ln_gamma, is_first from {LEDGER_CHARGES} "
        f"where entry = {number:d} order by draw_high, draw_low, record"
    ).to_arrow_reader(BATCH_CHARGES)
    digest, count, unbounded = hashlib.sha256(), 0, 0
    for batch in reader:
        lines = np.empty(batch.num_rows, dtype=CHARGE)
        for name, column in zip(CHARGE.names or (), batch.columns, strict=True):
            lines[name] = column.to_numpy(zero_copy_only=False)
        digest.update(lines.tobytes())
        count += batch.num_rows
        unbounded += int(np.count_nonzero(lines["ln_gamma"] == math.inf))
    return {"charges": count, "unbounded": unbounded, "digest": digest.hexdigest()}


def find_entry(db: duckdb.DuckDBPyConnection, release_id: str) -> dict[str, Any] | None:
    """Return the entry of a release, or None; publishing checks whether it was edited."""
    rows = read_rows(db, LEDGER_ENTRIES, "release_id = ?", [release_id])
    return rows[0] if len(rows) == 1 else None


def read_entries(db: Transaction, dataset: str) -> list[dict[str, Any]]:
    """Return the entries of a dataset, the oldest first."""
    return read_sealed_rows(db, LEDGER_ENTRIES, "dataset = ?", [dataset])


def check_ledger(db: Transaction, events: list[dict[str, Any]]) -> None:
    """Check that every verdict has one entry, every entry its charges, and none is repeated."""
    found = read_sealed_rows(db, LEDGER_ENTRIES)
    for entry in found:
        recount = recount_charges(db, entry["number"])
        if any(entry[name] != value for name, value in recount.items()):
            raise integrity_error(f"The charges of {entry['release_id']} in the ledger changed.")
    numbers = [entry["number"] for entry in found]
    row = fetch_first(
        db,
        f"select count(*) from {LEDGER_CHARGES} where not list_contains(?, entry)",
        [numbers],
    )
    if len(set(numbers)) != len(numbers) or row != (0,):
        raise integrity_error("The ledger holds charges that belong to no entry, or to two.")
    if fetch_first(db, REPEATED_FIRST_CHARGES):
        raise integrity_error("The ledger holds a draw that was charged for the first time twice.")
    judged = db.execute(f"select release_id from {VERDICTS}").fetchall()
    if sorted(name for (name,) in judged) != sorted(entry["release_id"] for entry in found):
        raise integrity_error("A verdict has no entry in the ledger, or an entry has no verdict.")
