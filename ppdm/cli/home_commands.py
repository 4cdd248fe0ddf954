"""The commands that show a home, its releases, and what is registered.

Each command imports its module when it runs, so that help is fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ppdm.cli.options import HomeOption, Json, ReleaseId
from ppdm.cli.result import CommandResult, run_command


def list_schema_names() -> list[str]:
    """Return what the shell completes after `ppdm schema`."""
    from ppdm.cli.replies import REPLIES

    return list(REPLIES)


def list_method_names() -> list[str]:
    """Return what the shell completes after `ppdm methods`."""
    from ppdm.cli.methods import list_registries

    return [name for _, registry, _ in list_registries() for name in registry]


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
    """List the runs of this home: verdict, reason and next step."""

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
    """Show how one release ended, and why."""

    def run() -> CommandResult:
        from ppdm.cli.show import show_release

        return show_release(release_id, home, every)

    run_command("show", run, json=json)


def diff(
    first: ReleaseId,
    second: Annotated[
        str, typer.Argument(help="Another release, named in the same way.", metavar="OTHER_ID")
    ],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Show two releases side by side: settings, records, risk, utility."""

    def run() -> CommandResult:
        from ppdm.cli.diff import compare_releases

        return compare_releases(first, second, home)

    run_command("diff", run, json=json)


def report(
    release_id: ReleaseId,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="HTML file to write; default: private/reports in the home."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    columns: Annotated[
        bool,
        typer.Option(
            "--columns", help="Measure which columns drive the risk, if the audit left it out."
        ),
    ] = False,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Write the report of one release as one HTML page.

    The release may be published or not.
    """

    def run() -> CommandResult:
        from ppdm.cli.report import write_release_report

        return write_release_report(release_id, out, open_page, columns, home)

    run_command("report", run, json=json)


def ledger(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="SVG or PNG file to write, with the balance over time."),
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Show what all releases of a dataset add up to."""

    def run() -> CommandResult:
        from ppdm.cli.ledger import show_ledger

        return show_ledger(dataset, plot, home)

    run_command("ledger", run, json=json)


def verify(
    version: Annotated[
        str,
        typer.Argument(
            help="Folder or URL of a released version; or a release id, `latest`, `wdbc/latest`.",
            metavar="FOLDER",
        ),
    ],
    public_key: Annotated[
        Path | None,
        typer.Option("--public-key", help="The steward's key, from another place than the folder."),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option("--table", help="Of a database, the released table: SCHEMA.TABLE."),
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Check that a released version is unchanged.

    For a folder, nothing private is needed.
    """

    def run() -> CommandResult:
        from ppdm.cli.verify import verify_version

        return verify_version(version, public_key, home, table)

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
        typer.Argument(
            help="A sanitizer, an attack, a metric or a gate.",
            metavar="NAME",
            autocompletion=list_method_names,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Describe the sanitizers, attacks, metrics and gates, or one."""

    def run() -> CommandResult:
        from ppdm.cli.methods import describe_methods

        return describe_methods(name)

    run_command("methods", run, json=json)


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A command; default: list all.", metavar="NAME", autocompletion=list_schema_names
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print the JSON schema of what a command prints with --json."""

    def run() -> CommandResult:
        from ppdm.cli.schema import describe_schema

        return describe_schema(name)

    run_command("schema", run, json=json)
