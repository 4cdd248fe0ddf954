from __future__ import annotations

from prefect import flow

from flows.config import ReleaseFile
from flows.plan import plan_of
from tasks.publish import leave, tell


@flow(name="publish")
def publish(file: ReleaseFile, release_id: str, dry_run: bool = False) -> str:
    """Through the door if the verdict is a PASS; tells MLflow and Prefect either way."""
    plan = plan_of(file)
    outcome = leave(plan, release_id, dry_run)
    tell(plan, release_id)
    return outcome
