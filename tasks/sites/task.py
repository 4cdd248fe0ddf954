"""The steps of a site in a common release, each a task of the flow `site`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.rows import Rows
from ppdm_core.sanitizers import Sanitizer
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, reject_bad_input
from tasks.progress import Step, log_heading, log_progress, start_step
from tasks.redaction import redact_errors
from tasks.sanitize.fitting import choose_records
from tasks.sanitize.inputs import read_inputs
from tasks.sanitize.records import select_named
from tasks.sites.exchange import Exchange, open_exchange
from tasks.sites.fit import AGREEMENTS, scale_for_fit
from tasks.sites.pool_audit import attack_pool, sign_verdict
from tasks.sites.pool_review import collect_approvals, store_pool_facts
from tasks.sites.rows import build_rows
from warehouse.database import Run, find_run
from warehouse.integrity.key_files import write_atomically
from warehouse.messages.membership import RELEASE_FILE, tell_how_to_give_up
from warehouse.messages.payloads import End, Pool, SiteVerdict
from warehouse.messages.roll import CENTRE
from warehouse.stage_facts import PoolFacts, find_facts
from warehouse.stages import FINISHED, Stage

COMPLETED = FINISHED - {Stage.REJECTED} | {Stage.AWAITING_REVIEW}


@task(name="exchange the roll", cache_policy=NO_CACHE)
@redact_errors
def enter_release(context: ReleaseContext, wait: float, is_centre: bool) -> Exchange:
    """Exchange hellos and the roll with all parties; wait for them as long as it takes."""
    start_step(Step.JOIN)
    exchange = open_exchange(context, wait, is_centre=is_centre)
    exchange.begin()
    return exchange


@task(name="begin part", cache_policy=NO_CACHE)
@redact_errors
def begin_part(context: ReleaseContext, exchange: Exchange, flow_run_id: str | None) -> str:
    """Return the release of this site in this session: a new one, or the one that was begun."""
    path = exchange.entry.folder / RELEASE_FILE
    known = path.read_text() if path.exists() else None
    run = None if known is None else read_run(context, known)
    is_same = run is not None and run.file_digest == context.file_digest
    if run is not None and is_same and run.stage in COMPLETED:
        return run.release_id
    how = tell_how_to_give_up(exchange.member, exchange.entry.session)
    if run is not None and run.stage == Stage.REJECTED and exchange.session.has_sent():
        raise BadInput(
            f"{known} was rejected after this site had sent messages, so that this common release "
            "cannot be completed.",
            remedy=f"To give it up, {how}.",
        )
    release_id = begin_release.fn(context, flow_run_id)
    if known not in (None, release_id) and exchange.session.has_sent():
        raise BadInput(
            f"The source, the release file or the code changed since {known} was begun for this "
            "common release, and this site has sent messages.",
            remedy=f"Restore them, and run the same command again. To give it up, {how}.",
        )
    write_atomically(path, release_id)
    return release_id


def read_run(context: ReleaseContext, release_id: str) -> Run | None:
    """Return a run of this home."""
    with context.open_store().transaction(release_id) as db:
        return find_run(db, release_id)


@task(name="agree on a fit", task_run_name="agree on a fit: {name}", cache_policy=NO_CACHE)
@redact_errors
def agree_on_fit(
    context: ReleaseContext, release_id: str, exchange: Exchange, name: str
) -> ReleaseContext:
    """Take part in a round of the agreement; return the context, with the fit after the last."""
    start_step(Step.AGREE)
    sanitizer = context.make_sanitizer()
    work = context.open_store().home.work(release_id)

    def read() -> Rows:
        return read_fit_rows(context, release_id, sanitizer)

    with reject_bad_input(context, release_id, names_source=False):
        shared = AGREEMENTS[name](exchange, sanitizer, read)
    context.open_store().home.clear_work(work.name)
    return context if shared is None else replace(context, shared_fit=shared)


def read_fit_rows(context: ReleaseContext, release_id: str, sanitizer: Sanitizer) -> Rows:
    """Return the scaled records that a fit would learn from at this site alone."""
    home = context.open_store().home
    home.clear_work(release_id)
    with context.open_run(release_id) as (db, run):
        inputs = read_inputs(db, context, run, sanitizer, home.work(release_id))
    rows = inputs.rows
    if inputs.drawn is not None:
        rows = select_named(rows, inputs.noise, choose_records(context, sanitizer, inputs))
    return scale_for_fit(rows, sanitizer)


@task(name="check classes", cache_policy=NO_CACHE)
@redact_errors
def check_classes(context: ReleaseContext, release_id: str) -> None:
    """Raise BadInput if this site has no record of a class that the roll declares."""
    label = context.label
    if label is None:
        return
    home = context.open_store().home
    home.clear_work(release_id)
    with reject_bad_input(context, release_id):
        with context.open_run(release_id) as (db, run):
            if run.stage != Stage.VALIDATED:
                return
            inputs = read_inputs(db, context, run, context.make_sanitizer(), home.work(release_id))
        found = np.unique(np.concatenate([block.label for block in inputs.rows.blocks()]))
        missing = [name for code, name in enumerate(label.categories) if code not in found]
        if missing:
            raise BadInput(
                f"This site has no record with '{label.name}' = '{missing[0]}', a class of the "
                "roll: every row of that class would be known to come from another site.",
                column=label.name,
                remedy="Release only classes that every site has.",
            )


@task(name="send rows", cache_policy=NO_CACHE)
@redact_errors
def send_rows(context: ReleaseContext, release_id: str, exchange: Exchange) -> None:
    """Send the rows that passed the gate of this site, or only that they did not."""
    start_step(Step.SEND)
    exchange.session.send(CENTRE, "rows", lambda: build_rows(context, release_id))


@task(name="attack the pool", cache_policy=NO_CACHE)
@redact_errors
def judge_pool(context: ReleaseContext, release_id: str, exchange: Exchange) -> None:
    """Attack the pool of all sites, and send the signed verdict.

    Raise Undecided, and send nothing, while reviewers of this site have to decide.
    """
    start_step(Step.WAIT)
    pool = exchange.receive(CENTRE, "pool", Pool)

    def judge() -> SiteVerdict:
        sent = build_rows(context, release_id)
        with context.open_store().transaction(release_id) as db:
            facts = find_facts(db, release_id, PoolFacts)
        if facts is None:
            log_heading("attack the pool of all sites")
            facts = attack_pool(context, release_id, exchange, sent, pool)
            store_pool_facts(context, release_id, facts)
        return sign_verdict(exchange, facts, sent, collect_approvals(context, release_id, facts))

    exchange.session.send(CENTRE, "verdict", judge)


@task(name="end part", cache_policy=NO_CACHE)
@redact_errors
def end_part(exchange: Exchange, refusal: Refused | None = None) -> None:
    """Wait for how the common release ended; ``refusal``: why this site sent no rows."""
    start_step(Step.WAIT)
    if refusal is not None:
        log_progress(refusal.message)
    exchange.end = exchange.receive(CENTRE, "end", End)
    if refusal is not None:
        raise refusal
    if exchange.end.outcome != "published":
        raise Refused(
            "The release was not published: the verdict of a site or of the centre forbids it.",
            remedy="Ask the centre; a later run of the same command begins a new release.",
        )
