"""One MLflow run per release: a view for people. The record that counts is in the warehouse.

The only module that imports mlflow, and only when it is used.
"""

from __future__ import annotations

import logging
import math
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.errors import MachineTrouble
from ppdm_core.types import Guarantee, Score
from warehouse.locks import hold, locks_folder

if TYPE_CHECKING:
    from mlflow import MlflowClient

LOCK_LIMIT = 60.0
BATCH = 100  # MLflow takes no more parameters at once
SCORE_PARTS = ("low", "high", "baseline", "worst", "worst_decile", "original", "expected")
NOISY_LOGGERS = ("mlflow", "alembic", "urllib3")
# A release must not wait for a view: an address that does not answer costs 10 s at most.
GIVE_UP_EARLY = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


@dataclass(frozen=True)
class ReleaseEntry:
    """What MLflow is told of a release: nothing private."""

    dataset: str
    release_id: str
    outcome: str
    params: Mapping[str, str]
    scores: tuple[Score, ...]
    guarantee: Guarantee
    policy_digest: str
    code_version: str
    flow_run_id: str | None
    card: str  # markdown


def preload() -> None:
    """Import MLflow, while something else is waited for."""
    with _quiet():
        import mlflow
    assert mlflow


def log_release(
    home: Path, entry: ReleaseEntry, say: Callable[[str], None] = lambda text: None
) -> str | None:
    """Log the release and return the id of its run; None if MLflow cannot be reached or fails.

    A release that is logged again replaces its earlier run.
    """
    for name, value in GIVE_UP_EARLY.items():
        os.environ.setdefault(name, value)
    with _quiet():
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with _alone(home, entry.release_id, say):
                return _log(MlflowClient(tracking_uri=_tracking_uri(home)), home, entry)
        except (MlflowException, SQLAlchemyError, OSError, MachineTrouble):
            return None


def view_command(home: Path) -> str:
    """How to look at the runs of this home."""
    given = os.environ.get("MLFLOW_TRACKING_URI")
    if given and given.startswith("http"):
        return f"open {given}"
    mlflow = Path(sys.executable).with_name("mlflow")
    options = ["--host", "127.0.0.1", "--workers", "1", "--backend-store-uri", _tracking_uri(home)]
    return shlex.join([str(mlflow), "ui", *options])


def _log(client: MlflowClient, home: Path, entry: ReleaseEntry) -> str:
    experiment = _experiment(client, home, entry.dataset)
    earlier = client.search_runs([experiment], f"tags.release_id = '{entry.release_id}'")
    run = client.create_run(experiment, tags=_tags(entry), run_name=entry.release_id)
    run_id = str(run.info.run_id)
    _log_values(client, run_id, entry)
    client.log_text(run_id, entry.card, "card.md")
    client.set_terminated(run_id)
    for previous in earlier:
        client.delete_run(previous.info.run_id)
    return run_id


def _log_values(client: MlflowClient, run_id: str, entry: ReleaseEntry) -> None:
    from mlflow.entities import Metric, Param

    values = _values(entry)
    now = int(time.time() * 1000)
    # MLflow stores infinity as a large number, so it is logged as a word.
    words = {name: _word(value) for name, value in values.items() if not math.isfinite(value)}
    metrics = [Metric(name, value, now, 0) for name, value in values.items() if name not in words]
    params = [Param(name, value) for name, value in {**entry.params, **words}.items()]
    client.log_batch(run_id, metrics=metrics, params=params[:BATCH])
    for start in range(BATCH, len(params), BATCH):
        client.log_batch(run_id, params=params[start : start + BATCH])


def _values(entry: ReleaseEntry) -> dict[str, float]:
    values = {
        "amplification.component.ln": entry.guarantee.ln_component,
        "amplification.attribute.ln": entry.guarantee.ln_attribute,
        "amplification.record.ln": entry.guarantee.ln_record,
    }
    for score in entry.scores:
        values[score.name] = score.value
        parts = {part: getattr(score, part) for part in SCORE_PARTS}
        present = {part: value for part, value in parts.items() if value is not None}
        values |= {f"{score.name}.{part}": value for part, value in present.items()}
    return values


def _tags(entry: ReleaseEntry) -> dict[str, str]:
    tags = {
        "release_id": entry.release_id,
        "verdict": entry.outcome,
        "guarantee": entry.guarantee.kind,
        "policy_digest": entry.policy_digest,
        "code_version": entry.code_version,
    }
    return tags if entry.flow_run_id is None else {**tags, "prefect_flow_run_id": entry.flow_run_id}


def _word(value: float) -> str:
    return "not a number" if math.isnan(value) else "unbounded"


def _experiment(client: MlflowClient, home: Path, dataset: str) -> str:
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(dataset)
    if experiment is None:
        try:
            return client.create_experiment(dataset, _artifact_location(home, dataset))
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
    return f"sqlite:///{home.absolute() / 'views' / 'mlflow' / 'mlflow.db'}"


def _artifact_location(home: Path, dataset: str) -> str | None:
    if not _is_local():
        return None  # the server's choice
    return (home.absolute() / "views" / "mlflow" / "artifacts" / dataset).as_uri()


def _alone(home: Path, release_id: str, say: Callable[[str], None]) -> AbstractContextManager[None]:
    """Only one process at a time may make the tables of a new sqlite file."""
    if not _is_local():
        return nullcontext()
    (home / "views" / "mlflow").mkdir(parents=True, exist_ok=True)
    lock = locks_folder(home) / "mlflow.lock"
    return hold(lock, holder=release_id, limit=LOCK_LIMIT, say=say)


@contextmanager
def _quiet() -> Iterator[None]:
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
