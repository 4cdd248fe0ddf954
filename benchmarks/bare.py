"""A release without anything of ours: its flows and tasks by name, with empty bodies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from prefect import State, flow, task
from prefect.artifacts import Artifact
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Completed

from flows.audit import audit
from flows.config.context import build_context
from flows.config.release_file import ReleaseFile
from flows.gate import gate
from flows.ingest import ingest
from flows.publish import publish
from flows.release import release
from flows.sanitize import sanitize
from tasks.audit.task import attack_shadows
from tasks.ingest.task import begin, load_raw, validate
from tasks.judge.task import judge
from tasks.publish.task import leave, tell
from tasks.sanitize.task import make_draws

STEPS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (ingest, (begin, load_raw, validate)),
    (sanitize, (make_draws,)),
    (audit, (attack_shadows,)),
    (gate, (judge,)),
    (publish, (leave,)),
)


def without_heartbeats() -> AbstractContextManager[Any]:
    """As the release command runs; with them each flow of both sides waits up to a second."""
    return temporary_settings(set_defaults={PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None})


def bare_release(file: ReleaseFile, artifacts: list[dict[str, Any]]) -> Callable[[], None]:
    """``artifacts``: what a real release leaves on the server, left again by the last task."""
    plan, release_id = build_context(file), f"{file.dataset.name}-0001"
    steps = [
        bare_flow(real.name, [bare_task(each.name) for each in tasks], plan)
        for real, tasks in STEPS
    ]
    last = bare_task(tell.name, lambda: leave_artifacts(artifacts))

    @flow(name=release.name, flow_run_name="bare {file.dataset.name}", retries=0)
    def bare(file: ReleaseFile, dry_run: bool = False) -> State[Any]:
        for step in steps:
            step(file, release_id)
        last(plan, release_id)
        return Completed(name="Published", message="Nothing was published.")

    def run() -> None:
        with without_heartbeats():
            bare(file, return_state=True)

    return run


def bare_flow(name: str, tasks: list[Any], plan: Any) -> Any:
    @flow(name=name, flow_run_name=name + " {release_id}")
    def bare(file: ReleaseFile, release_id: str) -> None:
        for each in tasks:
            each(plan, release_id)

    return bare


def bare_task(name: str, work: Callable[[], None] = lambda: None) -> Any:
    @task(name=name, cache_policy=NO_CACHE)
    def bare(plan: Any, release_id: str) -> None:
        work()

    return bare


def leave_artifacts(artifacts: list[dict[str, Any]]) -> None:
    for each in artifacts:
        Artifact(**each).create()
