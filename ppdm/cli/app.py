"""The command line `ppdm`: each command imports its module when it runs, so that help is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ppdm.cli.result import CommandResult, run_command

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Release privacy-perturbed tables: sanitize, attack, gate, publish.",
)
key_app = typer.Typer(no_args_is_help=True, help="Back up, restore and publish keys.")
app.add_typer(key_app, name="key")

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
File = Annotated[Path, typer.Argument(help="A release file.", metavar="FILE")]
HomeOption = Annotated[
    Path | None, typer.Option("--home", help="PPDM_HOME; default: $PPDM_HOME or ./.ppdm.")
]


@app.callback(invoke_without_command=True)
def handle_global_options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Handle options that stand before a command."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"ppdm {installed('ppdm')}")
        raise typer.Exit


@app.command()
def init(
    source: Annotated[Path, typer.Argument(help="A CSV, Parquet or DuckDB file.")],
    out: Annotated[Path, typer.Option("--out", help="Release file to write.")],
    table: Annotated[
        str | None, typer.Option("--table", help="Table of a DuckDB file, if it has several.")
    ] = None,
    json: Json = False,
) -> None:
    """Draft a release file for a table, and list what is left to decide."""
    from ppdm.cli.init import draft_file

    run_command(json, lambda: draft_file(source, out, table))


@app.command()
def methods(
    name: Annotated[
        str | None,
        typer.Argument(help="A sanitizer, an attack, a metric or a gate.", metavar="NAME"),
    ] = None,
    json: Json = False,
) -> None:
    """List every sanitizer, attack, metric and gate, or describe one of them."""
    from ppdm.cli.methods import describe_methods

    run_command(json, lambda: describe_methods(name))


@app.command()
def check(
    file: File,
    expectations: Annotated[
        Path | None,
        typer.Option(
            "--expectations", help="JSON file to write: the checks as a Great Expectations suite."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check a release file and its data; change nothing."""
    from ppdm.cli.check import check_release_file

    run_command(json, lambda: check_release_file(file, expectations))


@app.command()
def release(
    file: File,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do everything except publishing.")
    ] = False,
    json: Json = False,
) -> None:
    """Make, attack and judge a release; publish it if it passes."""
    from ppdm.cli.release import release_file

    run_command(json, lambda: release_file(file, dry_run))


