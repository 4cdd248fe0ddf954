"""Release files that a command was given."""

from __future__ import annotations

from pathlib import Path

from flows.config.context import build_checked_context
from flows.config.release_file import ReleaseFile, load
from ppdm.example_tables import TABLES
from ppdm_core.model.errors import BadInput
from tasks.context import ReleaseContext


def read_release_file(path: Path) -> tuple[ReleaseFile, ReleaseContext]:
    """Return a release file and its context after all checks that need no data.

    Nothing is written. Every error names the file.
    """
    file = load(path)
    try:
        context = build_checked_context(file)
    except BadInput as error:
        raise error.in_file(str(path), only_unnamed=True) from None
    if context.source.path and not Path(context.source.path).exists():
        is_example = Path(context.source.path).name in TABLES
        raise BadInput(
            f"The source {context.source.path} does not exist.",
            file=str(path),
            remedy=f"Write the tables of the examples: ppdm examples {path.parent}"
            if is_example
            else "Correct 'path' in [source]; relative paths start at the release file.",
        )
    return file, context
