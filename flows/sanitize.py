from __future__ import annotations

from prefect import flow

from flows.config.context import build_context
from flows.config.release_file import ReleaseFile
from tasks.sanitize.task import draw_candidate


@flow(name="sanitize", flow_run_name="sanitize {release_id}")
def sanitize(file: ReleaseFile, release_id: str) -> None:
    """The candidate and its shadow draws."""
    draw_candidate(build_context(file), release_id)
