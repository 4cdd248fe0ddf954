"""The flow that searches the settings of the best utility that keep the policy."""

from __future__ import annotations

from typing import Any

from prefect import State, flow
from prefect.states import Completed

from flows.config.context import build_checked_context
from flows.config.release_file import ReleaseFile
from ppdm_core.model.errors import Defect
from tasks.dataset_lock import hold_dataset
from tasks.defect_report import write_defect_report
from tasks.environment import set_library_defaults
from tasks.progress import log_progress
from tasks.tune.plan import DEFAULT_SETTINGS, TuneOptions, check_options
from tasks.tune.task import log_tune, search_settings


@flow(name="tune", flow_run_name="tune {file.dataset.name}", retries=0)
def tune(
    file: ReleaseFile,
    utility: list[str] | None = None,
    methods: list[str] | None = None,
    settings: int = DEFAULT_SETTINGS,
) -> State[Any]:
    """Try settings on draws of a sample, and compare what they reveal and what they keep.

    Nothing is published, and nothing is charged to the ledger.

    Args:
        file: The content of the release file; its limits judge the settings.
        utility: What recipients need, such as "clusters" or "clusters=2"; several have weights.
        methods: Methods to try, or "all"; by default that of the release file.
        settings: The largest number of settings.
    """
    try:
        context = build_checked_context(file)
        set_library_defaults(file.home())
        options = TuneOptions(tuple(utility or ()), tuple(methods or ()), settings)
        check_options(context, options)
        with hold_dataset(context):
            result = search_settings(context, options)
            log_tune(context, result)
    except Defect as error:
        raise write_defect_report(file.home(), error) from None
    message = f"{result.name}: {result.outcome}; {result.tried} settings were tried."
    log_progress(message)
    return Completed(message=message, data=result.outcome)
