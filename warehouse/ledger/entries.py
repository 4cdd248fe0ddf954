"""What was drawn of whom, over all releases of a dataset, and what that adds up to.

A charge is keyed by what decides the noise of a record: the same draw again is free, because only
draws that are not there are inserted. The warehouse has one writer at a time, so that no index must
enforce it, which would make the file four times as large. Entries are sealed and hold a digest of
their charges. Nothing is ever taken back.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

from ppdm_core.model.ledger import Account
from warehouse.database import first
from warehouse.integrity.seals import broken, moment, read_rows, sealed_rows
from warehouse.ledger.balance import EVERYBODY, Terms, draws_table, sums
from warehouse.table_digest import content_digest

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from warehouse.database import Change, Run

ENTRIES = "ledger.entry"
CHARGE = """
insert into ledger.charge
with known as (
    select c.draw_high, c.draw_low, bool_or(e.audience = $audience) as is_ours
    from ledger.charge c
    join ledger.entry e on e.number = c.entry
    semi join {draws} d using (draw_high, draw_low)
    where e.dataset = $dataset
    group by c.draw_high, c.draw_low
)
select $entry, d.record, d.draw_high, d.draw_low, d.ln_gamma, k.is_ours is null
from {draws} d left join known k using (draw_high, draw_low)
where not coalesce(k.is_ours, false)
"""


TWICE_FIRST = """
select 1 from ledger.charge c join ledger.entry e on e.number = c.entry
where c.is_first group by e.dataset, c.record, c.draw_high, c.draw_low having count(*) > 1 limit 1
"""


def write_draws(db: duckdb.DuckDBPyConnection, run: Run, draws: pa.RecordBatchReader) -> str:
    """What a candidate draws: record, draw_high, draw_low, ln_gamma; its digest is to be sealed."""
    db.register("incoming", draws)
    db.execute(f"create table {draws_table(run)} as from incoming")
    db.unregister("incoming")
    return draws_digest(db, run)


def draws_digest(db: duckdb.DuckDBPyConnection, run: Run) -> str:
    columns = ("record", "draw_high", "draw_low", "ln_gamma")
    return content_digest(db, draws_table(run), columns)


def charge(change: Change, run: Run, terms: Terms, account: Account | None, kind: str) -> None:
    """The entry of a verdict; unless the ledger itself refused, with the charges of its draws."""
    number = next_number(change.db)
    if kind == "charged":
        change.db.execute(
            CHARGE.format(draws=draws_table(run)),
            {"entry": number, "dataset": terms.dataset, "audience": terms.audience},
        )
    account = account or Account(0.0, 0.0, 0.0, 0)
    keep_entry(change, run.release_id, number, terms, account, kind)


def keep_entry(
    change: Change, release_id: str, number: int, terms: Terms, account: Account, kind: str
) -> None:
    recount = recounted(change.db, number)
    change.keep(
        ENTRIES,
        {
            "number": number,
            "dataset": terms.dataset,
            "audience": terms.audience,
            "release_id": release_id,
            "kind": kind,
            "method": terms.method,
            "records": account.records if kind == "charged" else 0,
            "spent": account.spent,
            "asked": account.asked,
            "total": account.after,
            "draws": account.draws_after,
            **recount,
            "terms": json.dumps(dict(terms.told), sort_keys=True),
            "happened": moment(change.db),
        },
    )


def inherit(change: Change, terms: Terms, release_id: str, ln_gamma: float) -> None:
    """A verdict without an entry: from before there was a ledger, or somebody removed the entry.

    Nobody knows what was a repeat, so everybody is charged.
    """
    number = next_number(change.db)
    name = hashlib.blake2b(release_id.encode(), digest_size=16).digest()
    draw = [int.from_bytes(half, "little") for half in (name[:8], name[8:])]
    change.db.execute(
        "insert into ledger.charge values (?, ?, ?, ?, ?, true)",
        [number, EVERYBODY, *draw, ln_gamma],
    )
    spent = sums(change.db, terms).spent
    account = Account(spent, ln_gamma, spent + ln_gamma, 0)
    keep_entry(change, release_id, number, terms, account, "inherited")


def next_number(db: duckdb.DuckDBPyConnection) -> int:
    row = first(db, "select coalesce(max(number), 0) + 1 from ledger.entry")
    assert row is not None
    return int(row[0])


def recounted(db: duckdb.DuckDBPyConnection, number: int) -> dict[str, Any]:
    """What an entry says of its charges, from the charges."""
    found = db.execute(
        "select record, draw_high, draw_low, ln_gamma, is_first from ledger.charge "
        "where entry = ? order by draw_high, draw_low, record",
        [number],
    ).fetchnumpy()
    digest = hashlib.sha256()
    for name, kind in (("record", "<u8"), ("draw_high", "<u8"), ("draw_low", "<u8")):
        digest.update(found[name].astype(kind).tobytes())
    digest.update(found["ln_gamma"].astype("<f8").tobytes())
    digest.update(found["is_first"].astype("u1").tobytes())
    count = len(found["record"])
    unbounded = int((found["ln_gamma"] == math.inf).sum())
    return {"charges": count, "unbounded": unbounded, "digest": digest.hexdigest()}


def entry_of(db: duckdb.DuckDBPyConnection, release_id: str) -> dict[str, Any] | None:
    """To show; whether it was edited is for the door to find out."""
    rows = read_rows(db, ENTRIES, "release_id = ?", [release_id])
    return rows[0] if len(rows) == 1 else None


def entries(db: duckdb.DuckDBPyConnection, dataset: str) -> list[dict[str, Any]]:
    return sealed_rows(db, ENTRIES, "dataset = ?", [dataset])


def check_ledger(db: duckdb.DuckDBPyConnection, events: list[dict[str, Any]]) -> None:
    """Every verdict has one entry, every entry its charges, and no charge is there twice."""
    found = sealed_rows(db, ENTRIES)
    for entry in found:
        recount = recounted(db, entry["number"])
        if any(entry[name] != value for name, value in recount.items()):
            raise broken(f"The charges of {entry['release_id']} in the ledger were changed.")
    numbers = [entry["number"] for entry in found]
    row = first(
        db,
        "select count(*) from ledger.charge where not list_contains(?, entry)",
        [numbers],
    )
    if len(set(numbers)) != len(numbers) or row != (0,):
        raise broken("The ledger holds charges that belong to no entry, or to two.")
    if first(db, TWICE_FIRST):
        raise broken("The ledger holds a draw that was charged for the first time twice.")
    check_verdicts(db, found)


def check_verdicts(db: duckdb.DuckDBPyConnection, found: list[dict[str, Any]]) -> None:
    """Verdicts from before the seals have an entry only once their dataset is judged again."""
    rows = db.execute("select release_id from audit.verdict where mac is not null").fetchall()
    judged = sorted(name for (name,) in rows)
    charged = [entry["release_id"] for entry in found]
    own = sorted(entry["release_id"] for entry in found if entry["kind"] != "inherited")
    if judged != own or len(set(charged)) != len(charged):
        raise broken("A verdict has no entry in the ledger, or an entry has no verdict.")
