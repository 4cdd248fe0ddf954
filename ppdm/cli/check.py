"""`ppdm check`: check a release file and its data without writing anything."""

from __future__ import annotations

from pathlib import Path

from ppdm.cli.console import format_check
from ppdm.cli.progress import show_progress
from ppdm.cli.release_files import read_release_file
from ppdm.cli.result import CommandResult
from ppdm.services.prefect_server import stop_orphaned_server


def check_release_file(path: Path) -> CommandResult:
    """Check a release file and its source; return the counts and the smallest possible limits."""
    from tasks.ingest.source_check import check_source

    _, context = read_release_file(path)
    stop_orphaned_server(Path(context.home))
    with show_progress():
        facts = check_source(context)
    return CommandResult(format_check(path, context, facts), {"file": str(path), **facts})
