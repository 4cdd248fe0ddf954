"""Release files that a command was given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path

from flows.config.context import build_checked_context
from flows.config.release_file import ReleaseFile, load
from ppdm.example_tables import TABLES
from ppdm_core.model.errors import BadInput
from tasks.context import ReleaseContext
from warehouse.buckets import is_url


@contextmanager
def name_file(path: Path) -> Iterator[None]:
    """Name the release file in bad input that names no file."""
    try:
        yield
    except BadInput as error:
        raise error.in_file(str(path), only_unnamed=True) from None


def read_release_file(path: Path) -> tuple[ReleaseFile, ReleaseContext]:
    """Return a release file and its context after all checks that need no data.

    Nothing is written. Every error names the file.
    """
    file = load(path)
    with name_file(path):
        context = build_checked_context(file)
    source = context.source.path
    if source and not has_magic(source) and not is_url(source) and not Path(source).exists():
        is_example = Path(source).name in TABLES
        raise BadInput(
            f"The source {source} does not exist.",
            file=str(path),
            remedy=f"Write the tables of the examples: ppdm examples {path.parent}"
            if is_example
            else "Correct 'path' in [source]; relative paths start at the release file.",
        )
    return file, context
