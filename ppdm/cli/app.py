"""The command line `ppdm`: its commands, and how a wrong command line is reported."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from ppdm.cli import (
    cluster_commands,
    home_commands,
    release_commands,
    reviewer_commands,
    service_commands,
    site_commands,
    study_commands,
)
from ppdm.cli.options import EXIT_CODES
from ppdm.cli.result import run_command

SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "epilog": EXIT_CODES,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
app = typer.Typer(
    pretty_exceptions_enable=False,
    help="Release privacy-perturbed tables: sanitize, attack, gate, publish.",
    **SETTINGS,
)
key_app = typer.Typer(help="Back up, restore and publish keys.", **SETTINGS)
site_app = typer.Typer(help="Take part in a common release of several sites.", **SETTINGS)
centre_app = typer.Typer(help="Pool and publish a common release of several sites.", **SETTINGS)
cluster_app = typer.Typer(help="Try a release on several workers.", **SETTINGS)
reviewer_app = typer.Typer(help="Make, enrol and remove the keys of reviewers.", **SETTINGS)


@app.callback(invoke_without_command=True)
def handle_global_options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Handle options that stand before a command."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"ppdm {installed('ppdm')}")
        raise typer.Exit


for command in (
    release_commands.init,
    release_commands.check,
    release_commands.tune,
    release_commands.release,
    release_commands.decide,
    release_commands.withdraw,
    home_commands.status,
    home_commands.show,
    home_commands.diff,
    home_commands.report,
    home_commands.ledger,
    home_commands.history,
    home_commands.verify,
    release_commands.audit,
    release_commands.self_test,
    home_commands.methods,
    home_commands.schema,
    service_commands.up,
    service_commands.down,
    service_commands.serve,
    service_commands.doctor,
    release_commands.examples,
    release_commands.demo,
    study_commands.reproduce,
):
    app.command(epilog=EXIT_CODES)(command)
for key_command in (service_commands.backup, service_commands.restore, service_commands.public):
    key_app.command(epilog=EXIT_CODES)(key_command)
app.add_typer(key_app, name="key")
for cluster_command in (cluster_commands.up, cluster_commands.down):
    cluster_app.command(epilog=EXIT_CODES)(cluster_command)
app.add_typer(cluster_app, name="cluster")
for reviewer_command in (reviewer_commands.key, reviewer_commands.add, reviewer_commands.remove):
    reviewer_app.command(epilog=EXIT_CODES)(reviewer_command)
reviewer_app.command("list", epilog=EXIT_CODES)(reviewer_commands.list_keys)
app.add_typer(reviewer_app, name="reviewer")
site_app.command(epilog=EXIT_CODES)(site_commands.join)
site_app.command("run", epilog=EXIT_CODES)(site_commands.run_site)
site_app.command("status", epilog=EXIT_CODES)(site_commands.show_site)
app.add_typer(site_app, name="site")
centre_app.command(epilog=EXIT_CODES)(site_commands.init)
centre_app.command("run", epilog=EXIT_CODES)(site_commands.run_centre)
centre_app.command("status", epilog=EXIT_CODES)(site_commands.show_centre)
app.add_typer(centre_app, name="centre")


def main(argv: list[str] | None = None) -> None:
    """Run the command line; a wrong one is reported as bad input."""
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
        report_bad_command(message, arguments)
    raise SystemExit(code or 0)


def report_bad_command(message: str, arguments: list[str]) -> None:
    """Report a wrong command line as bad input."""
    from ppdm_core.model.errors import BadInput

    def run() -> Any:
        raise BadInput(message, remedy="See: ppdm --help")

    name = next((each for each in arguments if not each.startswith("-")), "ppdm")
    run_command(name, run, json="--json" in arguments)


if __name__ == "__main__":
    main()
