"""All releases of a dataset: risk against use, and the ledger with a forecast."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ppdm_core.gates.ledger import ROUNDING_MARGIN
from ppdm_core.model.policy import LEDGER_RECORD
from tasks.publish.report.facts import ReportFacts
from tasks.publish.report.outcome import describe_stage
from tasks.publish.report.view import (
    DatasetHistory,
    LedgerPlan,
    LedgerStep,
    ReleaseLine,
    RiskLine,
    UtilityLine,
)
from warehouse.dataset_history import PastRelease


def build_history(
    facts: ReportFacts, risk: RiskLine | None, utility: UtilityLine | None
) -> DatasetHistory | None:
    """Return all releases of the dataset, compared by one score of risk and one of use."""
    if not facts.releases:
        return None
    this, settings = facts.summary.run.release_id, facts.summary.settings
    has_ledger = facts.summary.sites is None
    return DatasetHistory(
        releases=tuple(build_line(each, this, risk, utility) for each in facts.releases),
        risk_title=risk.title if risk else "",
        utility_title=utility.title if utility else "",
        risk_limit=risk.limit if risk else None,
        utility_limit=utility.limit if utility else None,
        ledger=build_ledger(facts.entries, settings.audience) if settings and has_ledger else None,
    )


def build_line(
    release: PastRelease, this: str, risk: RiskLine | None, utility: UtilityLine | None
) -> ReleaseLine:
    """Return the line of one release."""
    outcome, tone = describe_stage(release.stage)
    scores = release.scores
    return ReleaseLine(
        release_id=release.release_id,
        day=f"{release.started:%Y-%m-%d}",
        method=release.method or "",
        outcome=outcome,
        tone=tone,
        is_this=release.release_id == this,
        risk=scores.get(risk.name) if risk else None,
        utility=scores.get(utility.name) if utility else None,
    )


def build_ledger(entries: Sequence[Mapping[str, Any]], audience: str) -> LedgerPlan | None:
    """Return the ledger of the audience's account, and how many releases like the last one fit."""
    terms = [json.loads(entry["terms"]) for entry in entries]
    if not entries:
        return None
    is_shared = not terms[-1]["collusion_waiver"]
    kept = [
        (entry, term)
        for entry, term in zip(entries, terms, strict=True)
        if is_shared or entry["audience"] == audience
    ]
    if not kept:
        return None
    steps = tuple(build_step(entry) for entry, _ in kept)
    last, last_terms = kept[-1]
    limit = last_terms["limits"].get(LEDGER_RECORD)
    ln_limit = None if limit is None else math.log(limit)
    ln_next = finite_or_none(last["asked"])
    return LedgerPlan(steps, ln_limit, ln_next, count_room(steps[-1].ln_total, ln_limit, ln_next))


def build_step(entry: Mapping[str, Any]) -> LedgerStep:
    """Return the balance after an entry; a refused one adds nothing."""
    is_charged = entry["kind"] == "charged"
    total = entry["total"] if is_charged else entry["spent"]
    day = f"{entry['happened']:%Y-%m-%d}"
    return LedgerStep(entry["release_id"], day, finite_or_none(total), is_charged)


def finite_or_none(value: float) -> float | None:
    """Return the value, or None if it is infinite."""
    return value if math.isfinite(value) else None


def count_room(spent: float | None, limit: float | None, asked: float | None) -> int | None:
    """Return how many more releases that ask the same fit; None without a limit or a bound."""
    if spent is None or limit is None or not asked:
        return None
    return max(0, math.floor((limit - spent + ROUNDING_MARGIN) / asked))
