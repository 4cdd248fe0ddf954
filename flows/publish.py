from __future__ import annotations

from prefect import flow

from flows.config.context import build_context
from flows.config.release_file import ReleaseFile
from tasks.publish.task import publish_candidate
from warehouse.stages import Stage


@flow(name="publish", flow_run_name="publish {release_id}")
def publish(file: ReleaseFile, release_id: str, dry_run: bool = False) -> Stage:
    """Publish if the verdict allows it; return the stage that the release ends in."""
    return publish_candidate(build_context(file), release_id, dry_run)
