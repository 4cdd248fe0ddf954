"""The last step: publish the candidate, or end the release without a new version."""

from __future__ import annotations

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput, Refused, Undecided
from ppdm_core.model.manifest import NAME
from tasks.code_version import compute_code_version
from tasks.context import ReleaseContext
from tasks.progress import log_progress
from tasks.publish.card import format_card
from tasks.publish.manifest_body import build_manifest
from tasks.redaction import redact_errors
from tasks.release_summary import Summary, read_summary
from warehouse.database import Run, Store
from warehouse.publishing.leak_scan import ExpectedContent, ReleasedCategory
from warehouse.publishing.manifest import file_digest, verify
from warehouse.publishing.publish import (
    PublishedVersion,
    PublishRequest,
    find_latest_version,
    publish_release,
)
from warehouse.sanitized_tables import (
    read_candidate_order,
    read_numeric_ids,
    read_validated_columns,
)
from warehouse.stage_facts import EndingFacts, SanitizedFacts, ValidatedFacts, store_facts
from warehouse.stages import FINISHED, Stage
from warehouse.tables import validated_table


@task(name="publish", cache_policy=NO_CACHE)
@redact_errors
def publish_candidate(context: ReleaseContext, release_id: str, dry_run: bool) -> Stage:
    """Publish a release if its verdict allows it; return the stage that the release ends in."""
    log_progress("publishing")
    store, run = context.open_run(release_id)
    if run.stage in FINISHED:
        return run.stage
    summary = read_summary(store, release_id)
    with store.transaction(release_id) as db:
        latest = find_latest_version(db, context.dataset)
    is_pending = run.stage == Stage.AWAITING_REVIEW
    if dry_run:  # a decision is left to reviewers
        return run.stage if is_pending else end_run(store, run, Stage.DRY_RUN_PASSED)
    data_digest = summary.judged.sanitized.data_digest
    if latest and latest.data_digest == data_digest and is_intact(store, context.dataset, latest):
        ending = EndingFacts(same_as=latest.release_id)
        return end_run(store, run, Stage.NO_CHANGE, ending)
    if is_pending and (summary.standing is None or summary.standing.missing):
        return run.stage
    try:
        publish_release(store, build_request(context, store, summary))
    except Undecided:  # an approval lapsed just now
        return Stage.AWAITING_REVIEW
    except Refused as refusal:
        ending = EndingFacts(refused_because=refusal.message)
        return end_run(store, run, Stage.REFUSED, ending)
    return Stage.PUBLISHED


def is_intact(store: Store, dataset: str, version: PublishedVersion) -> bool:
    """Return whether a published folder is as it was; else it is published as a new version."""
    folder = store.home.published / dataset / f"{version.number:04d}"
    try:
        verify(folder)
    except (BadInput, Refused):
        return False
    return file_digest(folder / NAME) == version.manifest_digest


def end_run(store: Store, run: Run, stage: Stage, ending: EndingFacts | None = None) -> Stage:
    """End a run without a new version, and store why."""
    detail = {name: value for name, value in vars(ending).items() if value} if ending else {}
    with store.advance(run, stage, **detail) as change:
        if ending is not None:
            store_facts(change.db, run, ending)
    return stage


def build_request(context: ReleaseContext, store: Store, summary: Summary) -> PublishRequest:
    """Return everything that publishing needs and checks."""
    # Without stable ids, or where rows belong to no record, later releases cannot be compared.
    is_comparable = context.record_id and summary.judged.sanitized.row_aligned
    return PublishRequest(
        run=summary.run,
        sink=context.sink,
        policy_digest=context.policy.digest,
        review=context.policy.review,
        code_version=compute_code_version(),
        expected=build_expected_content(
            context, store, summary.run, summary.judged.validated, summary.judged.sanitized
        ),
        records=validated_table(summary.run) if is_comparable else None,
        card=format_card(context, summary),
        manifest=build_manifest(context, store, summary),
    )


def build_expected_content(
    context: ReleaseContext,
    store: Store,
    run: Run,
    validated: ValidatedFacts,
    sanitized: SanitizedFacts,
) -> ExpectedContent:
    """Return what the leak scan compares the bytes with."""
    public, scaling, label = sanitized.public, sanitized.scaling, context.label
    categorical = tuple(response.column.name for response in public.responses)
    identifiers = [column.name for column in context.columns if column.role == "identifier"]
    with store.transaction(run.release_id) as db:
        X = read_validated_columns(db, run, validated.schema.names)
        codes = read_validated_columns(db, run, categorical)
        order = read_candidate_order(db, run)
        ids = tuple(read_numeric_ids(db, run, name) for name in identifiers)
    # Validated rows are numbered from 0 without gaps.
    X, C = X[order], codes[order].astype(np.int32)
    return ExpectedContent(
        columns=public.columns,
        label=label.name if label else None,
        categories=label.categories if label else (),
        rows=sanitized.released,
        atom=sanitized.atom,
        draws=len(public.columns) if public.scales is None else len(public.scales),
        grid=public.grid if public.space != "original" else None,
        forbidden=frozenset(c.name for c in context.columns if c.role in ("identifier", "exclude")),
        originals=(X, (X - scaling.offset) / scaling.unit),
        others=ids,
        same_columns=sanitized.same_columns,
        source_order=np.asarray(order, dtype=np.float64),
        categorical=tuple(map(ReleasedCategory, public.responses, C.T)),
    )
