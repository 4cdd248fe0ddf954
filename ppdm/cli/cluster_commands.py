"""The commands of a cluster that is started for trying.

Each command imports its module when it runs, so that help is fast.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ppdm.cli.options import HomeOption, Json
from ppdm.cli.progress import SERVER_STEPS
from ppdm.cli.result import CommandResult, run_command


def up(
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of workers.")] = 2,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Start a dask scheduler and workers with TLS on this machine, for trying."""

    def run() -> CommandResult:
        from ppdm.cli.cluster import start_home_cluster

        return start_home_cluster(home, workers)

    run_command("cluster", run, SERVER_STEPS, json=json)


def down(home: HomeOption = None, json: Json = False) -> None:
    """Stop the cluster that `cluster up` started."""

    def run() -> CommandResult:
        from ppdm.cli.cluster import stop_home_cluster

        return stop_home_cluster(home)

    run_command("cluster", run, json=json)
