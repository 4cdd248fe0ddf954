"""`ppdm up`: start the Prefect server and the MLflow pages of a home."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from rich.console import Group, RenderableType

from ppdm.cli.console import format_home_option, make_grid
from ppdm.cli.replies.others import ServersReply
from ppdm.cli.result import CommandResult
from ppdm.services.local_servers import start_missing_servers
from ppdm.services.pages import list_pages
from tasks.environment import choose_home, set_library_defaults
from tasks.progress import Step, log_progress, start_step
from warehouse.home import Home


def start_services(home: Path | None, open_pages: bool = False) -> CommandResult:
    """Start the servers that do not run yet, and return the pages of both; open them if asked."""
    root = choose_home(home)
    Home(root).create()
    set_library_defaults(root)
    start_step(Step.START)
    servers = start_missing_servers(root, log_progress)
    addresses = {service: server.address for service, server in servers.items()}
    api = f"{addresses['prefect']}/api"
    links = list_pages(addresses)
    parts: list[RenderableType] = [
        make_grid(links.items()),
        f"Both respond to this machine only. To stop them: ppdm down{format_home_option(home)}",
        f"For the commands of Prefect itself: export PREFECT_API_URL={api}",
    ]
    opened = [webbrowser.open(page) for page in choose_first_pages(links)] if open_pages else []
    if not all(opened):
        parts.append("No browser was found to open them.")
    reply = ServersReply(home=str(root), pages=addresses, links=links, api=api)
    return CommandResult(Group(*parts), reply.as_payload())


def choose_first_pages(links: dict[str, str]) -> list[str]:
    """Return one page of each server: of MLflow the only dataset, or else the list of all."""
    prefect, every, *datasets = links.values()
    return [prefect, datasets[0] if len(datasets) == 1 else every]
