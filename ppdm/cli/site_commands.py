"""The commands of a common release: those of a site, and those of the centre.

Each command imports its module when it runs, so that help is fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from ppdm.cli.options import File, Json
from ppdm.cli.progress import CENTRE_STEPS, SITE_STEPS
from ppdm.cli.result import CommandResult, run_command
from tasks.progress import Step

Folder = Annotated[
    Path, typer.Option("--folder", help="Folder that the centre and all sites can read and write.")
]
Sites = Annotated[
    list[str],
    typer.Option(
        "--site",
        metavar="NAME=FINGERPRINT",
        help="A site with the fingerprint of its key, once for each site.",
    ),
]
Wait = Annotated[
    float, typer.Option("--wait", help="Seconds to wait for each message of another party.")
]
Role = Literal["site", "centre"]
KEPT = "messages that were sent or accepted are kept"


def init(file: File, folder: Folder, site: Sites, json: Json = False) -> None:
    """Prepare a common release: name the sites and pin the fingerprints of their keys.

    Ask each site for its fingerprint by telephone; `ppdm site status FILE` prints it there.
    """

    def run() -> CommandResult:
        from ppdm.cli.sites import prepare_centre

        return prepare_centre(file, folder, site)

    run_command("centre", run, json=json)


def run_centre(file: File, wait: Wait = 3600.0, json: Json = False) -> None:
    """Put the sanitized rows of all sites together, and publish them if every site allows it.

    Run it again after an interruption: it continues.
    """
    run_role("centre", file, wait, json, CENTRE_STEPS)


def show_centre(file: File, json: Json = False) -> None:
    """Print the fingerprint of this home, the sites, and the messages so far."""
    show_role("centre", file, json)


def join(
    file: File,
    name: Annotated[str, typer.Option("--name", help="The name of this site.")],
    folder: Folder,
    centre: Annotated[str, typer.Option("--centre", help="Fingerprint of the centre's key.")],
    site: Sites,
    test: Annotated[
        Path | None,
        typer.Option("--test", help="CSV file of test rows for the centre's classifiers."),
    ] = None,
    intersection: Annotated[
        bool,
        typer.Option(
            "--intersection",
            help="Find the common persons privately, if two parties hold other columns of them.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Join a common release, and pin the fingerprints of the centre and of all other sites.

    Not every method can be released by several sites; the error for another one names those that
    can.
    """

    def run() -> CommandResult:
        from ppdm.cli.sites import join_release

        return join_release(file, name, folder, centre, site, test, intersects=intersection)

    run_command("site", run, json=json)


def run_site(file: File, wait: Wait = 3600.0, json: Json = False) -> None:
    """Send what the gate of this site passed to the centre, and a signed verdict on the release.

    Run it again after an interruption: it continues.
    """
    run_role("site", file, wait, json, SITE_STEPS)


def show_site(file: File, json: Json = False) -> None:
    """Print the fingerprint of this home, the other parties, and the messages so far."""
    show_role("site", file, json)


def run_role(role: Role, file: Path, wait: float, json: bool, steps: Sequence[Step]) -> None:
    """Run the flow of a party."""

    def run() -> CommandResult:
        from ppdm.cli.sites import run_party

        return run_party(file, wait, is_centre=role == "centre")

    run_command(role, run, steps, json=json, kept=KEPT)


def show_role(role: Role, file: Path, json: bool) -> None:
    """Print the state of a party."""

    def run() -> CommandResult:
        from ppdm.cli.site_status import show_status

        return show_status(file, is_centre=role == "centre")

    run_command(role, run, json=json)
