"""Prefect runs whose process was killed stay `Running` for ever, unless somebody ends them."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID


def end_dead_runs(flow_run_ids: Iterable[str | None]) -> None:
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound
    from prefect.states import Crashed

    dead = [UUID(flow_run_id) for flow_run_id in flow_run_ids if flow_run_id]
    if not dead:
        return
    message = "The process was killed; a later run of the same release took over."
    with get_client(sync_client=True) as client:
        for flow_run_id in dead:
            try:
                state = client.read_flow_run(flow_run_id).state
            except ObjectNotFound:
                continue  # it ran against another server
            if state is None or not state.is_final():
                client.set_flow_run_state(flow_run_id, Crashed(message=message), force=True)
