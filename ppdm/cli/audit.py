"""`ppdm audit`: attack a release that any tool made, and report what an attacker gets."""

from __future__ import annotations

import math
from pathlib import Path

from ppdm.cli.audit_view import JudgedTables, render_audit
from ppdm.cli.release_reply import build_findings, build_score, format_skips
from ppdm.cli.replies.releases import AuditReply
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput, PpdmError, Refused, Undecided
from ppdm_core.model.verdict import Outcome

ERRORS: dict[Outcome, type[PpdmError] | None] = {"PASS": None, "REVIEW": Undecided, "FAIL": Refused}


def audit_release(
    original: Path,
    released: Path,
    *,
    control: Path | None = None,
    known_records: str | None = None,
    sample: str | None = None,
    unaligned: bool = False,
    policy: Path | None = None,
    label: str | None = None,
    report_file: Path | None = None,
    every: bool = False,
) -> CommandResult:
    """Attack a release in files and judge it by a policy; write only the report, if asked for.

    ``every`` also prints all scores, and what was left out or did not apply.
    """
    from ppdm.cli.report import check_report_file, write_table_report
    from ppdm.cli.table_audit import AuditedFiles, audit_files
    from ppdm_core.two_tables.judge import judge_tables

    check_report_file(report_file)
    files = AuditedFiles(
        original=str(original),
        released=str(released),
        control=None if control is None else str(control),
        known=parse_number_or_file("--known-records", known_records),
        sample=parse_number_or_file("--sample", sample),
        aligned=False if unaligned else None,
        label=label,
    )
    case, loaded_policy, report = audit_files(files, policy)
    outcome, findings = judge_tables(report, loaded_policy)
    judged = JudgedTables(files, case, loaded_policy, report, outcome, findings)
    if report_file is not None:
        write_table_report(report_file, judged)
    return build_result(judged, every)


def parse_number_or_file(option: str, given: str | None) -> str | float | None:
    """Return the number of records or the file that an option names; raise BadInput else."""
    if given is None or Path(given).exists():
        return given
    try:
        number = float(given)
    except ValueError:
        return given  # a file that does not exist: its reader raises the error
    is_count = number.is_integer() or (option == "--sample" and number < 1)
    if not (math.isfinite(number) and number >= 0 and is_count):
        raise BadInput(
            f"{option} takes a number of records or a file.",
            remedy="Give a whole number, or for --sample also a share below 1.",
        )
    return number


def build_result(judged: JudgedTables, every: bool) -> CommandResult:
    """Return the verdict with its scores and findings; the exit code follows from it."""
    kind = ERRORS[judged.outcome]
    decisive = [finding for finding in judged.findings if finding.outcome == judged.outcome]
    error = None if kind is None else kind(decisive[0].text if decisive else "Nothing was judged.")
    report, case = judged.report, judged.case
    reply = AuditReply(
        original=judged.files.original,
        released=judged.files.released,
        records=len(case.truth.X),
        columns=list(case.truth.schema.names),
        left_out=dict(case.left_out),
        taken_for=dict(case.matched),
        control_left_out=case.control_overlap,
        scores=[build_score(score) for score in report.scores],
        skipped=format_skips(report.skipped),
        failed=dict(report.failed),
        not_run=format_skips(report.not_run),
        verdict=judged.outcome,
        findings=build_findings(judged.findings, report.scores, judged.policy.limits),
    )
    return CommandResult(
        render_audit(judged, every),
        reply.as_payload(),
        exit_code=0 if error is None else error.exit_code,
        error=error,
    )
