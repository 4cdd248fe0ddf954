"""The commands that draft, check, make, attack and judge releases.

Each command imports its module when it runs, so that help is fast and progress shown early.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ppdm.cli.options import File, HomeOption, Json, ReleaseId
from ppdm.cli.progress import (
    AUDIT_STEPS,
    CHECK_STEPS,
    DECIDE_STEPS,
    INIT_STEPS,
    RELEASE_STEPS,
    SELF_TEST_STEPS,
    TUNE_STEPS,
)
from ppdm.cli.result import CommandResult, run_command


def init(
    source: Annotated[
        str,
        typer.Argument(
            help="A file, a folder, a pattern in quotes, or the URL of a database or a bucket."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Release file to write.")],
    table: Annotated[
        str | None,
        typer.Option(
            "--table", help="Table of a database or sheet of a workbook, if there are several."
        ),
    ] = None,
    label: Annotated[
        str, typer.Option("--label", help="Column of the class, released unchanged.")
    ] = "",
    owner: Annotated[str, typer.Option("--owner", help="Author of the release.")] = "",
    audience: Annotated[str, typer.Option("--audience", help="Who will receive the release.")] = "",
    set_by: Annotated[
        str, typer.Option("--set-by", help="Person or body that sets the drafted limits.")
    ] = "",
    method: Annotated[
        str, typer.Option("--method", help="Method of the release; see `ppdm methods`.")
    ] = "",
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask in the terminal for what is not given.")
    ] = False,
    json: Json = False,
) -> None:
    """Draft a release file for a table. List what is left to decide."""

    def run() -> CommandResult:
        from ppdm.cli.init import Decided, draft_file

        decided = Decided(owner, audience, set_by, label, method=method)
        return draft_file(source, out, table, decided, ask=ask)

    run_command("init", run, INIT_STEPS, json=json, live=not ask)


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

    def run() -> CommandResult:
        from ppdm.cli.check import check_release_file

        return check_release_file(file, expectations)

    run_command("check", run, CHECK_STEPS, json=json)


def tune(
    file: File,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Release file to write; default: FILE with '_tuned'."),
    ] = None,
    utility: Annotated[
        list[str] | None,
        typer.Option(
            "--utility",
            help="What recipients need: best_accuracy, neighbourhoods, clusters, distances, "
            "correlation or frequencies; several have weights, as in clusters=2.",
        ),
    ] = None,
    methods: Annotated[
        str,
        typer.Option("--methods", help="Methods to try, separated by commas, or 'all'."),
    ] = "",
    settings: Annotated[
        int, typer.Option("--settings", help="The largest number of settings to try.")
    ] = 24,
    report: Annotated[
        Path | None, typer.Option("--report", help="HTML page to write; default: in the home.")
    ] = None,
    json: Json = False,
) -> None:
    """Search the settings of the best utility that keep the policy; publish nothing."""

    def run() -> CommandResult:
        from ppdm.cli.tune import TuneRequest, tune_file

        names = [name.strip() for name in methods.split(",") if name.strip()]
        return tune_file(file, TuneRequest(out, utility or [], names, settings, report))

    kept = "finished settings are kept"
    run_command("tune", run, TUNE_STEPS, json=json, kept=kept)


def release(
    file: File,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do everything except publishing.")
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", help="Your private key, in a home with reviewers' keys; default: $PPDM_KEY."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make, attack and judge a release; publish it if it passes."""
    from ppdm.cli.passphrase import ask_author_passphrase

    passphrase = ask_author_passphrase(key)

    def run() -> CommandResult:
        from ppdm.cli.release import release_file

        return release_file(file, dry_run, key, passphrase)

    run_command("release", run, RELEASE_STEPS, json=json)


def decide(
    release_id: ReleaseId,
    note: Annotated[str, typer.Option("--note", help="The reason; it is stored in the warehouse.")],
    approve: Annotated[bool, typer.Option("--approve", help="It may be published.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="It may not be published.")] = False,
    by: Annotated[
        str | None,
        typer.Option("--by", help="Your name for readers; your login or key identifies you."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="Your private key, in a home with reviewers' keys."),
    ] = None,
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Approve or reject a release that awaits review.

    It is published when it has enough approvals.
    """
    from ppdm.cli.passphrase import ask_passphrase

    passphrase = ask_passphrase(key)

    def run() -> CommandResult:
        from ppdm.cli.decide import decide_release, parse_choice

        choice = parse_choice(approve, reject)
        return decide_release(release_id, choice, note, by, home, key, passphrase)

    run_command("decide", run, DECIDE_STEPS, json=json)


def withdraw(
    release_id: ReleaseId,
    reason: Annotated[
        str, typer.Option("--reason", help="One line; it is published with the notice.")
    ],
    home: HomeOption = None,
    json: Json = False,
) -> None:
    """Withdraw a published version; a signed notice takes its place.

    `latest` steps back to the version before. Nothing is refunded in the ledger.
    """

    def run() -> CommandResult:
        from ppdm.cli.withdraw import withdraw_release

        return withdraw_release(release_id, reason, home)

    kept = "a withdrawal that was recorded is completed by the next command"
    run_command("withdraw", run, json=json, kept=kept)


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
    every: Annotated[
        bool, typer.Option("--all", help="Also print every score and what did not apply.")
    ] = False,
    json: Json = False,
) -> None:
    """Attack a release that any tool made.

    Tables are CSV, Parquet, or DuckDB as FILE::TABLE.
    """

    def run() -> CommandResult:
        from ppdm.cli.audit import audit_release

        return audit_release(
            original,
            released,
            control=control,
            known_records=known_records,
            sample=sample,
            unaligned=unaligned,
            policy=policy,
            label=label,
            report_file=report,
            every=every,
        )

    run_command("audit", run, AUDIT_STEPS, json=json)


def self_test(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of attacks; default: all.", metavar="NAME...")
    ] = None,
    json: Json = False,
) -> None:
    """Check that the attacks detect planted leaks, and none in noise."""

    def run() -> CommandResult:
        from ppdm.cli.self_test import run_self_test

        return run_self_test(names or [])

    run_command("self-test", run, SELF_TEST_STEPS, json=json)


def examples(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path("examples"),
    json: Json = False,
) -> None:
    """Write the example release files and their tables.

    Files that are there stay unchanged.
    """

    def run() -> CommandResult:
        from ppdm.cli.examples import write_examples

        return write_examples(folder)

    run_command("examples", run, json=json, kept="files that were written stay")


def demo(
    folder: Annotated[Path, typer.Option("--dir", help="Where to work.")] = Path("demo"),
    json: Json = False,
) -> None:
    """Release one table twice: one is published, one refused."""

    def run() -> CommandResult:
        from ppdm.cli.demo import run_demo

        return run_demo(folder)

    run_command("demo", run, RELEASE_STEPS, json=json)
