"""The steps of the centre of a common release, each a task of the flow `centre`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.verdict import Finding
from tasks.centre.column_parts import lead_by_columns, make_joined_part
from tasks.centre.fit import LEADS, build_schema, make_scaling
from tasks.centre.joined_verdict import judge_sums, score_sums
from tasks.centre.pool import digest_parts, store_pool, train_models
from tasks.centre.publish import build_pool_request
from tasks.centre.site_rows import SitePart, collect_parts
from tasks.centre.verdicts import collect_verdicts, merge_figures, reach_pool_verdict
from tasks.context import ReleaseContext
from tasks.judge.ledger_charge import build_scope, charge_ledger, compute_balance
from tasks.progress import Step, start_step
from tasks.redaction import redact_errors
from tasks.release_summary import summarize_run
from tasks.sites.exchange import Exchange
from tasks.sites.pool_audit import list_figures
from tasks.sites.terms import find_column_method, has_other_columns
from warehouse.audit_results import store_scores, store_verdict
from warehouse.checkpoints import checkpoint
from warehouse.code_version import compute_code_version
from warehouse.database import Run, Store, get_run
from warehouse.integrity.history import check_history
from warehouse.messages.payloads import End, Pool, encode_bytes
from warehouse.publishing.publish import PublishRequest, find_latest_version, publish_release
from warehouse.runs import begin_run
from warehouse.stage_facts import (
    AuditedFacts,
    EndingFacts,
    SanitizedFacts,
    SitesFacts,
    ValidatedFacts,
    read_facts,
    store_facts,
)
from warehouse.stages import FINISHED, Stage, is_past


@task(name="lead the fit", task_run_name="lead the fit: {name}", cache_policy=NO_CACHE)
@redact_errors
def lead_fit(context: ReleaseContext, exchange: Exchange, name: str) -> None:
    """Lead a round of the agreement on a common fit; end the release if it is not possible."""
    start_step(Step.AGREE)
    sanitizer = context.make_sanitizer()
    schema, joined = build_schema(context), find_column_method(sanitizer)
    scaled = make_scaling(schema, sanitizer.scale).scale_schema(schema)
    with end_when_refused(exchange):
        if joined is not None:
            lead_by_columns(exchange, joined, context.label.name if context.label else None)
        else:
            LEADS[name](exchange, sanitizer, scaled)


@contextmanager
def end_when_refused(exchange: Exchange) -> Iterator[None]:
    """End the release for all sites if what one of them signed cannot be used.

    A StrayFile ends nothing: it need not be from the party whose name it has.
    """
    try:
        yield
    except (BadInput, Refused):
        end_session(exchange, "refused")
        raise


class SiteParts:
    """The parts of all sites, in memory; Prefect does not look into it.

    ``judges`` are the parties whose verdicts are needed, if they sent no rows of their own.
    """

    def __init__(self, parts: list[SitePart], judges: list[SitePart] | None = None) -> None:
        self.parts, self.judges = parts, judges or parts


@task(name="collect rows", cache_policy=NO_CACHE)
@redact_errors
def collect_rows(context: ReleaseContext, exchange: Exchange) -> SiteParts:
    """Wait for the rows of all sites, and check them; end the release if they cannot be pooled."""
    start_step(Step.WAIT)
    joined = find_column_method(context.make_sanitizer())
    with end_when_refused(exchange):
        if joined is not None:
            part, judges = make_joined_part(context, exchange, joined)
            return SiteParts([part], judges)
        return SiteParts(collect_parts(context, exchange))


@task(name="pool the rows", cache_policy=NO_CACHE)
@redact_errors
def pool_rows(
    context: ReleaseContext, exchange: Exchange, sites: SiteParts, flow_run_id: str | None
) -> str:
    """Store the pool of all rows as a candidate, and send it to all sites; return the release."""
    start_step(Step.POOL)
    store, parts = context.open_store(), sites.parts
    run = begin_pool(context, store, parts, flow_run_id)
    if not is_past(run.stage, Stage.SANITIZED):
        store_pool(context, store, run, parts)
    checkpoint("pool stored")
    path = store.home.candidate(run.release_id)

    def make_pool() -> Pool:
        return Pool(data=encode_bytes(path.read_bytes()), models=train_models(parts))

    for site in exchange.session.roll.sites:
        exchange.session.send(site, "pool", make_pool)
    return run.release_id


def begin_pool(
    context: ReleaseContext, store: Store, parts: list[SitePart], flow_run_id: str | None
) -> Run:
    """Return the run of this pool: a new one, or that of an earlier process."""
    with store.transaction(f"{context.dataset} pool") as db:
        latest = find_latest_version(db, context.dataset)
        source = digest_parts(parts)
        if latest is not None:
            run = get_run(db, latest.release_id)
            if run.source_digest == source:
                return run
        run, _ = begin_run(
            db,
            dataset=context.dataset,
            owner=context.owner,
            source_digest=source,
            file_digest=context.file_digest,
            code_version=compute_code_version(),
            pid=os.getpid(),
            flow_run_id=flow_run_id,
        )
    checkpoint("pool begun")
    return run


@task(name="collect verdicts", cache_policy=NO_CACHE)
@redact_errors
def judge_by_sites(
    context: ReleaseContext, release_id: str, exchange: Exchange, parts: SiteParts
) -> None:
    """Wait for the verdicts of all sites, and store the verdict that follows from them."""
    start_step(Step.WAIT)
    store = context.open_store()
    with store.transaction(release_id) as db:
        run = get_run(db, release_id)
        facts = read_facts(db, release_id, SanitizedFacts)
    with end_when_refused(exchange):
        sites = collect_verdicts(context, exchange, parts.judges, facts.data_digest)
    figures: list[dict[str, Any]] = []
    findings: list[Finding] = []
    if run.stage in (Stage.SANITIZED, Stage.AUDITED) and has_other_columns(context):
        own = score_sums(context, parts.parts[0].table, len(sites.sites), facts.data_digest)
        figures = list_figures(own, context.policy)
        findings = judge_sums(context, facts.guarantee, own)
    if run.stage == Stage.SANITIZED:
        report = merge_figures(sites, facts.released, context.policy.attacker.epsilon, figures)
        with store.advance(run, Stage.AUDITED) as change:
            store_facts(change.db, run, AuditedFacts(report))
            store_facts(change.db, run, sites)
            store_scores(change.db, release_id, report.scores)
            change.detail.update(scores=len(report.scores), sites=len(sites.sites))
    if run.stage in (Stage.SANITIZED, Stage.AUDITED):
        verdict = reach_pool_verdict(context, run, sites, facts.data_digest, findings)
        to = Stage.APPROVED if verdict.outcome == "PASS" else Stage.REFUSED
        with store.advance(run, to) as change:
            check_history(change.db)
            change.detail["failures"] = len(verdict.failures)
            store_verdict(change, release_id, verdict)
            # No record is charged here: the ledgers stay with the sites.
            validated = read_facts(change.db, release_id, ValidatedFacts)
            balance = compute_balance(change.db, run, context, validated, facts)
            charge_ledger(change, run, build_scope(context, facts.guarantee), balance, verdict)


@task(name="publish the pool", cache_policy=NO_CACHE)
@redact_errors
def publish_pool(context: ReleaseContext, release_id: str, exchange: Exchange) -> Stage:
    """Publish the pool if every site allows it, and send how the release ended."""
    start_step(Step.PUBLISH)
    store = context.open_store()
    with store.transaction(release_id) as db:
        run = get_run(db, release_id)
        sites = read_facts(db, release_id, SitesFacts)
        request = None
        if run.stage == Stage.APPROVED:
            request = build_pool_request(db, context, summarize_run(db, run), sites)
    stage = run.stage
    if request is not None:
        stage = publish_or_refuse(store, run, request)
    assert stage in FINISHED
    manifest = ""
    with store.transaction(release_id) as db:
        version = find_latest_version(db, context.dataset)
        if version is not None and version.release_id == release_id:
            manifest = version.manifest_digest
    end_session(exchange, "published" if stage == Stage.PUBLISHED else "refused", manifest)
    return stage


def publish_or_refuse(store: Store, run: Run, request: PublishRequest) -> Stage:
    """Publish a release, or record what the checks before publishing found."""
    try:
        publish_release(store, request)
    except Refused as refusal:
        with store.advance(run, Stage.REFUSED, refused_because=refusal.message) as change:
            store_facts(change.db, run, EndingFacts(refused_because=refusal.message))
        return Stage.REFUSED
    return Stage.PUBLISHED


def end_session(exchange: Exchange, outcome: str, manifest: str = "") -> None:
    """Send the end to all sites."""
    end = End.model_validate({"outcome": outcome, "manifest": manifest})
    exchange.entry.announce_next()
    for site in exchange.session.roll.sites:
        exchange.session.send(site, "end", lambda: end)
    exchange.end = end
