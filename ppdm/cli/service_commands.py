"""The commands that look after the servers, schedules and keys of a home.

Each command imports its module when it runs, so that help is fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ppdm.cli.options import HomeOption, Json
from ppdm.cli.progress import SERVER_STEPS
from ppdm.cli.result import CommandResult, run_command


def up(
    home: HomeOption = None,
    open_pages: Annotated[bool, typer.Option("--open", help="Open both in a browser.")] = False,
    json: Json = False,
) -> None:
    """Start the Prefect server and the MLflow pages of a home."""

    def run() -> CommandResult:
        from ppdm.cli.up import start_services

        return start_services(home, open_pages)

    run_command("up", run, SERVER_STEPS, json=json)


def down(
    home: HomeOption = None,
    now: Annotated[bool, typer.Option("--now", help="Also while releases use them.")] = False,
    json: Json = False,
) -> None:
    """Stop the servers that `up` started."""

    def run() -> CommandResult:
        from ppdm.cli.down import stop_services

        return stop_services(home, now)

    run_command("down", run, json=json, kept="servers that were stopped stay stopped")


def serve(
    files: Annotated[
        list[Path], typer.Argument(help="Release files.", metavar="FILE...", readable=False)
    ],
    json: Json = False,
) -> None:
    """Run release files on their schedules until Ctrl-C; needs `up`."""

    def run() -> CommandResult:
        from ppdm.cli.serve import serve_files

        return serve_files(files)

    run_command("serve", run, json=json, live=False)  # the releases write below the progress


def doctor(home: HomeOption = None, json: Json = False) -> None:
    """Report servers, locks, keys and runs that need care.

    Each finding has a remedy.
    """

    def run() -> CommandResult:
        from ppdm.cli.doctor import examine_home

        return examine_home(home)

    run_command("doctor", run, json=json)


def backup(
    out: Annotated[Path, typer.Option("--out", help="File to write; store it on another machine.")],
    dataset: Annotated[
        str, typer.Argument(help="Name of the dataset; default: the key of the home.")
    ] = "",
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Write the key of a dataset or of the home to a file.

    The key of the home seals records and signs manifests.
    """

    def run() -> CommandResult:
        from ppdm.cli.key import back_up_key

        return back_up_key(dataset, out, home)

    run_command("key", run, json=json)


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `key backup` wrote.")],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Restore a key from its backup."""

    def run() -> CommandResult:
        from ppdm.cli.key import restore_key_backup

        return restore_key_backup(file, home)

    run_command("key", run, json=json)


def public(
    out: Annotated[Path, typer.Option("--out", help="File to write; give it to recipients.")],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Write the public key that verifies the signatures of this home."""

    def run() -> CommandResult:
        from ppdm.cli.key import export_public_key

        return export_public_key(out, home)

    run_command("key", run, json=json)
