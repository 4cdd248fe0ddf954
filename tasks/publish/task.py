"""The last step: publish the candidate, or end the release without a new version."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput, Refused, Undecided
from ppdm_core.model.manifest import NAME
from ppdm_core.numerics.noise import Noise
from tasks.context import ReleaseContext
from tasks.progress import Step, start_step
from tasks.publish.card import format_card
from tasks.publish.manifest_body import build_manifest
from tasks.publish.report.build import build_view
from tasks.publish.report.facts import ReportFacts
from tasks.publish.report.render import render_report
from tasks.publish.sinks import list_deliveries, list_file_sinks
from tasks.redaction import redact_errors
from tasks.release_summary import Summary, summarize_run
from warehouse.code_version import compute_code_version
from warehouse.database import Run, Store
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.publishing.expected_content import ExpectedContent
from warehouse.publishing.manifest import file_digest, verify
from warehouse.publishing.originals import store_originals
from warehouse.publishing.publish import (
    PublishedVersion,
    PublishRequest,
    find_latest_version,
    publish_release,
)
from warehouse.publishing.released_profile import read_released_profile
from warehouse.stage_facts import EndingFacts, SanitizedFacts, store_facts
from warehouse.stages import FINISHED, Stage
from warehouse.transaction import Transaction
from warehouse.validated_table import id_column, list_identifiers


@task(name="publish", cache_policy=NO_CACHE)
@redact_errors
def publish_candidate(context: ReleaseContext, release_id: str, dry_run: bool) -> Stage:
    """Publish a release if its verdict allows it; return the stage that the release ends in."""
    start_step(Step.PUBLISH)
    store = context.open_store()
    store.home.clear_work(release_id)
    try:
        return publish_if_allowed(store, context, release_id, dry_run)
    finally:
        store.home.clear_work(release_id)


def publish_if_allowed(
    store: Store, context: ReleaseContext, release_id: str, dry_run: bool
) -> Stage:
    """Publish a release, or end it without a new version; return its stage."""
    with context.open_run(release_id) as (db, run):
        if run.stage in FINISHED:
            return run.stage
        is_pending = run.stage == Stage.AWAITING_REVIEW
        latest = find_latest_version(db, context.dataset)
        summary = summarize_run(db, run)
        standing = summary.standing
        is_undecided = is_pending and (standing is None or standing.missing > 0)
        is_publishable = not dry_run and not is_undecided
        inputs = read_publish_inputs(db, context, summary) if is_publishable else None
    if dry_run:  # a decision is left to reviewers
        return run.stage if is_pending else end_run(store, run, Stage.DRY_RUN_PASSED)
    data_digest = summary.judged.sanitized.data_digest
    if latest and latest.data_digest == data_digest and is_intact(store, context.dataset, latest):
        return end_run(store, run, Stage.NO_CHANGE, same_as=latest.release_id)
    if inputs is None:
        return run.stage
    request = build_request(context, summary, inputs)
    try:
        publish_release(store, request)
    except Undecided:  # an approval lapsed just now
        return Stage.AWAITING_REVIEW
    except Refused as refusal:
        return end_run(store, run, Stage.REFUSED, refused_because=refusal.message)
    return Stage.PUBLISHED


def is_intact(store: Store, dataset: str, version: PublishedVersion) -> bool:
    """Return whether a published folder is as it was; else it is published as a new version."""
    folder = store.home.published / dataset / f"{version.number:04d}"
    try:
        verify(folder)
    except (BadInput, Refused):
        return False
    return file_digest(folder / NAME) == version.manifest_digest


def end_run(store: Store, run: Run, stage: Stage, **why: str) -> Stage:
    """End a run without a new version; the event records why."""
    with store.advance(run, stage, **why) as change:
        if stage == Stage.REFUSED:
            store_facts(change.db, run, EndingFacts(**why))
    return stage


@dataclass(frozen=True, eq=False)
class PublishInputs:
    """What publishing reads from the warehouse."""

    noise: Noise  # of the dataset
    expected: ExpectedContent
    candidate: Path


def read_publish_inputs(
    db: Transaction, context: ReleaseContext, summary: Summary
) -> PublishInputs:
    """Read what publishing needs, in one transaction."""
    run = summary.run
    return PublishInputs(
        noise=dataset_noise(db, context.dataset),
        expected=build_expected_content(db, context, run, summary.judged.sanitized),
        candidate=db.home.candidate(run.release_id),
    )


def build_request(
    context: ReleaseContext, summary: Summary, inputs: PublishInputs
) -> PublishRequest:
    """Return everything that publishing needs and checks.

    It reads the candidate's file and renders the report, so no transaction may be open.
    """
    sanitized, noise = summary.judged.sanitized, inputs.noise
    released = read_released_profile(inputs.candidate)
    view = build_view(ReportFacts(summary, released=released), "recipients")
    return PublishRequest(
        run=summary.run,
        policy_digest=context.policy.digest,
        review=context.policy.review,
        code_version=compute_code_version(),
        expected=inputs.expected,
        data_digest=sanitized.data_digest,
        table_digest=sanitized.table_digest,
        # Without stable ids, or where rows belong to no record, releases cannot be compared.
        is_comparable=context.record_id is not None and sanitized.row_aligned,
        card=format_card(view),
        report=render_report(view),
        manifest=build_manifest(context, summary, noise),
        file_sinks=list_file_sinks(context),
        deliveries=list_deliveries(context, summary.run, noise),
    )


def build_expected_content(
    db: Transaction, context: ReleaseContext, run: Run, sanitized: SanitizedFacts
) -> ExpectedContent:
    """Return what the leak scan compares the bytes with."""
    public, scaling, label = sanitized.public, sanitized.scaling, context.label
    features = sanitized.schema.names
    categorical = tuple(response.column.name for response in public.responses)
    ids = [id_column(k) for k in range(len(list_identifiers(context.columns)))]
    work = db.home.work(run.release_id)
    return ExpectedContent(
        columns=public.columns,
        label=label.name if label else None,
        categories=label.categories if label else (),
        rows=sanitized.released,
        atom=sanitized.atom,
        draws=len(public.columns) if public.scales is None else len(public.scales),
        grid=public.grid if public.space != "original" else None,
        forbidden=frozenset(c.name for c in context.columns if c.role in ("identifier", "exclude")),
        originals=store_originals(db, run, features, categorical, ids, scaling, work),
        same_columns=sanitized.same_columns,
        responses=tuple(public.responses),
    )
