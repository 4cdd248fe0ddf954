"""What a policy makes of the audit of two tables."""

from __future__ import annotations

from dataclasses import replace

from ppdm_core.gates.required_audits import absent
from ppdm_core.gates.score_limits import distances, is_sound, judge, limit_of
from ppdm_core.policy import Limit, Policy
from ppdm_core.types import AuditReport, Score
from ppdm_core.verdict import Finding, Outcome, worst


def judge_tables(report: AuditReport, policy: Policy) -> tuple[Outcome, tuple[Finding, ...]]:
    """PASS: all that the policy requires was measured, and every measured limit is surely kept.

    FAIL: one is surely broken, or an audit failed. REVIEW: neither. Limits on attacks that do not
    apply to this release judge nothing.
    """
    found = [required(report, name) for name in policy.required]
    for name, kind in report.failed.items():
        if name not in policy.required:
            found.append(Finding(f"failed.{name}", "FAIL", f"The audit {name} failed ({kind})."))
    told = {*policy.required, *report.failed, *report.skipped}
    for key, limit in policy.limits.items():
        found.extend(limited(report, key, limit, told))
    found.extend(unread(report, name) for name in report.unread)
    findings = tuple(found)
    return worst(findings), findings


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
    if name in told and name not in measured:
        return []
    reason = report.reasons.get(name, "")
    return [Finding(key, "REVIEW", f"{key} has a limit but was not measured. {reason}".strip())]


def judged(score: Score, limit: Limit) -> Finding:
    if not is_sound(score):
        return Finding(score.name, "FAIL", f"{score.name} could not be measured.")
    finding = judge(score, limit)
    is_broken = distances(score, limit)[0] > limit_of(score, limit)
    if finding.outcome == "FAIL" and not is_broken:
        return replace(finding, outcome="REVIEW")
    return finding
