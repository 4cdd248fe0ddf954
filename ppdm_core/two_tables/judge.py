"""What a policy makes of the audit of two tables."""

from __future__ import annotations

from dataclasses import replace

from ppdm_core.gates.required_audits import GOALS, absent, covered, judged_attacks
from ppdm_core.gates.score_limits import is_sound, judge
from ppdm_core.model.attacker import Goal
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.verdict import Finding, Outcome, worst
from ppdm_core.two_tables.runner import NO_ALIGNMENT, NO_CONTROL, NOTHING_TO_PLAY


def judge_tables(report: AuditReport, policy: Policy) -> tuple[Outcome, tuple[Finding, ...]]:
    """PASS: all that the policy requires or limits was measured, every limit is surely kept, and
    each kind of risk that the files can tell about has one.

    FAIL: a limit is surely broken, or an audit failed. REVIEW: neither.
    """
    found = [required(report, name) for name in policy.required]
    for name, kind in report.failed.items():
        if name not in policy.required:
            found.append(Finding(f"failed.{name}", "FAIL", f"The audit {name} failed ({kind})."))
    told = {*policy.required, *report.failed}
    for key, limit in policy.limits.items():
        found.extend(limited(report, key, limit, told))
    if found:
        found.extend(judged_kinds(report, policy))
    found.extend(unread(report, name) for name in report.unread)
    found.extend(Finding("columns", "REVIEW", why) for why in report.doubts)
    findings = tuple(found)
    return worst(findings), findings


def judged_kinds(report: AuditReport, policy: Policy) -> list[Finding]:
    """A measured attack of each kind has a limit: on what a record holds or whose row it is, and,
    where there are people outside the release, on who is in it."""
    why = set(report.reasons.values())
    # Where no row belongs to anybody, nothing can be reconstructed or linked. It can be inferred,
    # or two files be put together by it.
    kinds: list[tuple[Goal, ...]] = [
        ("infer", "pair") if NO_ALIGNMENT in why else ("reconstruct", "link")
    ]
    if NO_CONTROL not in why:
        kinds.append(("member",))
    judged = judged_attacks(report, policy)
    findings = []
    for goals in kinds:
        finding = covered(" or ".join(GOALS[goal] for goal in goals), goals, judged, report)
        is_covered = finding.outcome == "PASS"
        findings.append(finding if is_covered else replace(finding, outcome="REVIEW"))
    return findings


def unread(report: AuditReport, name: str) -> Finding:
    if name in report.copied:
        why = f"Column '{name}' names people, as it stands in the original."
        return Finding(f"unread.{name}", "FAIL", why)
    why = f"Column '{name}' is in the release, and no attack reads it."
    return Finding(f"unread.{name}", "REVIEW", why)


def required(report: AuditReport, name: str) -> Finding:
    why = absent(report, name, {score.name.split(".")[0] for score in report.scores})
    if why is None:
        return Finding(f"required.{name}", "PASS", "It ran to its end.")
    if name in report.reasons:
        why = f"{why} {report.reasons[name]}"
    return Finding(f"required.{name}", "FAIL" if name in report.failed else "REVIEW", why)


def limited(report: AuditReport, key: str, limit: Limit, told: set[str]) -> list[Finding]:
    """The judgement, or that there is none; of audits that were ``told`` about, that is known."""
    name, measured = key.split(".")[0], {score.name.split(".")[0] for score in report.scores}
    for score in report.scores:
        if score.name == key:
            return [judged(score, limit)]
    reason = report.reasons.get(name) or report.skipped.get(name, "")
    if name not in measured and (name in told or reason in NOTHING_TO_PLAY):
        return []
    return [Finding(key, "REVIEW", f"{key} has a limit but was not measured. {reason}".strip())]


def judged(score: Score, limit: Limit) -> Finding:
    if not is_sound(score):
        return Finding(score.name, "FAIL", f"{score.name} could not be measured.")
    return judge(score, limit)
