"""Build the view of a release from its stored facts, for one of the two editions."""

from __future__ import annotations

from collections.abc import Mapping

from ppdm_core.audit.disclosure_rounding import round_report
from ppdm_core.model.policy import UNDECIDED
from ppdm_core.model.score import AuditReport
from tasks.publish.report.account import build_account, describe_records, list_record_notes
from tasks.publish.report.checks import build_limits, list_gaps, list_promises, list_unprotected
from tasks.publish.report.columns import build_columns
from tasks.publish.report.facts import ReportFacts, build_judgement
from tasks.publish.report.outcome import (
    describe_stage,
    format_head_sentence,
    list_steps,
    name_limit_setters,
)
from tasks.publish.report.past import build_history
from tasks.publish.report.provenance import build_provenance
from tasks.publish.report.scores import (
    build_risks,
    build_utility,
    choose_worst,
    list_other_utility,
)
from tasks.publish.report.sites import LEDGERS, build_sites
from tasks.publish.report.tiles import build_bound_tile, build_risk_tiles, build_utility_tile
from tasks.publish.report.view import Edition, Head, ReportView, RiskLine
from tasks.release_summary import Summary
from warehouse.stages import Stage

EMPTY = AuditReport(())


def build_view(facts: ReportFacts, edition: Edition) -> ReportView:
    """Return everything that a report shows of a release.

    For recipients, scores are rounded before anything is built from them, and what is said of
    other releases, of columns and of dropped records is left out.
    """
    summary, is_rounded = facts.summary, edition == "recipients"
    policy = summary.settings.policy if summary.settings else None
    report = summary.report or EMPTY
    if is_rounded:
        report = round_report(report, policy.attacker.epsilon if policy else 0.0)
    judgement = build_judgement(summary)
    risks, utility = build_risks(report, judgement), build_utility(report, judgement)
    lines = tuple(line for group in risks for line in group.lines)
    compared = choose_worst(line for line in lines if line.goal == "link") or choose_worst(lines)
    history = None if is_rounded else build_history(facts, compared, next(iter(utility), None))
    has_scores = bool(report.scores)
    ledger = history.ledger if history else None
    bound = build_bound_tile(summary.guarantee, judgement, summary.ln_ledger, ledger)
    return ReportView(
        edition=edition,
        head=build_head(summary, lines, edition),
        tiles=(
            *build_risk_tiles(lines, is_rounded=is_rounded),
            build_utility_tile(utility, is_rounded=is_rounded),
            bound,
        )
        if has_scores
        else (),
        steps=() if is_rounded else list_steps(summary, lines, facts.tune),
        risks=risks,
        column_exposure=None
        if is_rounded
        else build_columns(facts.columns, summary.run.release_id),
        history=history,
        utility=utility,
        other_utility=list_other_utility(report),
        limits=build_limits(judgement, report, edition),
        data=None if is_rounded else build_account(summary),
        released=facts.released if is_rounded else None,
        columns=summary.sanitized.public.names if summary.sanitized else (),
        label=find_label(summary),
        record_notes=tuple(list_record_notes(summary, is_rounded=is_rounded)),
        promises=(
            *list_promises(summary.guarantee, summary.ledger),
            *([LEDGERS] if summary.sites else []),
        ),
        unprotected=tuple(list_unprotected(policy, find_label(summary))) if has_scores else (),
        gaps=list_gaps(report),
        sites=build_sites(summary.sites, edition, list_facts(summary)),
        provenance=build_provenance(facts, edition),
    )


def list_facts(summary: Summary) -> Mapping[str, float | str]:
    """Return the public facts of the method, none before the candidate is drawn."""
    return summary.sanitized.public.facts if summary.sanitized else {}


def find_label(summary: Summary) -> str | None:
    """Return the name of the released label, or None."""
    label = summary.validated.schema.label if summary.validated else None
    return label.name if label else None


def build_head(summary: Summary, lines: tuple[RiskLine, ...], edition: Edition) -> Head:
    """Return the head line; a recipients' edition exists only of what is published."""
    run, settings, is_rounded = summary.run, summary.settings, edition == "recipients"
    outcome, tone = describe_stage(Stage.PUBLISHED if is_rounded else run.stage)
    facts = [
        ("date", f"{run.started:%Y-%m-%d}"),
        ("method", summary.method),
        ("records", describe_records(summary, is_rounded=is_rounded)),
    ]
    if settings is not None:
        facts += [
            ("from", settings.owner or UNDECIDED),
            ("to", settings.audience or UNDECIDED),
            ("limits set by", name_limit_setters(settings.policy)),
        ]
    sentence = format_head_sentence(summary, lines, is_rounded=is_rounded)
    return Head(outcome, tone, run.release_id, sentence, tuple(facts))
