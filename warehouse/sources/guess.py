"""The kind of source that a path or URL is, by its name and its first bytes."""

from __future__ import annotations

import glob
import gzip
import os
import zlib
from dataclasses import replace

from ppdm_core.model.errors import BadInput
from warehouse.columns import Source
from warehouse.sources import SOURCES
from warehouse.sources.bucket_files import check_path, is_url
from warehouse.sources.files import list_files

START_BYTES = 65_536
ENDINGS = tuple(each for reader in SOURCES.values() for each in reader.endings)
MAX_NAMES_SHOWN = 10


def guess_source(path: str, table: str | None, choice: str = "with --table") -> Source:
    """Return a file, folder, pattern or URL as a source; ``table`` chooses among several."""
    for kind, reader in SOURCES.items():
        if path.startswith(tuple(f"{scheme}://" for scheme in reader.schemes)):
            reader.check_options("", {"url": path, "table": table or "?"})
            found = Source(kind, "", {"url": path})
            return replace(found, options={"url": path, "table": table or _choose(found, choice)})
    if not is_url(path):
        path = os.path.abspath(path)
    check_path(path, {})
    source = Source(_guess_kind(path), path)
    reader = SOURCES[source.kind]
    option = reader.options.get(reader.table_option)
    if option is None and table is not None:
        raise _error(path, "has no tables to choose from.", "Leave --table out.")
    if table is not None or (option is not None and option.is_required):
        chosen = {reader.table_option: table or _choose(source, choice)}
        source = replace(source, options=chosen)
    return replace(source, options={**source.options, **reader.guess_options(source)})


def _error(path: str, what: str, remedy: str) -> BadInput:
    return BadInput(f"The source {os.path.basename(path)} {what}", file=path, remedy=remedy)


def _guess_kind(path: str) -> str:
    kinds = {kind for kind in map(_find_kind_by_ending, _list_names(path)) if kind}
    if len(kinds) > 1:
        raise _error(
            path,
            f"has files of several kinds: {', '.join(sorted(kinds))}.",
            "Name those of one kind with a pattern, as in 'folder/*.csv'.",
        )
    if kinds:
        return kinds.pop()
    if os.path.isfile(path):
        start = _read_start(path)
        for kind, reader in SOURCES.items():
            if reader.is_format(start):
                return kind
    raise _error(
        path, "is not known to be a table.", f"Give a file that ends in {', '.join(ENDINGS)}."
    )


def _list_names(path: str) -> list[str]:
    """Return the names of the files of a source, those without a known ending included."""
    if os.path.isfile(path):
        return [path]
    if not os.path.exists(path) and not glob.has_magic(path) and not is_url(path):
        raise _error(path, "does not exist.", "Check its path.")
    return [file.name for file in list_files(Source("", path), ENDINGS)]


def _find_kind_by_ending(name: str) -> str | None:
    matches = (k for k, reader in SOURCES.items() if name.lower().endswith(reader.endings))
    return next(matches, None)


def _read_start(path: str) -> bytes:
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as stream:
            return stream.read(START_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""


def _choose(source: Source, choice: str) -> str:
    names = SOURCES[source.kind].list_tables(source)
    if not names:
        raise _error(source.path, "has no table.", "Give one with a table, not a view.")
    if len(names) > 1:
        shown = [*names[:MAX_NAMES_SHOWN], *(["..."] if len(names) > MAX_NAMES_SHOWN else [])]
        raise _error(
            source.path, "has several tables.", f"Choose one {choice}: {', '.join(shown)}."
        )
    return names[0]
