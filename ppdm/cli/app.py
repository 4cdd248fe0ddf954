"""`ppdm`: thin commands. Every one imports what it needs when it runs, so that help is quick."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ppdm.cli.result import Answer, give

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
def top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
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
    """Draft a release file for a table, and say what is left to decide."""
    from ppdm.cli.init import draft_file

    give(json, lambda: draft_file(source, out, table))


@app.command()
def methods(
    name: Annotated[
        str | None, typer.Argument(help="A sanitizer, an attack or a metric.", metavar="NAME")
    ] = None,
    json: Json = False,
) -> None:
    """Every sanitizer, attack and metric, or one of them in full."""
    from ppdm.cli.methods import describe

    give(json, lambda: describe(name))


@app.command()
def check(file: File, json: Json = False) -> None:
    """Check a release file and its data; write nothing."""
    from ppdm.cli.release import check_file

    give(json, lambda: check_file(file))


@app.command()
def release(
    file: File,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="All but the door.")] = False,
    json: Json = False,
) -> None:
    """Make, attack and judge a release; publish it if it is approved."""
    from ppdm.cli.release import release_file

    give(json, lambda: release_file(file, dry_run))


@app.command()
def decide(
    release_id: Annotated[str, typer.Argument(help="For example wdbc-0003.", metavar="ID")],
    note: Annotated[str, typer.Option("--note", help="Why; it stays in the warehouse.")],
    approve: Annotated[bool, typer.Option("--approve", help="It may leave.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="It may not.")] = False,
    by: Annotated[
        str | None,
        typer.Option("--by", help="Your name for others to read; who you are is your user."),
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Approve or reject a release that waits for people; publish it if enough approve."""
    from ppdm_core.model.errors import BadInput

    if approve == reject:
        problem = BadInput("Decide one thing.", remedy="Give either --approve or --reject.")
        give(json, failing(problem))
    from ppdm.cli.decide import decide_release

    give(json, lambda: decide_release(release_id, approve, note, by, home))


@app.command()
def audit(
    original: Annotated[Path, typer.Option("--original", help="The private table.")],
    released: Annotated[Path, typer.Option("--released", help="What a tool made of it.")],
    control: Annotated[
        Path | None, typer.Option("--control", help="People who are not in the release.")
    ] = None,
    known_records: Annotated[
        str | None,
        typer.Option("--known-records", help="How many the attacker knows, or a file of them."),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option("--sample", help="Number, share or file of a sample of the population."),
    ] = None,
    unaligned: Annotated[
        bool, typer.Option("--unaligned", help="Row i of one file is not row i of the other.")
    ] = False,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="Attacker and limits; a default one ships.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="Column that holds the class.")
    ] = None,
    json: Json = False,
) -> None:
    """Attack a release that any other tool made (CSV, Parquet, DuckDB as FILE::TABLE)."""
    from ppdm.cli.audit import audit_release

    give(
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
        ),
    )


@app.command("self-test")
def self_test(
    names: Annotated[
        list[str] | None, typer.Argument(help="Attacks; all if none is named.", metavar="NAME...")
    ] = None,
    json: Json = False,
) -> None:
    """Try the attacks on planted leaks that they must notice, and on noise that they must not."""
    from ppdm.cli.self_test import try_all

    give(json, lambda: try_all(names or []))


@app.command()
def status(home: HomeOption = None, json: Json = False) -> None:
    """Every run of this home and where it stands."""
    from ppdm.cli.release import list_status

    give(json, lambda: list_status(home))


