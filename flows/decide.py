"""The flow that publishes a release in review, if enough reviewers approved it.

The decision is not a parameter of the flow: a flow run only carries out what `ppdm decide` has
recorded, and the checks before publishing read that record again.
"""

from __future__ import annotations

from typing import Any

from prefect import State, flow

from flows.config.context import build_checked_context
from flows.config.release_file import ReleaseFile
from flows.release import build_final_state, report_failure
from ppdm_core.model.errors import PpdmError
from tasks.dataset_lock import hold_dataset
from tasks.notify.hooks import run_hooks
from tasks.notify.task import log_release
from tasks.publish.task import publish_candidate


@flow(name="decide", flow_run_name="decide {release_id}", retries=0)
def decide(file: ReleaseFile, release_id: str) -> State[Any]:
    """Publish a release that awaits review if enough reviewers approved it, and report its stage.

    Args:
        file: The release file that is stored with the release.
        release_id: For example wdbc-0003.
    """
    try:
        context = build_checked_context(file)
        with hold_dataset(context):
            stage = publish_candidate(context, release_id, dry_run=False)
            message = log_release(context, release_id)
        run_hooks(context.open_store(), context.dataset, release_id, stage)
        return build_final_state(stage, message)
    except PpdmError as error:
        raise report_failure(file, error) from None
