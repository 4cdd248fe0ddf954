"""The verdicts of all sites on the pool, and the verdict of the centre that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ppdm_core.audit.disclosure_rounding import format_sentence
from ppdm_core.metrics import METRICS
from ppdm_core.model.errors import BadInput
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.statement import SITE_VERDICT, Signature, is_signed
from ppdm_core.model.verdict import Finding, Verdict, worst
from tasks.centre.site_rows import SitePart
from tasks.context import ReleaseContext
from tasks.sites.exchange import Exchange
from warehouse.database import Run
from warehouse.messages.payloads import Outcome, Share, SiteVerdict
from warehouse.stage_facts import DensityErrors, SiteFacts, SitesFacts


class Figure(BaseModel):
    """A rounded score of a site."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    name: str
    kind: str
    better: str
    value: float
    low: float
    high: float
    baseline: float
    worst: float

    @model_validator(mode="after")
    def check_metric(self) -> Self:
        """Check that the figure is one of a metric, and which values of it are better."""
        metric = METRICS.get(self.name.split(".")[-1])
        if metric is None or (self.kind, self.better) != (metric.kind, metric.better):
            raise ValueError("No metric has such a figure.")
        return self


class DensityFigures(BaseModel):
    """Rounded errors of the densities of one class."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    category: str
    plug_in: Share
    held_out: Share
    mixture: Share


class Statement(BaseModel):
    """What a site signs about the pool."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    dataset: str
    session: str
    roll: str
    manifest: str
    pool: str
    outcome: Outcome
    approvals: Annotated[int, Field(ge=0)]  # by reviewers of the site, of a REVIEW
    broken: list[str]
    figures: list[Figure]
    errors: list[Share]
    densities: list[DensityFigures]
    policy: str
    code: str


def collect_verdicts(
    context: ReleaseContext, exchange: Exchange, parts: Sequence[SitePart], pool_digest: str
) -> SitesFacts:
    """Return the verdicts of all sites; raise BadInput for one that is not about this pool."""
    found = []
    for part in parts:
        message = exchange.receive(part.name, "verdict", SiteVerdict)
        statement = check_verdict(context, exchange, part, message, pool_digest)
        found.append(
            SiteFacts(
                name=part.name,
                rows=len(part.table.Y),
                manifest=part.manifest_digest,
                outcome=statement.outcome,
                approvals=statement.approvals,
                broken=tuple(statement.broken),
                errors=tuple(statement.errors),
                densities=tuple(DensityErrors(**dict(each)) for each in statement.densities),
                statement=message.statement,
                public=message.public,
                ed25519=message.ed25519,
            )
        )
    return SitesFacts(exchange.session.roll.digest, tuple(found))


def check_verdict(
    context: ReleaseContext,
    exchange: Exchange,
    part: SitePart,
    message: SiteVerdict,
    pool_digest: str,
) -> Statement:
    """Return what a site signed, if it is about this pool, this roll and its own rows."""
    roll = exchange.session.roll
    signature = Signature(message.public, message.ed25519)
    expected = {
        "dataset": roll.dataset,
        "session": roll.session,
        "roll": roll.digest,
        "manifest": part.manifest_digest,
        "pool": pool_digest,
    }
    try:
        statement = Statement.model_validate(message.statement)
    except ValidationError:
        raise bad_verdict(part.name, "does not have the form of a verdict") from None
    if any(getattr(statement, name) != value for name, value in expected.items()):
        raise bad_verdict(part.name, "is not about this pool")
    categories = context.label.categories if context.label else ()
    if statement.densities and categories != tuple(each.category for each in statement.densities):
        raise bad_verdict(part.name, "has densities of other classes than the roll")
    is_own = message.public == roll.find(part.name).public
    if not is_own or not is_signed(SITE_VERDICT, message.statement, signature):
        raise bad_verdict(part.name, "is not signed by that site")
    return statement


def bad_verdict(site: str, what: str) -> BadInput:
    """Return the error of a verdict that cannot be used."""
    return BadInput(f"The verdict of '{site}' {what}.", remedy="Ask that site what it sent.")


def reach_pool_verdict(
    context: ReleaseContext,
    run: Run,
    sites: SitesFacts,
    pool_digest: str,
    own: Sequence[Finding] = (),
) -> Verdict:
    """Return PASS if every site allows the pool, else FAIL; each site is one check.

    ``own`` are the findings of the centre, where it judges the pool by limits of its own.

    A site allows it by a PASS, or by a REVIEW that its own reviewers approved; no reviewer of the
    centre decides for a site. The checks have numbers, because recipients read them and not the
    names of sites.
    """
    findings = tuple(
        Finding(f"site.{number}", "PASS" if site.allows else "FAIL", describe_site(site))
        for number, site in enumerate(sites.sites, start=1)
    )
    findings += tuple(own)
    return Verdict(
        outcome=worst(findings),
        findings=findings,
        policy_digest=context.policy.digest,
        data_digest=pool_digest,
        code_version=run.code_version,
    )


def describe_site(site: SiteFacts) -> str:
    """Return the verdict of a site in words."""
    if site.outcome == "PASS":
        return "Its attacks kept its limits."
    checks = ", ".join(site.broken)
    approved = " Its reviewers approved it." if site.allows else ""
    return f"Its attacks ended as {site.outcome}: {checks}.{approved}"


def merge_figures(
    sites: SitesFacts, n: int, epsilon: float, own: Sequence[Mapping[str, Any]] = ()
) -> AuditReport:
    """Return the least favourable figure for each score, of all sites and the centre's own."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for figures in (*(site.statement["figures"] for site in sites.sites), own):
        for figure in figures:
            found.setdefault(figure["name"], []).append(figure)
    scores = []
    for name, figures in found.items():
        pick = max if figures[0]["better"] == "down" else min
        chosen = pick(figures, key=lambda each: each["value"])
        fields = {key: chosen[key] for key in ("kind", "better", "value", "baseline", "worst")}
        low, high = min(chosen["low"], chosen["value"]), max(chosen["high"], chosen["value"])
        score = Score(name=name, low=low, high=high, n=n, **fields)
        scores.append(replace(score, sentence=format_sentence(score, epsilon)))
    return AuditReport(tuple(scores))
