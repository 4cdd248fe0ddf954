"""A release with the same flow and tasks by name, and with empty bodies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from prefect import State, flow, task
from prefect.artifacts import Artifact
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Completed

from flows.config.context import build_context
from flows.config.release_file import ReleaseFile
from flows.release import release
from tasks.audit.task import attack_shadows
from tasks.ingest.task import begin_release, load_raw, validate
from tasks.judge.task import judge
from tasks.notify.task import log_release
from tasks.publish.task import publish_candidate
from tasks.sanitize.task import draw_candidate

STEPS: tuple[Any, ...] = (
    begin_release,
    load_raw,
    validate,
    draw_candidate,
    attack_shadows,
    judge,
    publish_candidate,
)


def disable_heartbeats() -> AbstractContextManager[Any]:
    """Disable heartbeats, as the release command does.

    With them, each flow of both sides waits up to a second.
    """
    return temporary_settings(set_defaults={PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None})


def build_empty_release(file: ReleaseFile, artifacts: list[dict[str, Any]]) -> Callable[[], None]:
    """Return a function that runs the empty release.

    ``artifacts`` are those of a real release; the last task creates them again.
    """
    context, release_id = build_context(file), f"{file.dataset.name}-0001"
    steps = [build_empty_task(real) for real in STEPS]
    last = build_empty_task(log_release, lambda: create_artifacts(artifacts))

    @flow(name=release.name, flow_run_name="empty {file.dataset.name}", retries=0)
    def empty(file: ReleaseFile, dry_run: bool = False) -> State[Any]:
        for step in steps:
            step(context, release_id)
        last(context, release_id)
        return Completed(message="Nothing was published.")

    def run() -> None:
        with disable_heartbeats():
            empty(file, return_state=True)

    return run


def build_empty_task(real: Any, work: Callable[[], None] = lambda: None) -> Any:
    """Return a task with the names and the arguments of the real one."""

    @task(name=real.name, task_run_name=real.task_run_name, cache_policy=NO_CACHE)
    def empty(context: Any, release_id: str) -> None:
        work()

    return empty


def create_artifacts(artifacts: list[dict[str, Any]]) -> None:
    """Create artifacts in the current task run."""
    for each in artifacts:
        Artifact(**each).create()
