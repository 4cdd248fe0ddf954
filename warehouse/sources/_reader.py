"""The base class of all kinds of sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from ppdm_core.model.errors import BadInput, PpdmError
from warehouse.columns import RESERVED, Source
from warehouse.sources.checks import (
    check_file,
    check_rows,
    copy_file,
    describe_read_error,
    file_digest,
)
from warehouse.sql import column_types

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

NAMES = f"main.{RESERVED}names"  # in memory, for the names alone


@dataclass(frozen=True)
class Option:
    """A key of [source] that only some kinds of sources have; its value is a text."""

    description: str
    is_required: bool = False
    max_characters: int = 1000


class Reader(ABC):
    """One kind of source. A kind of file has ``endings`` and ``create_table``, and no more."""

    name: ClassVar[str]  # the 'kind' in [source]
    endings: ClassVar[tuple[str, ...]] = ()  # of file names; a kind without one has no 'path'
    has_header_line: ClassVar[bool] = False  # which may be missing
    options: ClassVar[Mapping[str, Option]] = {}

    def is_format(self, start: bytes) -> bool:
        """Return whether a file that starts with these bytes is of this kind."""
        return False

    def list_tables(self, source: Source) -> list[str]:
        """Return what the option 'table' may be, for kinds that have this option."""
        return []

    def digest(self, source: Source) -> str:
        """Return a digest of the content."""
        return file_digest(source)

    def copy(self, source: Source, folder: Path) -> tuple[Source, str]:
        """Copy the content to a private folder; return the copy and the digest of the content.

        A release loads the copy, so that a source that changes meanwhile cannot mix two contents.
        """
        return copy_file(source, folder)

    def load(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        """Create ``table`` with the rows of the source, or raise an error that quotes no cell.

        The caller owns the transaction and quotes ``table``.
        """
        self._read(source, lambda: self.create_table(db, source, table))
        check_rows(db, table, source)

    def read_names(self, source: Source) -> list[str]:
        """Return the names of the columns, or raise an error that quotes no cell."""
        from warehouse.database import open_scratch_database

        with open_scratch_database() as db:
            return self._read(source, lambda: self.find_names(db, source))

    def find_names(self, db: duckdb.DuckDBPyConnection, source: Source) -> list[str]:
        """Return the names of the columns; override it where this needs no reading of all rows."""
        self.create_table(db, source, NAMES)
        return list(column_types(db, NAMES))

    def _read(self, source: Source, work: Callable[[], T]) -> T:
        """Return the result of reading the source; errors of DuckDB become those of ppdm."""
        import duckdb

        if self.endings:
            check_file(source)
        try:
            return work()
        except duckdb.Error as error:
            problem = describe_read_error(error, source, self.describe_bad_file(source, error))
        raise problem  # outside the handler, so that it does not carry DuckDB's message

    @abstractmethod
    def create_table(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        """Create ``table`` with the columns of the source, and ``__ppdm_row``, the position of
        each row in the source from 0. Call ``check_header`` with the names in the source first.
        """

    def describe_bad_file(self, source: Source, error: Exception | None = None) -> PpdmError:
        """Return the error for a file that is not of this kind."""
        return BadInput(
            f"The source {source.name} is not a table that can be read as {type(self).__name__}.",
            file=source.path,
            remedy="Check 'kind' in [source], and write the file again.",
        )
