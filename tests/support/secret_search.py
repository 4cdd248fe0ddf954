"""Where a password is: in files of any kind, tables, objects, output and the commands of processes.

What is compressed is read, and so are the usual encodings.
"""

from __future__ import annotations

import base64
import gzip
import os
import sqlite3
import threading
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import duckdb
import pyarrow.parquet as pq

SECONDS = 0.02  # between looks at the processes


def list_forms(secret: str) -> set[bytes]:
    """Return a secret as it may be written."""
    raw = secret.encode()
    encoded = {base64.b64encode(b"x" * shift + raw)[4 if shift else 0 : -4] for shift in range(3)}
    return {raw, raw.hex().encode(), quote(secret, safe="").encode(), raw[::-1], *encoded}


def has_secret(content: bytes, secrets: Iterable[str]) -> bool:
    return any(form in content for secret in secrets for form in list_forms(secret))


def read_forms(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, and what is compressed in it."""
    content = path.read_bytes()
    yield content
    if content.startswith(b"\x1f\x8b"):
        yield gzip.decompress(content)
    elif content.startswith(b"PAR1"):
        yield str(pq.read_table(path).to_pydict()).encode()
        yield str(pq.read_metadata(path).metadata).encode()
    elif content[8:12] == b"DUCK":
        with duckdb.connect(str(path), read_only=True) as db:
            tables = "select schema_name, table_name from duckdb_tables() where not internal"
            for schema, name in db.execute(tables).fetchall():
                rows = db.execute(f'select t::varchar from "{schema}"."{name}" t').fetchall()
                yield "\n".join(text for (text,) in rows).encode()
    elif content.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(path)) as lite:
            yield "\n".join(lite.iterdump()).encode()
    elif content.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            yield from map(archive.read, archive.namelist())


def find_in_files(folder: Path, secrets: Iterable[str]) -> list[str]:
    """Return the files below a folder that hold a secret."""
    paths = [Path(root, name) for root, _, names in os.walk(folder) for name in names]
    return [
        path.name
        for path in paths
        if path.is_file() and any(has_secret(form, secrets) for form in read_forms(path))
    ]


@contextmanager
def watch_processes() -> Iterator[set[bytes]]:
    """Collect the commands of all processes that run meanwhile."""
    found: set[bytes] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(SECONDS):
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    found.add((folder / "cmdline").read_bytes())
                except OSError:  # it has ended
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()
