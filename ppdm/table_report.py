"""The report of an audit of two tables, in the same view as that of a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.verdict import Finding, Outcome
from ppdm_core.two_tables.comparison import TableComparison
from tasks.publish.report.checks import build_limits, list_gaps
from tasks.publish.report.outcome import lower_first, name_attacker, name_limit_setters
from tasks.publish.report.scores import (
    Judgement,
    build_risks,
    build_utility,
    choose_worst,
    format_risk,
    list_other_utility,
)
from tasks.publish.report.tiles import build_risk_tiles, build_utility_tile
from tasks.publish.report.view import Gap, Head, ReportView, RiskLine, Step, Tone

if TYPE_CHECKING:
    from ppdm.cli.audit_view import JudgedTables

TONES: dict[Outcome, Tone] = {"PASS": "pass", "REVIEW": "review", "FAIL": "fail"}
STEPS: dict[Outcome, str] = {
    "PASS": "Every limit of the policy was kept. The attacks below are those that the files allow.",
    "REVIEW": "The measurements leave the decision open: a person decides about the checks below.",
    "FAIL": "Do not hand out this file: change how it is made, and audit it again.",
}


def build_table_view(judged: JudgedTables) -> ReportView:
    """Return what a report shows of a released table."""
    case, policy, report = judged.case, judged.policy, judged.report
    outcome, findings = judged.outcome, judged.findings
    released, original = Path(judged.files.released).name, Path(judged.files.original).name
    judgement = Judgement.of(policy.limits, findings)
    risks, utility = build_risks(report, judgement), build_utility(report, judgement)
    lines = tuple(line for group in risks for line in group.lines)
    left_out = tuple(Gap((f"Column {name}",), why) for name, why in case.left_out.items())
    return ReportView(
        edition="steward",
        head=Head(
            outcome=outcome,
            tone=TONES[outcome],
            subject=released,
            sentence=format_sentence(lines, outcome, findings),
            facts=(
                ("released file", released),
                ("original file", original),
                ("records", f"{len(case.truth.X):,}"),
                ("rows", "aligned" if case.is_declared_aligned else "not aligned"),
                ("control", describe_control(case)),
                ("limits set by", name_limit_setters(policy)),
            ),
        ),
        tiles=(
            *build_risk_tiles(lines, is_rounded=False),
            build_utility_tile(utility, is_rounded=False),
        ),
        steps=(Step(STEPS[outcome]),),
        risks=risks,
        utility=utility,
        other_utility=list_other_utility(report),
        limits=build_limits(judgement, report, "steward"),
        unprotected=("Only the attacks in this report were run on these two files.",),
        gaps=(*left_out, *list_gaps(report)),
    )


def format_sentence(
    lines: tuple[RiskLine, ...], outcome: Outcome, findings: tuple[Finding, ...]
) -> str:
    """Return why the audit ended as it did."""
    line = choose_worst(line for line in lines if line.limit is not None)
    if line is not None and (outcome == "PASS" or line.outcome == outcome):
        return f"{name_attacker(line)}: {lower_first(format_risk(line, is_rounded=False))}"
    decisive = next((finding.why for finding in findings if finding.outcome == outcome), "")
    return decisive or "Nothing was judged."


def describe_control(case: TableComparison) -> str:
    """Return how many persons outside the release were given."""
    if case.all_persons is None:
        return "none"
    return f"{len(case.all_persons.X) - len(case.truth.X):,} records"
