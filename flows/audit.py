from __future__ import annotations

from prefect import flow

from flows.config.context import build_context
from flows.config.release_file import ReleaseFile
from tasks.audit.task import attack_shadows


@flow(name="audit", flow_run_name="audit {release_id}")
def audit(file: ReleaseFile, release_id: str) -> None:
    """Attacks the shadow draws as an outsider would."""
    attack_shadows(build_context(file), release_id)
