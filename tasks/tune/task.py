"""The steps of a tune: search settings, and log what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput
from tasks.context import ReleaseContext
from tasks.notify.prefect_artifacts import ProgressBar
from tasks.progress import Step, log_progress, start_step
from tasks.redaction import redact_errors
from tasks.tune.mlflow_runs import log_tune_runs
from tasks.tune.obstacles import find_obstacles
from tasks.tune.page import find_page, render_page, write_page
from tasks.tune.plan import TuneOptions, make_plan
from tasks.tune.result import TuneResult, decode_tune
from tasks.tune.search import Search
from warehouse.clock import now
from warehouse.json_codec import to_json
from warehouse.tunes import Records, find_finished_tune, record_begin, store_tune


@task(name="search settings", cache_policy=NO_CACHE)
@redact_errors
def search_settings(context: ReleaseContext, options: TuneOptions) -> TuneResult:
    """Measure settings on draws of a sample, under keys that no verdict uses.

    An event records the settings before they are measured, and another one the result. If the last
    event is the result of the same search, that is returned. Nothing is drawn that a release draws,
    nothing is charged, and nothing is published.
    """
    try:
        plan = make_plan(context, options)
        store = context.open_store()
        with store.transaction(f"{context.dataset} tune") as db:
            finished = find_finished_tune(db, context.dataset, plan.identity)
            if finished is not None:
                log_progress(f"tune {finished.number} measured these settings already")
                return decode_tune(finished)
            digests = [setting.digest for setting in plan.settings]
            limits = {name: limit.value for name, limit in context.policy.limits.items()}
            records = Records(plan.records.data, plan.source_digest)
            record_begin(db, context.dataset, plan.identity, records, digests, limits)
        search = Search(plan, ProgressBar(context.dataset).show)
        result = search.run()
        result = replace(result, obstacles=find_obstacles(plan, result))
    except BadInput as error:
        raise error.in_file(context.source.name, only_unnamed=True) from None
    with store.transaction(f"{context.dataset} tune") as db:
        number = store_tune(
            db,
            context.dataset,
            plan.identity,
            data=result.data,
            policy=result.policy,
            outcome=result.outcome,
            result=to_json(result),
        )
    search.file.remove()
    return replace(result, number=number)


@task(name="log tune", cache_policy=NO_CACHE)
@redact_errors
def log_tune(context: ReleaseContext, result: TuneResult) -> None:
    """Write the page of a tune, and log it to MLflow; the tune does not depend on it."""
    start_step(Step.LOG)
    home = Path(context.home)
    page = render_page(result, context.policy)
    write_page(find_page(home, result), page)
    if not log_tune_runs(home, result, page, now()):
        log_progress("MLflow could not be reached; the tune does not depend on it")
