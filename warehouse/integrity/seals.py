"""Rows that cannot be edited without notice: each has a MAC over its table's name and its fields.

Events are chained in addition: the MAC of each covers that of the one before. An event names the
MACs of the sealed rows that were written with it, so that such a row cannot be deleted either. Only
a person who has the home's key can write a row that passes the checks.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import Defect, MachineTrouble, Refused
from ppdm_core.model.manifest import canonical_json
from warehouse.clock import now
from warehouse.integrity.home_key import HomeKey, home_key
from warehouse.tables import EVENTS

if TYPE_CHECKING:
    import duckdb

    from warehouse.transaction import Transaction

SEALED = "sealed"  # where the detail of an event names the MACs of the rows written with it
RESTORE = "Do not release from this home before you know why; restore `private` from a backup."
CLOCK_TOLERANCE = timedelta(minutes=1)  # by which machines set their own clocks back


def mac_of(key: HomeKey, table: str, row: Mapping[str, Any], previous: str = "") -> str:
    """Return the MAC of a row; empty fields are left out, so that a new column changes no MAC."""
    text = canonical_json({"table": table, "row": encode_row(row), "previous": previous})
    return hmac.new(key.sealing, text.encode(), "sha256").hexdigest()


def encode_row(row: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the fields of a row that are not empty, each as type and text."""
    return {name: encode_value(value) for name, value in row.items() if value is not None}


def encode_value(value: object) -> list[str]:
    """Return a value as type and text: 1, 1.0, "1" and true are four different values."""
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


def insert_sealed(db: Transaction, table: str, row: Mapping[str, Any]) -> str:
    """Insert a row with its MAC and return the MAC, which the transaction's event must name."""
    mac = mac_of(home_key(db), table, row)
    insert(db, table, {**row, "mac": mac})
    # A value whose type the column changed would never pass the check: find out now.
    read_sealed_rows(db, table, "mac = ?", [mac])
    return mac


def insert(db: duckdb.DuckDBPyConnection, table: str, row: Mapping[str, Any]) -> None:
    """Insert a row, given by column."""
    marks = ", ".join("?" for _ in row)
    db.execute(f"insert into {table} ({', '.join(row)}) values ({marks})", list(row.values()))


def read_sealed_rows(
    db: Transaction, table: str, where: str = "true", values: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """Return rows as they were written, without their MACs; refuse an edited or repeated one."""
    key, seen = home_key(db), set()
    rows = read_rows(db, table, where, values)
    for number, row in enumerate(rows, start=1):
        mac = row.pop("mac", None)
        if not is_sealed_by(mac, mac_of(key, table, row)):
            where = describe_row(table, row)
            raise integrity_error(f"Row {number} of {where} was changed after it was written.")
        if mac in seen:
            raise integrity_error(f"Row {number} of {describe_row(table, row)} is there twice.")
        seen.add(mac)
    return rows


def read_rows(
    db: duckdb.DuckDBPyConnection, table: str, where: str = "true", values: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """Return rows by column, in the order in which they were inserted, without any check."""
    query = f"select * from {table} where {where} order by rowid"
    result = db.execute(query, list(values))
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def drop_mac(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the MAC of a row covers."""
    return {name: value for name, value in row.items() if name != "mac"}


def is_sealed_by(found: str | None, expected: str) -> bool:
    """Return whether a stored MAC is the expected one, in constant time."""
    return isinstance(found, str) and hmac.compare_digest(found.encode(), expected.encode())


def describe_row(table: str, row: Mapping[str, Any]) -> str:
    """Return table and subject of a row, for an error message."""
    about = row.get("release_id") or row.get("dataset")
    return f"{table} ({about})" if about else table


def integrity_error(what: str) -> Refused:
    """Return the error of a record that is not as it was written."""
    return Refused(what, remedy=RESTORE)


def monotonic_now(db: Transaction) -> datetime:
    """Return the current time, never earlier than the last event's."""
    rows: list[tuple[datetime]] = db.execute(
        f"select happened from {EVENTS} order by happened desc limit 1"
    ).fetchall()
    current = now()
    last = rows[0][0].astimezone(UTC) if rows else current
    if last - current > CLOCK_TOLERANCE:
        raise MachineTrouble(
            f"The clock of this machine says {current:%Y-%m-%d %H:%M}, and the last event of this "
            f"home happened at {last:%Y-%m-%d %H:%M} (UTC).",
            remedy="Set the clock right; if the event has the wrong time, restore a backup.",
        )
    return max(current, last)


def list_sealed_tables(db: Transaction) -> list[str]:
    """Return every table that has a column for MACs."""
    rows = db.execute(
        "select table_schema || '.' || table_name from information_schema.columns "
        "where column_name = 'mac' and table_catalog = current_database() order by 1"
    ).fetchall()
    return [name for (name,) in rows]
