"""The commands that show and look after a home, its servers, keys and published versions.

Each command imports its module when it runs, so that help is fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ppdm.cli.options import HomeOption, Json, ReleaseId
from ppdm.cli.progress import SERVER_STEPS
from ppdm.cli.result import CommandResult, run_command


def status(
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Only the runs of this dataset.")
    ] = None,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only the runs that await a decision.")
    ] = False,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """List every run of this home: outcome, method, verdict, reason and next step."""

    def run() -> CommandResult:
        from ppdm.cli.status import list_status

        return list_status(home, dataset, waiting)

    run_command("status", run, json=json)


def show(
    release_id: ReleaseId,
    every: Annotated[
        bool, typer.Option("--all", help="Also every check, score, decision and count.")
    ] = False,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Show how one release ended, and why; with --all every check and score."""

    def run() -> CommandResult:
        from ppdm.cli.show import show_release

        return show_release(release_id, home, every)

    run_command("show", run, json=json)


def ledger(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="SVG or PNG file to write, with the balance over time."),
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Show what all releases of a dataset add up to: spent, limit, remaining."""

    def run() -> CommandResult:
        from ppdm.cli.ledger import show_ledger

        return show_ledger(dataset, plot, home)

    run_command("ledger", run, json=json)


def verify(
    version: Annotated[
        str,
        typer.Argument(
            help="Folder of a released version; or a release id, `latest`, `wdbc/latest`.",
            metavar="FOLDER",
        ),
    ],
    public_key: Annotated[
        Path | None,
        typer.Option("--public-key", help="The steward's key, from another place than the folder."),
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Check that a released version is unchanged; a folder needs nothing private."""

    def run() -> CommandResult:
        from ppdm.cli.verify import verify_version

        return verify_version(version, public_key, home)

    run_command("verify", run, json=json)


def history(
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that nothing was edited, added or deleted.")
    ] = False,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """List every event of this home in order."""

    def run() -> CommandResult:
        from ppdm.cli.history import list_events, verify_history

        return verify_history(home) if verify else list_events(home)

    run_command("history", run, json=json)


def methods(
    name: Annotated[
        str | None,
        typer.Argument(help="A sanitizer, an attack, a metric or a gate.", metavar="NAME"),
    ] = None,
    json: Json = False,
) -> None:
    """List every sanitizer, attack, metric and gate, or describe one of them."""

    def run() -> CommandResult:
        from ppdm.cli.methods import describe_methods

        return describe_methods(name)

    run_command("methods", run, json=json)


def schema(
    name: Annotated[
        str | None, typer.Argument(help="A command; default: list all.", metavar="NAME")
    ] = None,
    json: Json = False,
) -> None:
    """Print the JSON schema of what a command prints with --json."""

    def run() -> CommandResult:
        from ppdm.cli.schema import describe_schema

        return describe_schema(name)

    run_command("schema", run, json=json)


def up(home: HomeOption = None, json: Json = False) -> None:
    """Start the Prefect server and the MLflow pages of a home; `down` stops them."""

    def run() -> CommandResult:
        from ppdm.cli.up import start_services

        return start_services(home)

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

    run_command("down", run, json=json)


def serve(
    files: Annotated[list[Path], typer.Argument(help="Release files.", metavar="FILE...")],
    json: Json = False,
) -> None:
    """Run release files on their schedules until Ctrl-C; needs `up`."""

    def run() -> CommandResult:
        from ppdm.cli.serve import serve_files

        return serve_files(files)

    run_command("serve", run, json=json, live=False)  # the releases write below the progress


def doctor(home: HomeOption = None, json: Json = False) -> None:
    """Report running servers, held locks, and keys and runs that need care, with remedies."""

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
    """Write the key of a dataset, or of the home (which seals and signs), to a file."""

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
