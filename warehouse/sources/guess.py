"""The kind of source that a file is, by its name and its first bytes."""

from __future__ import annotations

import gzip
import os
import zlib

from ppdm_core.model.errors import BadInput
from warehouse.columns import Source
from warehouse.sources import SOURCES

START_BYTES = 65_536
MAX_NAMES_SHOWN = 10


def guess_source(path: str, table: str | None, choice: str = "with --table") -> Source:
    """Return the file as a source; ``table`` chooses in a file that has several."""
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        what = "is not a file" if os.path.exists(path) else "does not exist"
        raise _error(path, f"{what}.", "Check its path.")
    kind = _guess_kind(path)
    if "table" not in SOURCES[kind].options:
        if table is not None:
            raise _error(path, "has no tables to choose from.", "Leave --table out.")
        return Source(kind, path)
    return Source(kind, path, {"table": table or _choose_table(Source(kind, path), choice)})


def _error(path: str, what: str, remedy: str) -> BadInput:
    return BadInput(f"The source {os.path.basename(path)} {what}", file=path, remedy=remedy)


def _guess_kind(path: str) -> str:
    for kind, reader in SOURCES.items():
        if path.lower().endswith(reader.endings):
            return kind
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as stream:
            start = stream.read(START_BYTES)
    except (OSError, EOFError, zlib.error):
        start = b""
    for kind, reader in SOURCES.items():
        if reader.is_format(start):
            return kind
    endings = [each for reader in SOURCES.values() for each in reader.endings]
    raise _error(
        path,
        "is not known to be a table.",
        f"Give a file that ends in {', '.join(endings)}.",
    )


def _choose_table(source: Source, choice: str) -> str:
    names = SOURCES[source.kind].list_tables(source)
    if not names:
        raise _error(source.path, "has no table.", "Give a DuckDB file with a table, not a view.")
    if len(names) > 1:
        shown = [*names[:MAX_NAMES_SHOWN], *(["..."] if len(names) > MAX_NAMES_SHOWN else [])]
        raise _error(
            source.path, "has several tables.", f"Choose one {choice}: {', '.join(shown)}."
        )
    return names[0]
