"""One MLflow run per release, and one per dataset: a view. The record is in the warehouse.

The only module that imports mlflow, and only when it is used.

A run starts when its release did, and the step of its metrics is the release's number: so lists
and charts go by releases, also when an earlier one is logged again later.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ppdm_core.model.errors import MachineTrouble
from tasks.notify.mlflow_addresses import REPORT, VIEW, LoggedRun
from tasks.notify.mlflow_entry import (
    NOTE,
    SERIES_NOTE,
    ReleaseEntry,
    experiment_tags,
    withdrawal_tags,
)
from tasks.notify.mlflow_pages import RestrictedPages
from warehouse.locks import hold, locks_folder

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")
LOCK_LIMIT = 60.0
MAX_PARAMETERS = 100  # MLflow takes no more in one request
MAX_METRICS = 800  # nor more than 1,000 of all together
SERIES = "series"  # tag of the run that holds all releases of a dataset
NOISY_LOGGERS = ("mlflow", "alembic", "urllib3")
# A release must not wait for a view: an address that does not answer costs 10 s at most.
SHORT_TIMEOUTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


def preload() -> None:
    """Import MLflow, while the program waits for something else."""
    with _quiet():
        import mlflow
    assert mlflow


def log_to_mlflow(
    home: Path, entry: ReleaseEntry, say: Callable[[str], None] = lambda text: None
) -> LoggedRun | None:
    """Log the release and return its run; None if MLflow cannot be reached or fails.

    A release that is logged again replaces its earlier run.
    """
    return reach_mlflow(home, entry.release_id, say, lambda client: _log(client, home, entry))


def tag_withdrawal(
    home: Path, release_id: str, at: str, say: Callable[[str], None] = lambda text: None
) -> bool:
    """Tag the run of a withdrawn release; return whether there is one that could be reached."""
    return bool(reach_mlflow(home, release_id, say, lambda client: _tag(client, release_id, at)))


def reach_mlflow(
    home: Path,
    release_id: str,
    say: Callable[[str], None],
    action: Callable[[MlflowClient], T],
) -> T | None:
    """Return the result of an action on MLflow; None if it cannot be reached or fails."""
    for name, value in SHORT_TIMEOUTS.items():
        os.environ.setdefault(name, value)
    with _quiet():
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with _lock_database(home, release_id, say):
                return action(MlflowClient(tracking_uri=_tracking_uri(home)))
        except (MlflowException, SQLAlchemyError, OSError, MachineTrouble):
            return None


def _tag(client: MlflowClient, release_id: str, at: str) -> bool:
    """Set the tags of a withdrawal on every run of a release."""
    experiment = client.get_experiment_by_name(release_id.rpartition("-")[0])
    if experiment is None:
        return False
    found = client.search_runs([experiment.experiment_id], f"tags.release_id = '{release_id}'")
    for run in found:
        for name, text in withdrawal_tags(release_id, at).items():
            client.set_tag(run.info.run_id, name, text)
    return bool(found)


def serve_pages(home: Path, listener: socket.socket) -> None:
    """Serve the pages of a home's own database on a bound socket until the process is stopped.

    `mlflow server` would start a child process, and choose its port itself.
    """
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    with _quiet(), _lock_database(home, "MLflow pages", lambda text: None):
        import uvicorn
        from mlflow import MlflowClient
        from mlflow.server import constants

        MlflowClient(tracking_uri=local_store(home)).search_experiments()  # makes its tables
    os.environ |= {
        constants.BACKEND_STORE_URI_ENV_VAR: local_store(home),
        constants.ARTIFACT_ROOT_ENV_VAR: (
            home.absolute() / "views" / "mlflow" / "artifacts"
        ).as_uri(),
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # nothing of a release runs in it
    }
    with _quiet():
        from mlflow.server.fastapi_app import app
    config = uvicorn.Config(RestrictedPages(app), log_level="error", timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[listener])


def _log(client: MlflowClient, home: Path, entry: ReleaseEntry) -> LoggedRun:
    experiment = find_experiment(client, home, entry.dataset)
    earlier = client.search_runs([experiment], f"tags.release_id = '{entry.release_id}'")
    run = client.create_run(
        experiment,
        start_time=to_milliseconds(entry.started),
        tags=entry.tags(),
        run_name=entry.name,
    )
    run_id = str(run.info.run_id)
    _log_values(client, run_id, entry)
    client.log_text(run_id, entry.card, "card.md")
    client.log_text(run_id, entry.report, REPORT)
    client.set_terminated(run_id, "FAILED" if entry.was_refused else "FINISHED")
    for previous in earlier:
        client.delete_run(previous.info.run_id)
    _log_series(client, experiment, entry)
    view = json.dumps(
        {"selectedColumns": entry.list_columns(), "orderByKey": "attributes.start_time"}
    )
    client.set_experiment_tag(experiment, f"mlflow.sharedViewState.{VIEW}", view)
    return LoggedRun(experiment, run_id)


def _log_series(client: MlflowClient, experiment: str, entry: ReleaseEntry) -> None:
    """Log the main figures to the run of all releases: charts of one run go over its steps."""
    from mlflow.entities import Metric

    found = client.search_runs([experiment], f"tags.{SERIES} = '{entry.dataset}'", max_results=1)
    when = to_milliseconds(entry.started)
    if found:
        run_id = str(found[0].info.run_id)
    else:
        name = f"{entry.dataset}: all releases"
        tags = {SERIES: entry.dataset, NOTE: SERIES_NOTE}
        run_id = str(client.create_run(experiment, when, tags, name).info.run_id)
    metrics = [Metric(*figure, when, entry.number) for figure in entry.main_metrics().items()]
    client.log_batch(run_id, metrics=metrics[:MAX_METRICS])
    client.set_terminated(run_id)


def _log_values(client: MlflowClient, run_id: str, entry: ReleaseEntry) -> None:
    log_values(client, run_id, entry.metrics(), entry.params(), entry.started, entry.number)


def log_values(
    client: MlflowClient,
    run_id: str,
    figures: Mapping[str, float],
    words: Mapping[str, str],
    time: datetime,
    step: int,
) -> None:
    """Log metrics and parameters to a run, in as many requests as MLflow needs."""
    from mlflow.entities import Metric, Param

    when = to_milliseconds(time)
    metrics = [Metric(*figure, when, step) for figure in figures.items()]
    params = [Param(name, text) for name, text in words.items()]
    client.log_batch(run_id, metrics=metrics[:MAX_METRICS], params=params[:MAX_PARAMETERS])
    for start in range(MAX_METRICS, len(metrics), MAX_METRICS):
        client.log_batch(run_id, metrics=metrics[start : start + MAX_METRICS])
    for start in range(MAX_PARAMETERS, len(params), MAX_PARAMETERS):
        client.log_batch(run_id, params=params[start : start + MAX_PARAMETERS])


def to_milliseconds(time: datetime) -> int:
    """Return a time as MLflow stores it."""
    return int(time.timestamp() * 1000)


def find_experiment(client: MlflowClient, home: Path, dataset: str) -> str:
    """Return the experiment of a dataset, made if need be."""
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(dataset)
    if experiment is None:
        try:
            location = _artifact_location(home, dataset)
            return client.create_experiment(dataset, location, experiment_tags(dataset))
        except MlflowException:  # made by another process at the same moment
            experiment = client.get_experiment_by_name(dataset)
            if experiment is None:
                raise
    if experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)
    return str(experiment.experiment_id)


def _is_local() -> bool:
    return not os.environ.get("MLFLOW_TRACKING_URI")


def _tracking_uri(home: Path) -> str:
    if not _is_local():
        return os.environ["MLFLOW_TRACKING_URI"]
    return local_store(home)


def local_folder(home: Path) -> Path:
    """Return the folder of the home's own database, made if need be."""
    folder = home.absolute() / "views" / "mlflow"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def local_store(home: Path) -> str:
    """Return the address of the home's own database."""
    return f"sqlite:///{local_folder(home) / 'mlflow.db'}"


def _artifact_location(home: Path, dataset: str) -> str | None:
    if not _is_local():
        return None  # the server's choice
    return (local_folder(home) / "artifacts" / dataset).as_uri()


def _lock_database(
    home: Path, release_id: str, say: Callable[[str], None]
) -> AbstractContextManager[None]:
    """Hold the lock of the home's database: only one process may make the tables of a new file."""
    if not _is_local():
        return nullcontext()
    local_folder(home)
    lock = locks_folder(home) / "mlflow.lock"
    return hold(lock, holder=release_id, limit=LOCK_LIMIT, say=say)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings and loggers of MLflow and its libraries."""
    loggers = [logging.getLogger(name) for name in NOISY_LOGGERS]
    levels = [logger.level for logger in loggers]
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "CRITICAL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
