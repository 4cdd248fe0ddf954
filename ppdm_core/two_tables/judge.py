"""Judge the audit of two tables by a policy."""

from __future__ import annotations

from dataclasses import replace

from ppdm_core.gates.decisions import judge_decisions, list_undecided_limits
from ppdm_core.gates.label import judge_coverage, judge_identity
from ppdm_core.gates.required_audits import (
    GOAL_NAMES,
    explain_absence,
    judge_goals,
)
from ppdm_core.gates.score_limits import find_metric, is_unbreakable, judge
from ppdm_core.model.attacker import Goal
from ppdm_core.model.policy import AMPLIFICATION, LEDGER, Limit, Policy
from ppdm_core.model.reasons import Reason
from ppdm_core.model.score import AuditReport, Score, is_sound
from ppdm_core.model.verdict import Finding, Outcome, worst

# Not a gap in the audit: other attacks run on the rest.
COMPLEMENTARY = frozenset({Reason.COLUMNS_RELEASED, Reason.NO_COMMON_COLUMN, Reason.NO_LABEL})


def judge_tables(report: AuditReport, policy: Policy) -> tuple[Outcome, tuple[Finding, ...]]:
    """Return the outcome and its findings.

    PASS: everything that the policy requires or limits was measured, every limit is surely kept,
    and each kind of risk that the tables can show has one. FAIL: a limit is surely broken, or an
    audit failed. REVIEW: neither.
    """
    found = [judge_required(report, name) for name in policy.required]
    for name, kind in report.failed.items():
        if name not in policy.required:
            found.append(Finding(f"failed.{name}", "FAIL", f"The audit {name} failed ({kind})."))
    reported = {*policy.required, *report.failed}
    for key, limit in policy.limits.items():
        found.extend(judge_limit(report, key, limit, reported))
    if found:
        found.extend(judge_kinds(report, policy))
    found.extend(judge_identity(report))
    undecided = list_undecided_limits(policy)
    found.extend([judge_decisions(undecided)] if undecided else [])
    found.extend(judge_unread(report, name) for name in report.unread)
    found.extend(Finding("row_order", "FAIL", why) for why in report.leaks)
    found.extend(Finding("doubt", "REVIEW", why) for why in report.doubts)
    findings = tuple(found)
    return worst(findings), findings


def judge_kinds(report: AuditReport, policy: Policy) -> list[Finding]:
    """Check that a measured attack of each kind of risk has a limit.

    The kinds are the content of a record or its row, the label and, where there are persons
    outside the release, membership.
    """
    reasons = {skip.reason for skip in report.not_run.values()}
    # Without alignment nothing can be reconstructed or linked. Values can still be inferred, and
    # two files be joined.
    kinds: list[tuple[Goal, ...]] = [
        ("infer", "pair") if Reason.NO_ALIGNMENT in reasons else ("reconstruct", "link")
    ]
    if Reason.NO_CONTROL not in reasons:
        kinds.append(("member",))
    findings = [judge_coverage(report, policy)]
    for goals in kinds:
        word = " or ".join(GOAL_NAMES[goal] for goal in goals)
        findings.append(judge_goals(word, goals, policy, report))
    return [
        each if each.outcome == "PASS" else replace(each, outcome="REVIEW") for each in findings
    ]


def judge_unread(report: AuditReport, name: str) -> Finding:
    """Return a FAIL for an original identifier in the release, a REVIEW for other columns."""
    if name in report.copied:
        why = f"Column '{name}' identifies persons, with the values of the original."
        return Finding(f"unread.{name}", "FAIL", why)
    why = f"Column '{name}' is in the release, and no attack reads it."
    return Finding(f"unread.{name}", "REVIEW", why)


def judge_required(report: AuditReport, name: str) -> Finding:
    """Return whether a required audit has a score."""
    why = explain_absence(report, name, {score.name.split(".")[0] for score in report.scores})
    if why is None:
        return Finding(f"required.{name}", "PASS", "It ran to its end.")
    if name in report.not_run:
        why = f"{why} {report.not_run[name].sentence}"
    return Finding(f"required.{name}", "FAIL" if name in report.failed else "REVIEW", why)


def judge_limit(report: AuditReport, key: str, limit: Limit, reported: set[str]) -> list[Finding]:
    """Judge a limit; none of an audit that is already ``reported`` as missing."""
    if key.startswith((AMPLIFICATION, LEDGER)):
        why = f"{key} cannot be judged: two files show neither the method nor other releases."
        return [Finding(key, "REVIEW", why)]
    name, measured = key.split(".")[0], {score.name.split(".")[0] for score in report.scores}
    for score in report.scores:
        if score.name == key:
            return [] if is_explained(score, limit) else [judge_score(score, limit)]
    skip = report.not_run.get(name) or report.skipped.get(name)
    is_complementary = skip is not None and skip.reason in COMPLEMENTARY
    if name not in measured and (name in reported or is_complementary):
        return []
    sentence = "" if skip is None else skip.sentence
    why = f"{key} has a limit but was not measured. {sentence}".strip()
    return [Finding(key, "REVIEW", why)]


def is_explained(score: Score, limit: Limit) -> bool:
    """Return whether chance explains any value of a fact, as that integers repeat.

    Such a fact shows nothing about this table, and other checks judge it.
    """
    is_fact = find_metric(score).interval_method == "none"
    return is_fact and is_sound(score) and is_unbreakable(score, limit)


def judge_score(score: Score, limit: Limit) -> Finding:
    """Judge one score; a score that is not a number fails."""
    if not is_sound(score):
        return Finding(score.name, "FAIL", f"{score.name} could not be measured.")
    return judge(score, limit)
