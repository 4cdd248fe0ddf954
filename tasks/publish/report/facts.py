"""What the warehouse holds of a release and its dataset, as far as a report shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ppdm_core.model.verdict import Outcome
from tasks.publish.report.scores import Judgement, build_risks, build_utility, choose_worst
from tasks.release_summary import Summary, summarize_run
from tasks.tune.result import TuneResult, load_tune
from warehouse.database import Store, get_run
from warehouse.dataset_history import PastRelease, read_events, read_past_releases
from warehouse.ledger.entries import read_entries
from warehouse.publishing.released_profile import ReleasedProfile
from warehouse.stage_facts import ColumnFacts, SitesFacts, find_facts
from warehouse.transaction import Transaction


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """A release with its events, the other releases of its dataset and their ledger.

    The recipients' edition needs only the summary and the profile of the released table.
    """

    summary: Summary
    events: Sequence[Mapping[str, Any]] = ()
    releases: Sequence[PastRelease] = ()
    entries: Sequence[Mapping[str, Any]] = ()  # of the ledger
    columns: ColumnFacts | None = None
    released: ReleasedProfile | None = None  # for recipients
    tune: TuneResult | None = None  # the last one of the dataset


def read_report_facts(store: Store, release_id: str) -> ReportFacts:
    """Return everything that the steward's edition shows of a release."""
    with store.transaction(f"report of {release_id}") as db:
        return collect_report_facts(db, summarize_run(db, get_run(db, release_id)))


def collect_report_facts(db: Transaction, summary: Summary) -> ReportFacts:
    """Return a summary with everything else that the steward's edition shows."""
    dataset = summary.run.dataset
    return ReportFacts(
        summary=summary,
        events=read_events(db, summary.run.release_id),
        releases=read_past_releases(db, dataset, name_compared_scores(summary)),
        entries=read_entries(db, dataset),
        columns=find_facts(db, summary.run.release_id, ColumnFacts),
        tune=load_tune(db, dataset),
    )


def name_compared_scores(summary: Summary) -> list[str]:
    """Return the scores of risk and use by which releases of the dataset are compared."""
    if summary.report is None:
        return []
    judgement = build_judgement(summary)
    lines = [line for group in build_risks(summary.report, judgement) for line in group.lines]
    risk = choose_worst(line for line in lines if line.goal == "link") or choose_worst(lines)
    utility = build_utility(summary.report, judgement)
    return [line.name for line in (risk, *utility[:1]) if line is not None]


def build_judgement(summary: Summary) -> Judgement:
    """Return limits and findings of a release, as far as there are any."""
    limits = summary.settings.policy.limits if summary.settings else {}
    judgement = Judgement.of(limits, summary.verdict.findings if summary.verdict else ())
    if summary.sites is None:
        return judgement
    return replace(judgement, by_sites=combine_sites(summary.sites, limits))


def combine_sites(facts: SitesFacts, limits: Iterable[str]) -> dict[str, Outcome]:
    """Return for each limit the worst outcome that a site states: it judged the pool by all."""
    order: tuple[Outcome, ...] = ("PASS", "REVIEW", "FAIL")
    return {
        name: max(
            (site.outcome if name in site.broken else "PASS" for site in facts.sites),
            key=order.index,
        )
        for name in limits
    }
