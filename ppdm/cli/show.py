"""`ppdm show`: show one release with all its checks."""

from __future__ import annotations

from pathlib import Path

from ppdm.cli.console import format_release
from ppdm.cli.home import open_home
from ppdm.cli.result import CommandResult


def show_release(release_id: str, home: Path | None) -> CommandResult:
    """Return the summary of one release."""
    from tasks.release_summary import read_summary

    summary = read_summary(open_home(home), release_id)
    return CommandResult(format_release(summary), {"release": summary.as_dict()})
