"""The checks of a verdict, what was not tried, and what a method promises."""

from __future__ import annotations

from collections.abc import Mapping

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.disclosure_rounding import format_bound
from ppdm_core.metrics import METRICS
from ppdm_core.model.policy import AMPLIFICATION, LABEL, LEDGER, Policy
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding
from tasks.publish.report.scores import Judgement, find_title
from tasks.publish.report.view import Edition, Gap, LimitLine
from tasks.publish.report.words import format_ln_gamma


def build_limits(
    judgement: Judgement, report: AuditReport, edition: Edition
) -> tuple[LimitLine, ...]:
    """Return every check; ``report`` is rounded for recipients, who read no exact figure.

    Of checks without a score, recipients read only the outcome.
    """
    scores = {score.name: score for score in report.scores}
    lines = []
    for finding in judgement.findings.values():
        limit, score = judgement.limits.get(finding.check), scores.get(finding.check)
        observed, sentence = finding.observed, finding.why
        if edition == "steward":
            sentence = finding.text
        if edition == "recipients" and not finding.check.startswith(AMPLIFICATION):
            observed = format_bound(score) if score else ""
            sentence = score.sentence if score else describe_public(finding)
        lines.append(
            LimitLine(
                check=finding.check,
                title=name_check(finding.check),
                outcome=finding.outcome,
                observed=observed,
                limit=finding.limit,
                set_by=limit.set_by if limit else "",
                reason=limit.reason if limit and edition == "steward" else "",
                sentence=sentence,
            )
        )
    return tuple(lines)


def name_check(check: str) -> str:
    """Return the title of a check that compares a score or a bound with a limit, or ""."""
    if check.startswith(AMPLIFICATION):
        return f"Worst-case bound of one {check.removeprefix(AMPLIFICATION)}"
    if check.startswith(LEDGER):
        return "Sum over all releases"
    first = check.split(".")[0]
    return find_title(check) if first in ATTACKS or first in METRICS or first == LABEL else ""


def describe_public(finding: Finding) -> str:
    """Return what recipients read of a check without a score."""
    return "It holds." if finding.outcome == "PASS" else "A reviewer decided about it."


def list_gaps(report: AuditReport) -> tuple[Gap, ...]:
    """Return what was not tried and why, with audits of the same reason together."""
    reasons: dict[str, list[str]] = {}
    for found in (report.skipped, report.not_run):
        for name, skip in found.items():
            reasons.setdefault(skip.sentence, []).append(find_title(name))
    for name, kind in report.failed.items():
        reasons.setdefault(f"Failed ({kind}).", []).append(find_title(name))
    return tuple(Gap(tuple(names), why) for why, names in reasons.items())


def list_promises(guarantee: Guarantee | None, ledger: Mapping[str, object] | None) -> list[str]:
    """Return what the method proves about a release, one sentence each."""
    if guarantee is None:
        return []
    if guarantee.kind == "empirical":
        promises = ["No worst-case bound: only what the attacks measured."]
    else:
        component, attribute, record = map(
            format_ln_gamma, (guarantee.ln_component, guarantee.ln_attribute, guarantee.ln_record)
        )
        promises = [
            "One released row changes the odds of any statement at most by a factor (gamma): "
            f"{component} about a component, {attribute} about an attribute, {record} about a "
            "record."
        ]
    if guarantee.kind == "bounded_given_basis":
        promises.append(
            "This is a weaker promise than an unconditional bound: it does not cover what is "
            "named below."
        )
    promises += guarantee.assumptions
    if ledger is not None:
        audience = " to this audience" if ledger.get("collusion_waiver") else ""
        draws = ledger.get("draws")
        more = f" Draws of one record without a bound: up to {draws:,}." if draws else ""
        promises.append(
            f"All releases{audience} so far, for the record that was redrawn most often: gamma "
            f"{ledger['gamma_so_far']}.{more}"
        )
    return promises


def list_unprotected(policy: Policy | None, label: str | None) -> list[str]:
    """Return what a release does not protect, one sentence each."""
    found = []
    if label is not None:
        found.append(
            "The label is released as it is; what follows from the label alone is not hidden."
        )
    found.append(
        "It is not hidden that a record is in the release, when it changed, and which of its "
        "versions are equal."
    )
    if policy and "amplification" in policy.unlimited:
        found.append(
            "No limit is set on amplification: by how much a row may change the odds was not "
            "judged."
        )
    if policy and "ledger" in policy.unlimited:
        found.append(
            "No limit is set on the ledger: what all releases add up to was not judged, and "
            "further releases may add to it."
        )
    found.append(
        "Only the attacks in this report were run. An attacker who knows more can do more."
    )
    return found
