"""The base classes of all kinds of sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ppdm_core.model.errors import BadInput, PpdmError
from warehouse.columns import Source
from warehouse.sources import bucket_files
from warehouse.sources.checks import check_rows, describe_read_error
from warehouse.sources.file_parts import load_parts
from warehouse.sources.files import copy_files, digest_files, find_copied_files, open_files

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Option:
    """A key of [source] or [[sinks]] that only some kinds have; its value is a text."""

    description: str
    is_required: bool = False
    is_path: bool = False  # relative ones start at the release file
    is_content: bool = False  # what the file holds is part of the release
    max_characters: int = 1000


BUCKET_OPTIONS = {
    "endpoint": Option("URL of the server of a bucket; AWS_ENDPOINT_URL if not given."),
    "region": Option("Region of a bucket; AWS_REGION if not given.", max_characters=100),
    "credentials": Option(
        "File with the keys, which only its owner can read; the environment if not given.",
        is_path=True,
    ),
}


class Reader(ABC):
    """One kind of source."""

    name: ClassVar[str]  # the 'kind' in [source]
    endings: ClassVar[tuple[str, ...]] = ()  # of file names; a kind without one has no 'path'
    schemes: ClassVar[tuple[str, ...]] = ()  # of URLs, for kinds with the option 'url'
    table_option: ClassVar[str] = "table"  # the option that chooses one of several tables
    has_header_line: ClassVar[bool] = False  # which may be missing
    options: ClassVar[Mapping[str, Option]] = {}

    def check_options(self, path: str, options: Mapping[str, str]) -> None:  # noqa: B027
        """Raise BadInput for what does not fit together; each option alone is a valid text."""

    def is_format(self, start: bytes) -> bool:
        """Return whether a file that starts with these bytes is of this kind."""
        return False

    def list_tables(self, source: Source) -> list[str]:
        """Return what ``table_option`` may be, for kinds that have this option."""
        return []

    def guess_options(self, source: Source) -> dict[str, str]:
        """Return further options for a source of which a draft is made, if it needs some."""
        return {}

    @abstractmethod
    def digest(self, source: Source) -> str:
        """Return a digest of the content."""

    @abstractmethod
    def copy(self, source: Source, folder: Path) -> tuple[Source, str]:
        """Copy the content to a private folder; return the copy and the digest of the content.

        A release loads the copy, so that a source that changes meanwhile cannot mix two contents.
        """

    @abstractmethod
    def find_copy(self, source: Source, folder: Path) -> Source:
        """Return the copy that ``copy`` wrote to a folder."""

    @abstractmethod
    def load(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        """Create ``table`` with the columns of the source, and ``__ppdm_row``, the position of
        each row in the source from 0; or raise an error that quotes no cell.

        The caller owns the transaction and quotes ``table``.
        """

    @abstractmethod
    def read_names(self, source: Source) -> list[str]:
        """Return the names of the columns, or raise an error that quotes no cell."""


class FileReader(Reader):
    """A kind of file. It has ``endings`` and ``select_rows``, and no more.

    The path of a source may name a file, a folder, a pattern with wildcards, or objects in a
    bucket; ``select_rows`` sees one file at a time.
    """

    options: ClassVar[Mapping[str, Option]] = BUCKET_OPTIONS

    def check_options(self, path: str, options: Mapping[str, str]) -> None:
        bucket_files.check_path(path, options)

    @abstractmethod
    def select_rows(self, db: duckdb.DuckDBPyConnection, source: Source) -> str:
        """Return a query for the rows of one file, in their order.

        Call ``check_header`` with the names in the file first.
        """

    def find_names(self, db: duckdb.DuckDBPyConnection, source: Source) -> list[str]:
        """Return the names of the columns of one file."""
        db.execute(f"select * from ({self.select_rows(db, source)}) limit 0")
        return [str(entry[0]) for entry in db.description or ()]

    def describe_bad_file(self, source: Source, error: Exception | None = None) -> PpdmError:
        """Return the error for a file that is not of this kind."""
        return BadInput(
            f"The source {source.name} is not a table that can be read as {type(self).__name__}.",
            file=source.path,
            remedy="Check 'kind' in [source], and write the file again.",
        )

    def digest(self, source: Source) -> str:
        return digest_files(source, self.endings)

    def copy(self, source: Source, folder: Path) -> tuple[Source, str]:
        return copy_files(source, self.endings, folder)

    def find_copy(self, source: Source, folder: Path) -> Source:
        return find_copied_files(source, folder)

    def load(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        with open_files(source, self.endings) as files:
            load_parts(db, files, lambda each: self.select_rows(db, each), self.guard, table)
        check_rows(db, table, source)

    def read_names(self, source: Source) -> list[str]:
        from warehouse.scratch import open_scratch_database

        with (
            open_files(source, self.endings, only_first=True) as files,
            open_scratch_database() as db,
            self.guard(files[0]),
        ):
            return self.find_names(db, files[0])

    @contextmanager
    def guard(self, source: Source) -> Iterator[None]:
        """Turn errors of DuckDB about one file, which may quote cells, into those of ppdm."""
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            bad_file = self.describe_bad_file(source, error)
            raise describe_read_error(error, source, bad_file) from None
