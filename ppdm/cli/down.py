"""`ppdm down`: stop the servers that `ppdm up` started."""

from __future__ import annotations

from pathlib import Path

from ppdm.cli.home import check_home
from ppdm.cli.replies.others import StoppedReply
from ppdm.cli.result import CommandResult
from ppdm.services.local_servers import SERVER_NAMES, stop_servers
from tasks.environment import choose_home
from tasks.progress import log_progress


def stop_services(home: Path | None, now: bool) -> CommandResult:
    """Stop the servers of a home; ``now`` also stops them while releases use them."""
    root = choose_home(home)
    check_home(root)
    stopped = stop_servers(root, log_progress, force=now)
    names = ", ".join(SERVER_NAMES[service] for service in stopped)
    text = f"Stopped: {names}." if stopped else "Nothing was running."
    return CommandResult(text, StoppedReply(home=str(root), stopped=stopped).as_payload())