@app.command()
def show(
    release_id: Annotated[str, typer.Argument(help="For example wdbc-0003.", metavar="ID")],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """One release with all its checks."""
    from ppdm.cli.release import show_release

    give(json, lambda: show_release(release_id, home))


@app.command()
def ledger(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    plot: Annotated[
        Path | None, typer.Option("--plot", help="SVG file to draw it to, over time.")
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """What all releases of a dataset add up to: spent, limit, remaining."""
    from ppdm.cli.ledger import show_ledger

    give(json, lambda: show_ledger(dataset, plot, home))


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(help="Folder of a released version.")],
    public_key: Annotated[
        Path | None,
        typer.Option("--public-key", help="The steward's, which did not come with the folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Check that a released version is as it left; needs nothing private."""
    from ppdm.cli.verify import verify_release

    give(json, lambda: verify_release(path, public_key))


@app.command()
def history(
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that nothing was edited, added or deleted.")
    ] = False,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Every event of this home, in order."""
    from ppdm.cli.verify import list_events, verify_history

    give(json, lambda: verify_history(home) if verify else list_events(home))


@app.command()
def up(home: HomeOption = None, json: Json = False) -> None:
    """Start the Prefect server and the MLflow pages of a home; they stay until `down`."""
    from ppdm.services.services import start_services

    give(json, lambda: start_services(home))


@app.command()
def down(
    home: HomeOption = None,
    now: Annotated[bool, typer.Option("--now", help="Also while releases use it.")] = False,
    json: Json = False,
) -> None:
    """Stop what `up` started."""
    from ppdm.services.services import stop_services

    give(json, lambda: stop_services(home, now))


@app.command()
def serve(
    files: Annotated[list[Path], typer.Argument(help="Release files.", metavar="FILE...")],
    json: Json = False,
) -> None:
    """Release files on their schedules, until Ctrl-C; needs `up`."""
    from ppdm.services.deploy import serve_files

    give(json, lambda: serve_files(files))


@app.command()
def doctor(home: HomeOption = None, json: Json = False) -> None:
    """What is running, who holds a lock, which keys and runs need care, and what to do."""
    from ppdm.cli.doctor import examine

    give(json, lambda: examine(home))


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--dir", help="Where to work.")] = Path("demo"),
    json: Json = False,
) -> None:
    """Two releases of one table: a noisy one that is published, a rotation that is refused."""
    from ppdm.cli.demo import run_demo

    give(json, lambda: run_demo(folder))


@key_app.command("backup")
def key_backup(
    out: Annotated[Path, typer.Option("--out", help="File to write; keep it off this machine.")],
    dataset: Annotated[
        str, typer.Argument(help="Name of the dataset; none: the home's own key.")
    ] = "",
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Write the key of a dataset, or of the home (it seals and signs), to a file."""
    from ppdm.cli.release import backup

    give(json, lambda: backup(dataset, out, home))


@key_app.command("restore")
def key_restore(
    file: Annotated[Path, typer.Argument(help="A file that `key backup` made.")],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Put a backed-up key in place."""
    from ppdm.cli.release import restore

    give(json, lambda: restore(file, home))


@key_app.command("public")
def key_public(
    out: Annotated[Path, typer.Option("--out", help="File to write; hand it to recipients.")],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Write the public key that recipients check signatures with."""
    from ppdm.cli.verify import export_public_key

    give(json, lambda: export_public_key(out, home))


def main(argv: list[str] | None = None) -> None:
    """Entry point; a wrong command line is bad input like any other."""
    from ppdm_core.model.errors import BadInput

    arguments = sys.argv[1:] if argv is None else argv
    try:
        code = app(args=arguments, prog_name="ppdm", standalone_mode=False)
    except typer.Abort:
        raise SystemExit(130) from None
    except typer.TyperException as error:
        message = error.format_message()
        if message.startswith("Usage:"):  # nothing was asked for, so this is the help
            print(message)
            raise SystemExit(0) from None
        complaint = BadInput(message, remedy="See: ppdm --help")
        give("--json" in arguments, failing(complaint))
    raise SystemExit(code or 0)


def failing(error: Exception) -> Callable[[], Answer]:
    def fail() -> Any:
        raise error

    return fail


if __name__ == "__main__":
    main()
