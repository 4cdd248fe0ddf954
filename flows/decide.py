"""A release that the gate left to people: published if enough of them approved.

The decision is not a parameter of the flow. Whoever starts the flow, from wherever, can only carry
out what was written down by `ppdm decide`; and the door reads that again.
"""

from __future__ import annotations

from typing import Any

from prefect import State, flow

from flows.config.context import checked_plan
from flows.config.release_file import ReleaseFile
from flows.publish import publish
from flows.release import ended, failed
from ppdm_core.model.errors import PpdmError
from tasks.dataset_lock import taking_turns
from tasks.publish.task import tell


@flow(name="decide", flow_run_name="decide {release_id}", retries=0)
def decide(file: ReleaseFile, release_id: str) -> State[Any]:
    """Publish a release that waits if enough people approved it, and tell how it stands.

    Args:
        file: The release file that was kept with it.
        release_id: For example wdbc-0003.
    """
    try:
        plan = checked_plan(file)
        with taking_turns(plan):
            stage = publish(file, release_id)
            return ended(stage, tell(plan, release_id))
    except PpdmError as error:
        raise failed(file, error) from None