@app.command()
def decide(
    release_id: Annotated[str, typer.Argument(help="For example wdbc-0003.", metavar="ID")],
    note: Annotated[str, typer.Option("--note", help="The reason; it is stored in the warehouse.")],
    approve: Annotated[bool, typer.Option("--approve", help="It may be published.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="It may not be published.")] = False,
    by: Annotated[
        str | None,
        typer.Option("--by", help="Your name for readers; your login identifies you."),
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Approve or reject a release that awaits review; publish it when it has enough approvals."""
    from ppdm_core.model.errors import BadInput

    if approve == reject:
        problem = BadInput(
            "A decision is either an approval or a rejection.",
            remedy="Give either --approve or --reject.",
        )
        run_command(json, raise_error(problem))
    from ppdm.cli.decide import decide_release

    run_command(json, lambda: decide_release(release_id, approve, note, by, home))


@app.command()
def audit(
    original: Annotated[Path, typer.Option("--original", help="The private table.")],
    released: Annotated[
        Path, typer.Option("--released", help="The release that a tool made of it.")
    ],
    control: Annotated[
        Path | None, typer.Option("--control", help="Records that are not in the release.")
    ] = None,
    known_records: Annotated[
        str | None,
        typer.Option("--known-records", help="Number or file of records that the attacker knows."),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option("--sample", help="Number, share or file of a sample of the population."),
    ] = None,
    unaligned: Annotated[
        bool, typer.Option("--unaligned", help="Row i of one file is not row i of the other.")
    ] = False,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="Attacker and limits; a default is included.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="Column that holds the class.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="HTML file to write: the result as a page.")
    ] = None,
    json: Json = False,
) -> None:
    """Attack a release that any tool made (CSV, Parquet, DuckDB as FILE::TABLE)."""
    from ppdm.cli.audit import audit_release

    run_command(
        json,
        lambda: audit_release(
            original,
            released,
            control=control,
            known_records=known_records,
            sample=sample,
            unaligned=unaligned,
            policy=policy,
            label=label,
            report_file=report,
        ),
    )


@app.command("self-test")
def self_test(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of attacks; default: all.", metavar="NAME...")
    ] = None,
    json: Json = False,
) -> None:
    """Run the attacks on planted leaks, which they must detect, and on pure noise."""
    from ppdm.cli.self_test import run_self_test

    run_command(json, lambda: run_self_test(names or []))


@app.command()
def status(home: HomeOption = None, json: Json = False) -> None:
    """List every run of this home with its stage."""
    from ppdm.cli.status import list_status

    run_command(json, lambda: list_status(home))


@app.command()
def show(
    release_id: Annotated[str, typer.Argument(help="For example wdbc-0003.", metavar="ID")],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Show one release with all its checks."""
    from ppdm.cli.show import show_release

    run_command(json, lambda: show_release(release_id, home))


@app.command()
def report(
    release_id: Annotated[str, typer.Argument(help="For example wdbc-0003.", metavar="ID")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="HTML file to write; default: private/reports in the home."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Write the report of one release, published or not, as one HTML page."""
    from ppdm.cli.report import write_release_report

    run_command(json, lambda: write_release_report(release_id, out, open_page, home))


@app.command()
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
    from ppdm.cli.ledger import show_ledger

    run_command(json, lambda: show_ledger(dataset, plot, home))


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(help="Folder of a released version.")],
    public_key: Annotated[
        Path | None,
        typer.Option("--public-key", help="The steward's key, from another place than the folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Check that a released version is unchanged; needs nothing private."""
    from ppdm.cli.verify import verify_release

    run_command(json, lambda: verify_release(path, public_key))


@app.command()
def history(
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that nothing was edited, added or deleted.")
    ] = False,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """List every event of this home in order."""
    from ppdm.cli.history import list_events, verify_history

    run_command(json, lambda: verify_history(home) if verify else list_events(home))


@app.command()
def up(
    home: HomeOption = None,
    open_pages: Annotated[bool, typer.Option("--open", help="Open both in a browser.")] = False,
    json: Json = False,
) -> None:
    """Start the Prefect server and the MLflow pages of a home; `down` stops them."""
    from ppdm.cli.up import start_services

    run_command(json, lambda: start_services(home, open_pages))


@app.command()
def down(
    home: HomeOption = None,
    now: Annotated[bool, typer.Option("--now", help="Also while releases use them.")] = False,
    json: Json = False,
) -> None:
    """Stop the servers that `up` started."""
    from ppdm.cli.down import stop_services

    run_command(json, lambda: stop_services(home, now))


@app.command()
def serve(
    files: Annotated[list[Path], typer.Argument(help="Release files.", metavar="FILE...")],
    json: Json = False,
) -> None:
    """Run release files on their schedules until Ctrl-C; needs `up`."""
    from ppdm.cli.serve import serve_files

    run_command(json, lambda: serve_files(files))


@app.command()
def doctor(home: HomeOption = None, json: Json = False) -> None:
    """Report running servers, held locks, and keys and runs that need care, with remedies."""
    from ppdm.cli.doctor import examine_home

    run_command(json, lambda: examine_home(home))


@app.command()
def examples(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path("examples"),
    json: Json = False,
) -> None:
    """Write the example release files and their tables; files that are there stay unchanged."""
    from ppdm.cli.examples import write_examples

    run_command(json, lambda: write_examples(folder))


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--dir", help="Where to work.")] = Path("demo"),
    json: Json = False,
) -> None:
    """Run two releases of one table: a noisy one is published, a rotation is refused."""
    from ppdm.cli.demo import run_demo

    run_command(json, lambda: run_demo(folder))


@key_app.command("backup")
def key_backup(
    out: Annotated[Path, typer.Option("--out", help="File to write; store it on another machine.")],
    dataset: Annotated[
        str, typer.Argument(help="Name of the dataset; default: the key of the home.")
    ] = "",
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Write the key of a dataset, or of the home (which seals and signs), to a file."""
    from ppdm.cli.key import back_up_key

    run_command(json, lambda: back_up_key(dataset, out, home))


@key_app.command("restore")
def key_restore(
    file: Annotated[Path, typer.Argument(help="A file that `key backup` wrote.")],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Restore a key from its backup."""
    from ppdm.cli.key import restore_key_backup

    run_command(json, lambda: restore_key_backup(file, home))


@key_app.command("public")
def key_public(
    out: Annotated[Path, typer.Option("--out", help="File to write; give it to recipients.")],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Write the public key that verifies the signatures of this home."""
    from ppdm.cli.key import export_public_key

    run_command(json, lambda: export_public_key(out, home))


def main(argv: list[str] | None = None) -> None:
    """Run the command line; a wrong one is reported as bad input."""
    from ppdm_core.model.errors import BadInput

    arguments = sys.argv[1:] if argv is None else argv
    try:
        code = app(args=arguments, prog_name="ppdm", standalone_mode=False)
    except typer.Abort:
        raise SystemExit(130) from None
    except typer.TyperException as error:
        message = error.format_message()
        if message.startswith("Usage:"):  # no command was given: this is the help
            print(message)
            raise SystemExit(0) from None
        problem = BadInput(message, remedy="See: ppdm --help")
        run_command("--json" in arguments, raise_error(problem))
    raise SystemExit(code or 0)


def raise_error(error: Exception) -> Callable[[], CommandResult]:
    """Return a command that raises the error."""

    def fail() -> Any:
        raise error

    return fail


if __name__ == "__main__":
    main()
