"""Rows that nobody edits unnoticed: each carries a MAC over its table's name and all its fields.

Events are chained besides: the MAC of each covers that of the one before. An event names the MACs
of the sealed rows that came with it, so that such a row cannot be deleted either. Whoever has the
home's key can write whatever they like; nobody else can.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import Defect, MachineTrouble, Refused
from warehouse.clock import now
from warehouse.integrity.home_key import HomeKey, home_key
from warehouse.publishing.manifest import canonical_json

if TYPE_CHECKING:
    import duckdb

EVENTS = "meta.event"
NAMED = "sealed"  # where an event's detail names the MACs of the rows that came with it
RESTORE = "Do not release from this home before you know why; restore `private` from a backup."
TOLERANCE = timedelta(minutes=1)  # by which machines set their own clocks back


def mac_of(key: HomeKey, table: str, row: Mapping[str, Any], previous: str = "") -> str:
    """Of all fields that hold something, so that a column added later changes no old MAC."""
    text = canonical_json({"table": table, "row": fields_of(row), "previous": previous})
    return hmac.new(key.sealing, text.encode(), "sha256").hexdigest()


def fields_of(row: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: encoded(value) for name, value in row.items() if value is not None}


def encoded(value: object) -> list[str]:
    """As text that says its type: 1, 1.0, "1" and true are four different things."""
    if isinstance(value, bool):
        return ["bool", str(value)]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, str):
        return ["text", value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return ["time", value.astimezone(UTC).isoformat(timespec="microseconds")]
    raise Defect(f"A sealed row cannot hold a {type(value).__name__}.")


def keep(db: duckdb.DuckDBPyConnection, table: str, row: Mapping[str, Any]) -> str:
    """Inserts the row with its MAC, which the event of the same transaction must name."""
    mac = mac_of(home_key(db), table, row)
    insert(db, table, {**row, "mac": mac})
    sealed_rows(db, table, "mac = ?", [mac])  # a type that the column changed would never check
    return mac


def insert(db: duckdb.DuckDBPyConnection, table: str, row: Mapping[str, Any]) -> None:
    marks = ", ".join("?" for _ in row)
    db.execute(f"insert into {table} ({', '.join(row)}) values ({marks})", list(row.values()))


def sealed_rows(
    db: duckdb.DuckDBPyConnection, table: str, where: str = "true", values: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """Rows as they were written, without their MACs; an edited or repeated one is refused."""
    key, seen = home_key(db), set()
    rows = read_rows(db, table, where, values)
    for number, row in enumerate(rows, start=1):
        mac = row.pop("mac", None)
        if not is_sealed_by(mac, mac_of(key, table, row)):
            raise broken(f"Row {number} of {named(table, row)} was changed after it was written.")
        if mac in seen:
            raise broken(f"Row {number} of {named(table, row)} is there twice.")
        seen.add(mac)
    return rows


def read_rows(
    db: duckdb.DuckDBPyConnection, table: str, where: str = "true", values: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    query = f"select * from {table} where {where} order by rowid"
    result = db.execute(query, list(values))
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def without_mac(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "mac"}


def is_sealed_by(found: str | None, right: str) -> bool:
    return isinstance(found, str) and hmac.compare_digest(found.encode(), right.encode())


def named(table: str, row: Mapping[str, Any]) -> str:
    about = row.get("release_id") or row.get("dataset")
    return f"{table} ({about})" if about else table


def broken(what: str) -> Refused:
    return Refused(what, remedy=RESTORE)


def moment(db: duckdb.DuckDBPyConnection) -> datetime:
    """The time now, never earlier than the last event's."""
    rows: list[tuple[datetime]] = db.execute(
        "select happened from meta.event order by happened desc limit 1"
    ).fetchall()
    current = now()
    last = rows[0][0].astimezone(UTC) if rows else current
    if last - current > TOLERANCE:
        raise MachineTrouble(
            f"The clock of this machine says {current:%Y-%m-%d %H:%M}, and the last event of this "
            f"home happened at {last:%Y-%m-%d %H:%M} (UTC).",
            remedy="Set the clock right; if the event has the wrong time, restore a backup.",
        )
    return max(current, last)


def sealed_tables(db: duckdb.DuckDBPyConnection) -> list[str]:
    """Every table that has a column for MACs."""
    rows = db.execute(
        "select table_schema || '.' || table_name from information_schema.columns "
        "where column_name = 'mac' and table_catalog = current_database() order by 1"
    ).fetchall()
    return [name for (name,) in rows]


@dataclass(frozen=True)
class Earlier:
    """Rows from before there were seals. The first sealed event holds their digest: whatever
    happened to them before, nothing happens to them afterwards."""

    rows: int
    digest: str


def earlier(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Earlier:
    lines = [
        canonical_json([table, fields_of(row)])
        for table, rows in tables.items()
        for row in rows
        if row["mac"] is None
    ]
    return digested(lines)


def digested(lines: list[str]) -> Earlier:
    return Earlier(len(lines), hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest())


NOTHING = digested([])
