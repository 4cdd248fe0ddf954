"""A release, its scores and its checks as the objects that `--json` prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ppdm.cli.panels import list_next_steps
from ppdm.cli.replies.releases import (
    AccountBody,
    ApprovalBody,
    FindingBody,
    ReleaseBody,
    ScoreBody,
    WithdrawalBody,
)
from ppdm_core.gates.score_limits import compute_limit
from ppdm_core.model.policy import AMPLIFICATION, Limit
from ppdm_core.model.reasons import Skip
from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Finding

if TYPE_CHECKING:
    from ppdm.cli.outcome import ReleaseOutcome
    from tasks.release_summary import Summary


def build_release(outcome: ReleaseOutcome) -> ReleaseBody:
    """Return everything that the warehouse holds of a release."""
    summary, run = outcome.summary, outcome.summary.run
    report = summary.report
    return ReleaseBody(
        release_id=run.release_id,
        dataset=run.dataset,
        version=f"{run.number:04d}" if summary.folder else None,
        stage=run.stage,
        started=run.started.isoformat(),
        method=summary.sanitized.method if summary.sanitized else None,
        verdict=summary.verdict.outcome if summary.verdict else None,
        guarantee=summary.guarantee.kind if summary.guarantee else None,
        ln_gammas={name: finite_or_none(value) for name, value in summary.ln_gammas().items()},
        findings=list_findings(summary),
        scores=[build_score(score) for score in report.scores] if report else [],
        skipped=format_skips(report.skipped) if report else {},
        failed=dict(report.failed) if report else {},
        approvals=list_approvals(summary),
        approvals_missing=summary.standing.missing if summary.standing else 0,
        ledger=AccountBody(**outcome.account) if outcome.account else None,
        records=summary.validated.n if summary.validated else None,
        repeated_rows=summary.validated.repeated_rows if summary.validated else None,
        published=str(summary.folder) if summary.folder else None,
        withdrawn=build_withdrawal(summary),
        next_steps=list_next_steps(outcome),
    )


def list_approvals(summary: Summary) -> list[ApprovalBody]:
    """Return the approvals that count, with the keys that signed them."""
    return [
        ApprovalBody(
            by=one.person.name,
            name=one.shown or "",
            at=f"{one.happened:%Y-%m-%d}",
            key=one.signed.signature.key if one.signed else None,
        )
        for one in summary.counted
    ]


def build_withdrawal(summary: Summary) -> WithdrawalBody | None:
    """Return when and why a release was withdrawn, or None."""
    found = summary.withdrawal
    return None if found is None else WithdrawalBody(at=found.at, reason=found.reason)


def list_findings(summary: Summary) -> list[FindingBody]:
    """Return the findings of a verdict with the figures that they judge."""
    findings = summary.verdict.findings if summary.verdict else ()
    scores = summary.report.scores if summary.report else ()
    limits = summary.settings.policy.limits if summary.settings else {}
    found = build_findings(findings, scores, limits)
    ln_gammas = summary.ln_gammas()
    return [add_gamma(one, ln_gammas, limits.get(one.check)) for one in found]


def build_findings(
    findings: Iterable[Finding], scores: Iterable[Score], limits: Mapping[str, Limit]
) -> list[FindingBody]:
    """Return findings with the scores that they judge."""
    by_name = {score.name: score for score in scores}
    return [build_finding(one, by_name.get(one.check), limits.get(one.check)) for one in findings]


def build_finding(finding: Finding, score: Score | None, limit: Limit | None) -> FindingBody:
    """Return one finding with its score and limit, if it has them."""
    names = {"check": finding.check, "outcome": finding.outcome, "why": finding.why}
    names |= {"remedy": finding.remedy} if finding.remedy else {}
    if score is None:
        return FindingBody.model_validate(names)
    return FindingBody.model_validate(
        {
            **names,
            "observed": finite_or_none(score.value),
            "low": finite_or_none(score.low),
            "high": finite_or_none(score.high),
            "baseline": finite_or_none(score.baseline),
            "limit": None if limit is None else finite_or_none(compute_limit(score, limit)),
        }
    )


def add_gamma(
    finding: FindingBody, ln_gammas: Mapping[str, float], limit: Limit | None
) -> FindingBody:
    """Return a finding on amplification with gamma and its limit; any other unchanged."""
    ln_gamma = ln_gammas.get(finding.check.removeprefix(AMPLIFICATION))
    if ln_gamma is None or limit is None:
        return finding
    gamma = math.exp(ln_gamma) if ln_gamma < math.log(1e300) else None
    return finding.model_copy(update={"observed": gamma, "limit": limit.value})


def build_score(score: Score) -> ScoreBody:
    """Return a score; figures that are not finite become None or are left out."""
    attack, scenario, metric = split_name(score)
    return ScoreBody(
        attack=attack,
        scenario=scenario,
        metric=metric,
        value=score.value,
        low=score.low,
        high=score.high,
        baseline=score.baseline,
        original=finite_or_none(score.original),
        n=score.n,
        worst_decile=finite_or_none(score.worst_decile),
        candidate=score.candidate,
        sentence=score.sentence,
        notes={name: value for name, value in score.notes.items() if math.isfinite(value)},
    )


def split_name(score: Score) -> tuple[str | None, str | None, str]:
    """Return attack, scenario and metric; a metric of the release itself has no attack."""
    *place, metric = score.name.split(".")
    return place[0] if place else None, place[1] if len(place) > 1 else None, metric


def format_skips(skips: Mapping[str, Skip]) -> dict[str, str]:
    """Return the sentence of each skipped audit."""
    return {name: skip.sentence for name, skip in skips.items()}


def finite_or_none(value: float | None) -> float | None:
    """Return the value, or None if it is not finite."""
    return value if value is not None and math.isfinite(value) else None
