"""`ppdm report`: write the report of a release as one HTML page; also that of `ppdm audit`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm.cli.console import shorten_path
from ppdm.cli.home import check_new_file, open_home
from ppdm.cli.replies.others import ReportReply
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput

if TYPE_CHECKING:
    from ppdm.cli.audit_view import JudgedTables
    from tasks.publish.report.facts import ReportFacts
    from warehouse.database import Store
    from warehouse.stage_facts import ColumnFacts

FOLDER = "reports"  # below the private folder of a home
ENDINGS = (".html", ".htm")


def write_release_report(
    release_id: str, out: Path | None, open_page: bool, columns: bool, home: Path | None
) -> CommandResult:
    """Write the steward's edition of a release, and open it in a browser if asked for.

    ``columns``: measure which columns drive the risk if the audit left it out.
    """
    from ppdm.cli.release_ids import find_run
    from tasks.publish.report.build import build_view
    from tasks.publish.report.facts import read_report_facts
    from tasks.publish.report.render import render_report

    store = open_home(home)
    check_report_file(out)
    with store.transaction(f"report {release_id}") as db:
        name = find_run(db, release_id).release_id
    facts = read_report_facts(store, name)
    if columns and (facts.columns is None or facts.columns.risks is None):
        facts = replace(facts, columns=measure_columns(store, facts))
    path = out or store.home.private / FOLDER / f"{name}.html"
    write_page(path, render_report(build_view(facts, "steward")))
    lines = [f"The report of {name} is in {shorten_path(path)}. It is not for recipients."]
    if facts.summary.folder:
        lines.append(f"Theirs is in {shorten_path(facts.summary.folder / 'report.html')}.")
    if open_page and not open_in_browser(path):
        lines.append("No browser was found to open it.")
    reply = ReportReply(release_id=name, report=str(path.absolute()))
    return CommandResult("\n".join(lines), reply.as_payload())


def measure_columns(store: Store, facts: ReportFacts) -> ColumnFacts:
    """Return which columns drive the risk of a release; raise BadInput if that is not possible."""
    from flows.config.context import build_context
    from flows.config.release_file import ReleaseFile
    from tasks.audit.column_question import measure_stored_release
    from warehouse.runs import has_validated_table

    run, settings = facts.summary.run, facts.summary.settings
    with store.transaction(f"columns of {run.release_id}") as db:
        is_stored = has_validated_table(db, run)
    if settings is None or facts.summary.report is None or not is_stored:
        raise BadInput(
            f"The columns of {run.release_id} cannot be measured: its records are not stored.",
            remedy="Ask after the latest release of a dataset, or set 'keep_raw' in [dataset].",
        )
    file = ReleaseFile.model_validate_json(settings.file)
    return measure_stored_release(store, build_context(file), run)


def write_table_report(path: Path, judged: JudgedTables) -> None:
    """Write the report of an audit of two tables."""
    from ppdm.table_report import build_table_view
    from tasks.publish.report.render import render_report

    write_page(path, render_report(build_table_view(judged)))


def check_report_file(out: Path | None) -> None:
    """Raise BadInput if a report cannot be written to this file."""
    if out is None:
        return
    check_new_file(out)
    if out.suffix not in ENDINGS:
        raise BadInput(
            "The report is written as HTML.",
            file=str(out),
            remedy="Name a file that ends in .html.",
        )


def write_page(path: Path, page: str) -> None:
    """Write a page, and its folder if need be."""
    from warehouse.home import translate_disk_errors

    with translate_disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")


def open_in_browser(path: Path) -> bool:
    """Open a page in the browser of this machine; return whether there is one."""
    import webbrowser

    return webbrowser.open(path.absolute().as_uri())
