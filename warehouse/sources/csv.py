"""CSV files, also gzipped. Every cell is read as text: a bad cell is counted later, not quoted."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, ClassVar, cast

from ppdm_core.model.errors import BadInput, PpdmError
from warehouse.columns import Source
from warehouse.sources._reader import BUCKET_OPTIONS, FileReader, Option
from warehouse.sources.checks import check_header
from warehouse.sql import literal, quote_name

if TYPE_CHECKING:
    import duckdb

SNIFF = """
select delimiter, quote, escape
from sniff_csv({path}, all_varchar = true, compression = {compression}{given})
"""
# No detection here: the header is the first line, and a row of another width is an error.
SELECT = """
select {names}
from read_csv(
    {path}, columns = {columns}, header = true, auto_detect = false, strict_mode = true,
    delim = {delimiter}, quote = {quote}, escape = {escape}, nullstr = {empty},
    compression = {compression}, hive_partitioning = false
)
"""
NOTHING_SNIFFED = "(empty)"
EMPTY, SEPARATOR = "empty", "|"
DELIMITERS = (",", ";", "\t", "|")
START_BYTES = 65_536  # checked before DuckDB reads the file
PIECE_BYTES = 1 << 20
TABLE_REMEDY = (
    "Give a CSV file with a header line and the same number of fields in every line; "
    "'delimiter' and 'quote' can be set in [source]."
)


@dataclass(frozen=True)
class Dialect:
    """How the fields of a CSV file are separated and quoted."""

    delimiter: str
    quote: str
    escape: str


class Csv(FileReader):
    """CSV files."""

    name = "csv"
    endings = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
    has_header_line = True
    options: ClassVar[Mapping[str, Option]] = {
        **BUCKET_OPTIONS,
        **{
            key: Option("CSV only; sniffed if not given.", max_characters=1)
            for key in ("delimiter", "quote")
        },
        EMPTY: Option(
            f"CSV only; texts that stand for an empty cell, separated by {SEPARATOR}: "
            f"NA{SEPARATOR}n/a.",
            max_characters=100,
        ),
    }

    def is_format(self, start: bytes) -> bool:
        header = start.partition(b"\n")[0]
        return b"\0" not in start and any(each.encode() in header for each in DELIMITERS)

    def find_names(self, db: duckdb.DuckDBPyConnection, source: Source) -> list[str]:
        return _read_start(db, source)[1]

    def select_rows(self, db: duckdb.DuckDBPyConnection, source: Source) -> str:
        dialect, names = _read_start(db, source)
        return _build_query(source, names, dialect)

    def describe_bad_file(self, source: Source, error: Exception | None = None) -> PpdmError:
        try:
            line = _find_line_not_utf8(source)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return _gzip_error(source)
        if line is not None:
            return _encoding_error(source, line)
        # The number stands in front of everything that DuckDB quotes from the file.
        found = re.match(r"Invalid Input Error: CSV Error on Line: (\d+)\n", str(error))
        where = f": see line {found[1]}." if found else "."
        return _error(source, f"is not a table{where}", TABLE_REMEDY)


def _read_start(db: duckdb.DuckDBPyConnection, source: Source) -> tuple[Dialect, list[str]]:
    """Return the dialect and the names in the header, after their checks."""
    try:
        _check_start(source)
        dialect = _sniff(db, source)
        names = _read_header(source, dialect)
        if len(names) == 1 and "delimiter" not in source.options:
            dialect, names = _split_header(source, dialect, names)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise _gzip_error(source) from None
    check_header(names, source)
    return dialect, names


def _error(source: Source, what: str, remedy: str) -> BadInput:
    return BadInput(f"The source {source.name} {what}", file=source.path, remedy=remedy)


def _is_gzip(source: Source) -> bool:
    return source.path.endswith(".gz")


def _compression(source: Source) -> str:
    """Return the compression, which DuckDB guesses wrong if a name holds a question mark."""
    return literal("gzip" if _is_gzip(source) else "none")


def _open(source: Source) -> IO[bytes]:
    if _is_gzip(source):
        return cast(IO[bytes], gzip.open(source.path, "rb"))
    return open(source.path, "rb")


def _check_start(source: Source) -> None:
    with _open(source) as stream:
        start = stream.read(START_BYTES)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _encoding_error(source, 1)
    if b"\0" in start:
        raise _error(source, "is not a table: it holds binary data.", TABLE_REMEDY)
    if not start.strip():
        raise _error(source, "is empty.", "Give a file with a header and rows.")


def _sniff(db: duckdb.DuckDBPyConnection, source: Source) -> Dialect:
    given = {"delim": source.options.get("delimiter"), "quote": source.options.get("quote")}
    settings = "".join(f", {key} = {literal(value)}" for key, value in given.items() if value)
    statement = SNIFF.format(
        path=literal(glob.escape(source.path)),
        compression=_compression(source),
        given=settings,
    )
    found = db.execute(statement).fetchall()[0]
    delimiter, quote, escape = ("" if each == NOTHING_SNIFFED else str(each) for each in found)
    # Only the start was sniffed; quotes may come later in the file.
    quote = source.options.get("quote") or quote or '"'
    return Dialect(source.options.get("delimiter") or delimiter or ",", quote, escape or quote)


def _read_header(source: Source, dialect: Dialect) -> list[str]:
    """Return the names as they are in the file: DuckDB would rename duplicates silently."""
    doubled = dialect.escape == dialect.quote
    with _open(source) as stream:
        lines = codecs.getreader("utf-8-sig")(stream)
        reader = csv.reader(
            lines,
            delimiter=dialect.delimiter,
            quotechar=dialect.quote,
            doublequote=doubled,
            escapechar=None if doubled else dialect.escape,
        )
        try:
            names = next(reader, [])
        except UnicodeDecodeError:
            raise _encoding_error(source, 1) from None
        except csv.Error:
            raise _error(
                source, "is not a table: its header is unreadable.", TABLE_REMEDY
            ) from None
    if not names:
        raise _error(source, "starts with an empty line.", "Make the header its first line.")
    return names


def _split_header(source: Source, dialect: Dialect, names: list[str]) -> tuple[Dialect, list[str]]:
    """Return the dialect by which the header has several columns, if there is one.

    On a file with rows of different widths the sniffer finds one wide column.
    """
    for delimiter in DELIMITERS:
        other = replace(dialect, delimiter=delimiter)
        split = _read_header(source, other)
        if len(split) > 1:
            return other, split
    return dialect, names


def _build_query(source: Source, names: list[str], dialect: Dialect) -> str:
    fields = [f"c{position}" for position in range(len(names))]
    return SELECT.format(
        names=", ".join(
            f"{field} as {quote_name(name)}" for field, name in zip(fields, names, strict=True)
        ),
        path=literal(glob.escape(source.path)),
        compression=_compression(source),
        columns="{" + ", ".join(f"'{field}': 'varchar'" for field in fields) + "}",
        delimiter=literal(dialect.delimiter),
        quote=literal(dialect.quote),
        escape=literal(dialect.escape),
        empty=f"[{', '.join(map(literal, list_empty_texts(source)))}]",
    )


def list_empty_texts(source: Source) -> list[str]:
    """Return the texts of empty cells: none at all, and those that the release file names."""
    named = source.options.get(EMPTY, "").split(SEPARATOR)
    return list(dict.fromkeys(["", *named]))


def _find_line_not_utf8(source: Source) -> int | None:
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 1
    with _open(source) as stream:
        while True:
            piece = stream.read(PIECE_BYTES)
            try:
                decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as error:
                return line + error.object[: error.start].count(b"\n")
            if not piece:
                return None
            line += piece.count(b"\n")


def _gzip_error(source: Source) -> BadInput:
    return _error(source, "is a damaged gzip file.", "Compress it again.")


def _encoding_error(source: Source, line: int) -> BadInput:
    return _error(source, f"is not UTF-8: see line {line}.", "Save it with UTF-8 encoding.")
