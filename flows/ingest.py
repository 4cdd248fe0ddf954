from __future__ import annotations

from prefect import flow

from flows.config.context import build_context
from flows.config.release_file import ReleaseFile
from tasks.ingest.task import begin_release, load_raw, validate


@flow(name="ingest", flow_run_name="ingest {file.dataset.name}")
def ingest(file: ReleaseFile, flow_run_id: str) -> str:
    """Source file to validated table; returns the id of the release."""
    context = build_context(file)
    release_id = begin_release(context, flow_run_id)
    load_raw(context, release_id)
    validate(context, release_id)
    return release_id
