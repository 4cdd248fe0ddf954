from __future__ import annotations

from prefect import flow

from flows.config.context import build_context
from flows.config.release_file import ReleaseFile
from tasks.judge.task import judge


@flow(name="gate", flow_run_name="gate {release_id}")
def gate(file: ReleaseFile, release_id: str, dry_run: bool = False) -> None:
    """Reaches and stores the verdict."""
    judge(build_context(file), release_id, dry_run)
