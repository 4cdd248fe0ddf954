"""A transaction of a home's warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.home import Home

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from warehouse.integrity.home_key import HomeKey
else:
    DuckDBPyConnection = object  # DuckDB's own class cannot be constructed from a connection


class Transaction(DuckDBPyConnection):
    """A DuckDB connection within one transaction, and the home whose warehouse it has open.

    It has every method and attribute of the connection.
    """

    def __init__(self, connection: DuckDBPyConnection, home: Home) -> None:
        self._connection, self.home = connection, home
        self.has_new_events = False  # set when an event is appended
        self.home_key: HomeKey | None = None  # set when it is first needed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
