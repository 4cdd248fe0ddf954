"""The command that measures the claims of papers."""

from __future__ import annotations

from typing import Annotated

import typer

from ppdm.cli.options import HomeOption, Json
from ppdm.cli.progress import REPRODUCE_STEPS
from ppdm.cli.result import CommandResult, run_command


def reproduce(
    paper: Annotated[
        str | None, typer.Argument(help="P0 to P4; default: all papers.", metavar="[PAPER]")
    ] = None,
    claim: Annotated[
        str | None, typer.Option("--claim", help="One claim, for example P0.C7.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="More draws, and generated tables of full size.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Measure a random tenth again; compare with the committed verdicts."
        ),
    ] = False,
    measured: Annotated[
        bool,
        typer.Option("--measured", help="Judge only what is measured already; measure nothing."),
    ] = False,
    processes: Annotated[
        int | None, typer.Option("--processes", help="Processes at once; default: all cores.")
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Measure the claims of five papers, and say which hold; needs a checkout and PPDM_DATA."""

    def run() -> CommandResult:
        from ppdm.cli.reproduce import ReproduceRequest, reproduce_claims

        return reproduce_claims(
            home, ReproduceRequest(paper, claim, full, check, measured, processes)
        )

    run_command("reproduce", run, REPRODUCE_STEPS, json=json, kept="finished measurements are kept")
