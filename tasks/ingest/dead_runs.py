"""Prefect runs whose process was killed: they stay `Running` until they are ended here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from psutil import pid_exists

from warehouse.database import Run
from warehouse.stages import FINISHED


def end_dead_runs(earlier: Sequence[Run]) -> None:
    """Mark dead runs as crashed; ``earlier`` are the other runs of the dataset, newest last.

    The caller holds the lock of the dataset.
    """
    for run in earlier:
        # A finished run may have been killed too, after its last step; an unfinished one must be
        # dead, because it would hold the lock.
        is_dead = run.stage not in FINISHED or (run is earlier[-1] and not pid_exists(run.pid))
        if run.flow_run_id and is_dead:
            mark_crashed(run.flow_run_id)


def mark_crashed(flow_run_id: str) -> None:
    """Set the state of a flow run whose process is dead."""
    from uuid import UUID

    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound
    from prefect.states import Crashed

    # A server that never saw the run has nothing to correct.
    with get_client(sync_client=True) as client, suppress(ObjectNotFound):
        run = client.read_flow_run(UUID(flow_run_id))
        if run.state is None or not run.state.is_final():
            why = "The process of this run ended unexpectedly."
            client.set_flow_run_state(run.id, Crashed(message=why), force=True)
