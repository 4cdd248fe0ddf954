"""The flows of a common release: one of each site, one of the centre.

The parties exchange messages through a shared folder; `docs/sites.md` lists all of them. Each flow
can be killed at any point and run again: messages that were sent or accepted are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefect import State, flow
from prefect.runtime import flow_run

from flows.config.context import build_checked_context
from flows.config.release_file import ReleaseFile
from flows.release import build_final_state, report_failure
from ppdm_core.model.errors import BadInput, PpdmError, Refused, Undecided
from tasks.audit.attack_process import start_spare_process
from tasks.audit.task import attack_shadows
from tasks.centre.task import collect_rows, judge_by_sites, lead_fit, pool_rows, publish_pool
from tasks.context import ReleaseContext
from tasks.dataset_lock import hold_dataset
from tasks.environment import set_library_defaults
from tasks.ingest.task import load_raw, validate
from tasks.judge.task import judge
from tasks.notify.task import log_rejection, log_release
from tasks.publish.task import publish_candidate
from tasks.sanitize.task import draw_candidate
from tasks.signing_key import load_author_key
from tasks.sites.column_task import align_and_agree, judge_joined_rows, send_part
from tasks.sites.exchange import Exchange
from tasks.sites.rows import SENT_STAGES
from tasks.sites.task import (
    agree_on_fit,
    begin_part,
    check_classes,
    end_part,
    enter_release,
    judge_pool,
    send_rows,
)
from tasks.sites.terms import has_other_columns, list_rounds
from warehouse.messages.envelope import StrayFile
from warehouse.stages import Stage

WAIT_SECONDS = 3600.0
PUBLISHED = "The centre published the common release."


@flow(name="site", flow_run_name="site {file.dataset.name} {file.sanitizer.method}", retries=0)
def site(file: ReleaseFile, wait: float = WAIT_SECONDS) -> State[Any]:
    """Release the table of this site to the centre, then attack the pool of all sites.

    Args:
        file: The content of the release file of this site.
        wait: How many seconds to wait for each message of another party.
    """
    try:
        context = build_checked_context(file)
        set_library_defaults(file.home())
        load_author_key(file.home())
        with hold_dataset(context), start_spare_process():
            exchange = enter_release(context, wait, is_centre=False)
            with close_at_end(exchange):
                stage, message = release_part(context, exchange)
        return build_final_state(stage, message)
    except PpdmError as error:
        return end_flow(file, error)


def release_part(context: ReleaseContext, exchange: Exchange) -> tuple[Stage, str]:
    """Take part in a common release; return how it ended or stopped, with a sentence."""
    release_id = begin_part(context, exchange, flow_run.id)
    load_raw(context, release_id)
    validate(context, release_id)
    if has_other_columns(context):
        release_columns(context, release_id, exchange)
        return Stage.PUBLISHED, PUBLISHED
    check_classes(context, release_id)
    for name in list_rounds(context):
        context = agree_on_fit(context, release_id, exchange, name)
    draw_candidate(context, release_id)
    attack_shadows(context, release_id)
    judge(context, release_id)
    stage = publish_candidate(context, release_id, dry_run=False)
    message = log_release(context, release_id)
    if stage == Stage.AWAITING_REVIEW:
        return stage, message
    send_rows(context, release_id, exchange)
    if stage not in SENT_STAGES:
        remedy = f"See every reason: ppdm show {release_id} --all"
        end_part(exchange, Refused(message, remedy=remedy))
    judge_pool(context, release_id, exchange)
    end_part(exchange)
    return Stage.PUBLISHED, PUBLISHED


@contextmanager
def close_at_end(exchange: Exchange) -> Iterator[None]:
    """Record how the common release ended when the last step of this party is done.

    An error that another run can remedy is no end.
    """
    try:
        yield
    except (BadInput, Refused):
        exchange.close()
        raise
    exchange.close()


def release_columns(context: ReleaseContext, release_id: str, exchange: Exchange) -> None:
    """Release the columns of this party together with those that others hold of the same persons.

    Its own part is attacked and judged, and published nowhere: it leaves under masks.
    """
    context, aligned = align_and_agree(context, release_id, exchange)
    draw_candidate(context, release_id)
    attack_shadows(context, release_id)
    judge(context, release_id, is_part=True)
    log_release(context, release_id)
    send_part(context, release_id, exchange, aligned)
    judge_joined_rows(context, release_id, exchange, aligned)
    end_part(exchange)


@flow(name="centre", flow_run_name="centre {file.dataset.name} {file.sanitizer.method}", retries=0)
def centre(file: ReleaseFile, wait: float = WAIT_SECONDS) -> State[Any]:
    """Pool the sanitized rows of all sites, and publish them if every site allows it.

    Args:
        file: The content of the release file of the centre; its source is not read.
        wait: How many seconds to wait for each message of a site.
    """
    try:
        context = build_checked_context(file)
        set_library_defaults(file.home())
        with hold_dataset(context):
            exchange = enter_release(context, wait, is_centre=True)
            with close_at_end(exchange):
                for name in list_rounds(context):
                    lead_fit(context, exchange, name)
                parts = collect_rows(context, exchange)
                release_id = pool_rows(context, exchange, parts, flow_run.id)
                judge_by_sites(context, release_id, exchange, parts)
                stage = publish_pool(context, release_id, exchange)
                message = log_release(context, release_id)
        if stage == Stage.REFUSED:
            raise Refused(message, remedy="Ask each site whose verdict does not allow it.")
        return build_final_state(stage, message)
    except PpdmError as error:
        return end_flow(file, error)


def end_flow(file: ReleaseFile, error: PpdmError) -> State[Any]:
    """Return the last state after bad input, a refusal or a REVIEW; raise any other error."""
    if isinstance(error, BadInput | StrayFile):
        log_rejection(file.dataset.name, file.sanitizer.method, error)
        return build_final_state(Stage.REJECTED, f"{error} Nothing was published.", error)
    if isinstance(error, Undecided):
        return build_final_state(Stage.AWAITING_REVIEW, error.message)
    if isinstance(error, Refused):
        return build_final_state(Stage.REFUSED, str(error), error)
    raise report_failure(file, error) from None
