"""Which kind of source a file is, for somebody who only names the file."""

from __future__ import annotations

import gzip
import os
import zlib

from ppdm_core.model.errors import BadInput
from warehouse.columns import Source
from warehouse.sources.csv import DELIMITERS
from warehouse.sources.duckdb import list_tables

KINDS = {
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "parquet": (".parquet", ".pq"),
    "duckdb": (".duckdb", ".ddb"),
}
START = 65_536
MOST_NAMES = 10


def source_at(path: str, table: str | None, choice: str = "with --table") -> Source:
    """The file as a source; ``table`` chooses in a DuckDB file that has several."""
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        what = "is not a file" if os.path.exists(path) else "does not exist"
        raise _bad(path, f"{what}.", "Check its path.")
    kind = _kind(path)
    if kind != "duckdb" and table is not None:
        raise _bad(path, "has no tables to choose from.", "Leave --table out.")
    if kind == "duckdb" and table is None:
        table = _only_table(Source(kind, path), choice)
    return Source(kind, path, table)


def _bad(path: str, what: str, remedy: str) -> BadInput:
    return BadInput(f"The source {os.path.basename(path)} {what}", file=path, remedy=remedy)


def _kind(path: str) -> str:
    for kind, endings in KINDS.items():
        if path.lower().endswith(endings):
            return kind
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as stream:
            start = stream.read(START)
    except (OSError, EOFError, zlib.error):
        start = b""
    if start.startswith(b"PAR1"):
        return "parquet"
    if start[8:12] == b"DUCK":
        return "duckdb"
    header = start.partition(b"\n")[0]
    if b"\0" not in start and any(each.encode() in header for each in DELIMITERS):
        return "csv"
    raise _bad(
        path,
        "is not known to be a table.",
        f"Give a file that ends in {', '.join(each for ends in KINDS.values() for each in ends)}.",
    )


def _only_table(source: Source, choice: str) -> str:
    names = list_tables(source)
    if not names:
        raise _bad(source.path, "has no table.", "Give a DuckDB file with a table, not a view.")
    if len(names) > 1:
        shown = [*names[:MOST_NAMES], *(["..."] if len(names) > MOST_NAMES else [])]
        raise _bad(source.path, "has several tables.", f"Choose one {choice}: {', '.join(shown)}.")
    return names[0]
