"""Databases and folders for one command, which leave nothing behind.

Tables are in a file of a private temporary folder, so that memory does not grow with their rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import MachineTrouble
from warehouse.database import SETTINGS, migrate

if TYPE_CHECKING:
    import duckdb

MEMORY = "128MB"  # of DuckDB; sorts and large hash tables beyond it are in the folder
IDLE_MEMORY = "16MB"  # of a database that is not used for a while
DATABASE = "scratch.duckdb"


@contextmanager
def open_scratch_folder() -> Iterator[Path]:
    """Make a folder that only its owner can read, and remove it at the end."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="ppdm-", ignore_cleanup_errors=True)
    except OSError as error:
        raise MachineTrouble(
            f"A temporary folder cannot be made ({type(error).__name__}).",
            remedy="Free space, or set TMPDIR to a folder where you may write.",
        ) from None
    with folder as path:
        yield Path(path)


@contextmanager
def open_scratch_database(folder: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database in a folder, or in one of its own; what it holds is not committed."""
    if folder is None:
        with open_scratch_folder() as own, open_scratch_database(own) as db:
            yield db
        return
    with closing(_connect(folder)) as db:
        db.begin()
        yield db


def free_memory(db: duckdb.DuckDBPyConnection) -> None:
    """Write what a database holds in memory to its folder, because other work needs the memory."""
    for limit in (IDLE_MEMORY, MEMORY):
        db.execute(f"set memory_limit = '{limit}'").fetchall()


@contextmanager
def open_empty_warehouse(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a new warehouse in a folder."""
    with closing(_connect(folder)) as db:
        migrate(db, folder / DATABASE)
        yield db


def _connect(folder: Path) -> duckdb.DuckDBPyConnection:
    import duckdb

    limits = {"temp_directory": str(folder), "memory_limit": MEMORY}
    return duckdb.connect(str(folder / DATABASE), config={**SETTINGS, **limits})
