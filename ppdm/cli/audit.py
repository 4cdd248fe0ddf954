"""`ppdm audit`: attack a release that any tool made, and report what an attacker gets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm.cli.console import format_lines, format_table, wrap_item, wrap_text
from ppdm.cli.progress import show_progress
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput, PpdmError, Refused, Undecided
from ppdm_core.model.reasons import Skip
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.verdict import Finding, Outcome

if TYPE_CHECKING:
    from ppdm.cli.table_audit import AuditedFiles
    from ppdm_core.two_tables.comparison import TableComparison

ERRORS: dict[Outcome, type[PpdmError] | None] = {"PASS": None, "REVIEW": Undecided, "FAIL": Refused}
TABLE_COLUMNS = ("attack", "metric", "value", "interval", "baseline", "n")


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
) -> CommandResult:
    """Attack a release in files and judge it by a policy; write only the report, if asked for."""
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
    with show_progress():
        case, loaded_policy, report = audit_files(files, policy)
    outcome, findings = judge_tables(report, loaded_policy)
    if report_file is not None:
        write_table_report(report_file, files, case, loaded_policy, report, outcome, findings)
    return build_result(files, case, report, outcome, findings)


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


def build_result(
    files: AuditedFiles,
    case: TableComparison,
    report: AuditReport,
    outcome: Outcome,
    findings: tuple[Finding, ...],
) -> CommandResult:
    """Return scores, verdict and findings; the exit code follows from the outcome."""
    kind = ERRORS[outcome]
    decisive = [finding for finding in findings if finding.outcome == outcome]
    error = None if kind is None else kind(decisive[0].why if decisive else "Nothing was judged.")
    payload = {
        "original": files.original,
        "released": files.released,
        "records": len(case.truth.X),
        "columns": list(case.truth.schema.names),
        "left_out": dict(case.left_out),
        "taken_for": dict(case.matched),
        "control_left_out": case.control_overlap,
        "scores": [score_as_dict(score) for score in report.scores],
        "skipped": format_skips(report.skipped),
        "failed": dict(report.failed),
        "not_run": format_skips(report.not_run),
        "verdict": outcome,
        "findings": [asdict(finding) for finding in findings],
    }
    text = format_lines(format_result(files, case, report, outcome, findings))
    return CommandResult(
        text, payload, exit_code=0 if error is None else error.exit_code, error=error
    )


def score_as_dict(score: Score) -> dict[str, Any]:
    """Return a score as the JSON object that `--json` prints."""
    attack, scenario, metric = split_name(score)
    return {
        "attack": attack,
        "metric": metric,
        **({"scenario": scenario} if scenario else {}),
        "value": score.value,
        "low": score.low,
        "high": score.high,
        "baseline": score.baseline,
        "n": score.n,
        "worst_decile": score.worst_decile,
        "candidate": score.candidate,
        "sentence": score.sentence,
        "notes": dict(score.notes),
    }


def split_name(score: Score) -> tuple[str | None, str | None, str]:
    """Return attack, scenario and metric; a metric of the release itself has no attack."""
    *place, metric = score.name.split(".")
    return place[0] if place else None, place[1] if len(place) > 1 else None, metric


def format_result(
    files: AuditedFiles,
    case: TableComparison,
    report: AuditReport,
    outcome: Outcome,
    findings: tuple[Finding, ...],
) -> Iterator[str]:
    """Yield the lines: heading, table of scores, sentences, what was left out, verdict."""
    yield from format_heading(files, case)
    yield ""
    table = format_table(map(format_cells, report.scores), TABLE_COLUMNS, right=range(2, 6))
    yield from table.splitlines()
    yield ""
    below = {finding.check for finding in findings if finding.outcome != "PASS"}
    chosen = choose_scores(report.scores, findings)
    for sentence in dict.fromkeys(score.sentence for score in chosen if score.name not in below):
        yield from wrap_item(sentence)
    yield from format_reasons("Left out", case.left_out)
    yield from format_reasons("Not run", format_skips(report.not_run))
    yield from format_reasons("Does not apply", format_skips(report.skipped))
    yield from format_reasons("Failed", report.failed)
    yield ""
    yield outcome
    for finding in sorted(findings, key=lambda finding: finding.outcome):
        if finding.outcome != "PASS":
            observed = f" {finding.observed}" if finding.observed else ""
            yield from wrap_item(f"{finding.outcome} {finding.check}{observed}: {finding.why}")


def format_heading(files: AuditedFiles, case: TableComparison) -> Iterator[str]:
    """Yield what is compared: tables, columns, alignment and control."""
    d, s = len(case.truth.schema.numeric), case.draw.Y.shape[1]
    space = f"{d} columns in common" if case.is_common else f"{d} columns against {s} others"
    outside = 0 if case.all_persons is None else len(case.all_persons.X) - len(case.truth.X)
    control = f"{outside:,} records in the control" if outside else "no control"
    alignment = "rows aligned" if case.is_declared_aligned else "rows not aligned"
    names = f"{Path(files.released).name} against {Path(files.original).name}"
    yield f"{names}: {len(case.truth.X):,} records, {space}, {alignment}, {control}."
    if not case.aligned:
        yield "The numbers of rows differ: judged by the policy for synthetic data."
    if case.draw.public.preserves_distances:
        yield "The release preserves every distance between records, up to a change of scale."
    if case.matched:
        (first, own), *others = case.matched.items()
        more = "".join(f", {name} with {original}" for name, original in others)
        line = f"By its values, column {first} is matched with {own}{more}."
        yield from wrap_text(line, rest="  ")
    if case.control_overlap == 1:
        yield "1 row of the control is a row of the original, and was left out."
    elif case.control_overlap:
        count = f"{case.control_overlap:,}"
        yield f"{count} rows of the control are rows of the original, and were left out."


def choose_scores(scores: tuple[Score, ...], findings: tuple[Finding, ...]) -> list[Score]:
    """Return one score of each attack and scenario: the judged one, or else the first."""
    judged = {finding.check for finding in findings}
    found: dict[tuple[str | None, str | None, str], Score] = {}
    for score in sorted(scores, key=lambda score: score.name not in judged):
        attack, scenario, metric = split_name(score)
        found.setdefault((attack, scenario, "" if attack else metric), score)
    return [score for score in scores if score in found.values()]


def format_cells(score: Score) -> tuple[str, ...]:
    """Return the cells of one score in the order of TABLE_COLUMNS."""
    attack, scenario, metric = split_name(score)
    where = " ".join(filter(None, (attack or "(release)", f"({scenario})" if scenario else "")))
    interval = f"{score.low:.3f} to {score.high:.3f}"
    return where, metric, f"{score.value:.3f}", interval, f"{score.baseline:.3f}", f"{score.n:,}"


def format_skips(skips: Mapping[str, Skip]) -> dict[str, str]:
    """Return the sentence of each skipped audit."""
    return {name: skip.sentence for name, skip in skips.items()}


def format_reasons(title: str, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield one wrapped line for each reason, with all names that have it."""
    grouped: dict[str, list[str]] = {}
    for name, why in reasons.items():
        grouped.setdefault(f"{why[0].upper()}{why[1:].rstrip('.')}.", []).append(name)
    for sentence, names in grouped.items():
        line = f"{title}: {', '.join(names)}. {sentence}"
        yield from wrap_text(line, rest="  ")
