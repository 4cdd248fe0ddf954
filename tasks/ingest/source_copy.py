"""The private copy of a source, which a release loads.

A source that changes while a release reads it cannot mix two contents.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ppdm_core.model.errors import PpdmError
from warehouse.columns import Source
from warehouse.home import Home, translate_disk_errors
from warehouse.sources import SOURCES


def copy_source(home: Home, dataset: str, source: Source) -> str:
    """Copy the source of a dataset to its work folder; return the digest of the content.

    The caller holds the lock of the dataset.
    """
    folder = home.work(dataset)
    home.clear_work(dataset)
    with translate_disk_errors(folder):
        folder.mkdir(mode=0o700, parents=True)
    try:
        return SOURCES[source.kind].copy(source, folder)[1]
    except BaseException:
        home.clear_work(dataset)
        raise


@contextmanager
def open_copy(home: Home, dataset: str, source: Source) -> Iterator[Source]:
    """Return the copy that ``copy_source`` made, and remove it in the end.

    Errors name the source in place of the copy.
    """
    folder = home.work(dataset)
    try:
        yield SOURCES[source.kind].find_copy(source, folder)
    except PpdmError as error:
        if error.file and Path(error.file).is_relative_to(folder):
            error.file = source.path
        raise
    finally:
        home.clear_work(dataset)
