"""`ppdm up`: start the Prefect server and the MLflow pages of a home."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group

from ppdm.cli.console import format_home_option, make_grid
from ppdm.cli.replies.others import ServersReply
from ppdm.cli.result import CommandResult
from ppdm.services.local_servers import SERVER_NAMES, start_missing_servers
from tasks.environment import choose_home, set_library_defaults
from tasks.progress import Step, log_progress, start_step
from warehouse.home import Home


def start_services(home: Path | None) -> CommandResult:
    """Start the servers that do not run yet, and return the addresses of both."""
    root = choose_home(home)
    Home(root).create()
    set_library_defaults(root)
    start_step(Step.START)
    servers = start_missing_servers(root, log_progress)
    addresses = {service: server.address for service, server in servers.items()}
    api = f"{addresses['prefect']}/api"
    view = Group(
        make_grid((SERVER_NAMES[service], address) for service, address in addresses.items()),
        f"Both respond to this machine only. To stop them: ppdm down{format_home_option(home)}",
        f"For the commands of Prefect itself: export PREFECT_API_URL={api}",
    )
    reply = ServersReply(home=str(root), pages=addresses, api=api)
    return CommandResult(view, reply.as_payload())
