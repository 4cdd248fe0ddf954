"""The commands for the keys with which authors and reviewers sign.

Each command imports its module when it runs, so that help is fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ppdm.cli.options import HomeOption, Json
from ppdm.cli.result import CommandResult, run_command

Name = Annotated[str, typer.Argument(help="Name of the reviewer.", metavar="NAME")]


def key(
    file: Annotated[Path, typer.Argument(help="File to write, such as alice.pem; also alice.pub.")],
    json: Json = False,
) -> None:
    """Make a key: a private file with a passphrase, and its public part.

    The passphrase is asked for in the terminal, or taken from PPDM_KEY_PASSPHRASE.
    """

    def run() -> CommandResult:
        from ppdm.cli.reviewer import make_key

        return make_key(file)

    run_command("reviewer", run, json=json)


def add(
    name: Name,
    public: Annotated[Path, typer.Option("--public", help="The public part of their key.")],
    signed_by: Annotated[
        Path | None,
        typer.Option("--signed-by", help="Private key of an enrolled reviewer; not for the first."),
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Enrol a key in a home.

    The first one needs no signature, and the home must have no release yet.
    """
    from ppdm.cli.passphrase import ask_passphrase

    passphrase = ask_passphrase(signed_by)

    def run() -> CommandResult:
        from ppdm.cli.reviewer import enrol_reviewer

        return enrol_reviewer(name, public, signed_by, passphrase, home)

    run_command("reviewer", run, json=json)


def remove(
    name: Name,
    signed_by: Annotated[
        Path, typer.Option("--signed-by", help="Private key of an enrolled reviewer.")
    ],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Remove a key from a home; its approvals no longer count."""
    from ppdm.cli.passphrase import ask_passphrase

    passphrase = ask_passphrase(signed_by)

    def run() -> CommandResult:
        from ppdm.cli.reviewer import drop_reviewer

        return drop_reviewer(name, signed_by, passphrase, home)

    run_command("reviewer", run, json=json)


def list_keys(home: HomeOption = None, json: Json = False) -> None:
    """List the keys of a home, also those that were removed."""

    def run() -> CommandResult:
        from ppdm.cli.reviewer import list_reviewers

        return list_reviewers(home)

    run_command("reviewer", run, json=json)
