from __future__ import annotations

import logging
import math
import shlex
import shutil
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.types import Guarantee, Score
from tasks.tracking import ReleaseEntry, log_release, view_command
from tests.forkserver import Result, start_cli
from warehouse.locks import hold, holder_of

BREACH = Score(
    name="known_pairs.breach_rate",
    kind="privacy",
    better="down",
    value=0.04,
    low=0.02,
    high=0.07,
    n=529,
    baseline=0.03,
    worst=0.05,
    worst_decile=0.06,
)
ACCURACY = Score(
    name="knn_accuracy",
    kind="utility",
    better="up",
    value=0.91,
    low=0.88,
    high=0.94,
    n=171,
    baseline=0.63,
    worst=0.9,
    original=0.97,
)
ENTRY = ReleaseEntry(
    dataset="wdbc",
    release_id="wdbc-0001",
    outcome="PASS",
    params={"sanitizer.method": "pca_laplace", "sanitizer.components": "2"},
    scores=(BREACH, ACCURACY),
    guarantee=Guarantee("bounded_given_basis", 2.0, 3.0, 6.5),
    policy_digest="d" * 64,
    code_version="0.1.0",
    flow_run_id="2f1c8a52-0000-4000-8000-000000000000",
    card="# wdbc-0001\n\nPublished.\n",
)


@pytest.fixture
def home(tmp_path: Path, mlflow_template: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    target = tmp_path / "views" / "mlflow" / "mlflow.db"
    target.parent.mkdir(parents=True)
    shutil.copy(mlflow_template, target)
    return tmp_path


def client(home: Path) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{home}/views/mlflow/mlflow.db")


def runs_of(home: Path, dataset: str) -> list[Any]:
    experiment = client(home).get_experiment_by_name(dataset)
    return list(client(home).search_runs([experiment.experiment_id]))


def test_a_release_becomes_one_run_with_every_figure(home: Path) -> None:
    run_id = log_release(home, ENTRY)
    (run,) = runs_of(home, "wdbc")
    assert run.info.run_id == run_id
    assert run.info.run_name == "wdbc-0001"
    assert run.info.status == "FINISHED"
    assert run.data.metrics == {
        "amplification.component.ln": 2.0,
        "amplification.attribute.ln": 3.0,
        "amplification.record.ln": 6.5,
        "known_pairs.breach_rate": 0.04,
        "known_pairs.breach_rate.low": 0.02,
        "known_pairs.breach_rate.high": 0.07,
        "known_pairs.breach_rate.baseline": 0.03,
        "known_pairs.breach_rate.worst": 0.05,
        "known_pairs.breach_rate.worst_decile": 0.06,
        "knn_accuracy": 0.91,
        "knn_accuracy.low": 0.88,
        "knn_accuracy.high": 0.94,
        "knn_accuracy.baseline": 0.63,
        "knn_accuracy.worst": 0.9,
        "knn_accuracy.original": 0.97,
    }
    assert run.data.params == dict(ENTRY.params)
    tags = {name: text for name, text in run.data.tags.items() if not name.startswith("mlflow.")}
    assert tags == {
        "release_id": "wdbc-0001",
        "verdict": "PASS",
        "guarantee": "bounded_given_basis",
        "policy_digest": "d" * 64,
        "code_version": "0.1.0",
        "prefect_flow_run_id": "2f1c8a52-0000-4000-8000-000000000000",
    }


def test_the_card_is_an_artifact_inside_the_home(home: Path) -> None:
    run_id = log_release(home, ENTRY)
    assert run_id is not None
    card = home / "views" / "mlflow" / "artifacts" / "wdbc" / run_id / "artifacts" / "card.md"
    assert card.read_text() == ENTRY.card


def test_infinity_is_logged_as_a_word_not_as_a_number(home: Path) -> None:
    nan = replace(BREACH, value=math.nan)
    guarantee = Guarantee("empirical", math.inf, math.inf, math.inf)
    log_release(home, replace(ENTRY, guarantee=guarantee, scores=(nan,), flow_run_id=None))
    (run,) = runs_of(home, "wdbc")
    assert run.data.params["amplification.record.ln"] == "unbounded"
    assert run.data.params["known_pairs.breach_rate"] == "not a number"
    assert "amplification.record.ln" not in run.data.metrics
    assert "known_pairs.breach_rate" not in run.data.metrics
    assert "prefect_flow_run_id" not in run.data.tags


def test_a_release_logged_again_replaces_its_run(home: Path) -> None:
    first = log_release(home, ENTRY)
    other = log_release(home, replace(ENTRY, release_id="wdbc-0002"))
    second = log_release(home, replace(ENTRY, outcome="FAIL", params={"sanitizer.method": "x"}))
    assert first != second
    assert {run.info.run_id for run in runs_of(home, "wdbc")} == {other, second}
    (run,) = (run for run in runs_of(home, "wdbc") if run.info.run_id == second)
    assert run.data.params == {"sanitizer.method": "x"}
    assert run.data.tags["verdict"] == "FAIL"


def test_each_dataset_has_its_own_experiment_also_after_it_was_deleted(home: Path) -> None:
    log_release(home, ENTRY)
    log_release(home, replace(ENTRY, dataset="iris", release_id="iris-0001"))
    assert [len(runs_of(home, dataset)) for dataset in ("wdbc", "iris")] == [1, 1]
    client(home).delete_experiment(client(home).get_experiment_by_name("iris").experiment_id)
    assert log_release(home, replace(ENTRY, dataset="iris", release_id="iris-0002")) is not None


def test_more_parameters_than_one_batch_takes(home: Path) -> None:
    params = {f"columns.c{number:03}": "feature" for number in range(250)}
    log_release(home, replace(ENTRY, params=params))
    (run,) = runs_of(home, "wdbc")
    assert run.data.params == params


def log_one(args: list[str]) -> int:
    home, release_id = args
    return 1 if log_release(Path(home), replace(ENTRY, release_id=release_id)) is None else 0


def test_two_processes_make_one_new_database(tmp_path: Path) -> None:
    entry = "tests.tasks.test_tracking:log_one"
    commands = [start_cli([str(tmp_path), f"wdbc-000{n}"], entry=entry) for n in (1, 2)]
    assert [command.wait() for command in commands] == [Result(0, "", "")] * 2
    assert len(runs_of(tmp_path, "wdbc")) == 2


def test_an_address_that_does_not_answer_gives_none_soon(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    start = time.monotonic()
    assert log_release(home, ENTRY) is None
    assert time.monotonic() - start < 10
    assert capfd.readouterr() == ("", "")


def test_a_damaged_database_gives_none(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "views" / "mlflow" / "mlflow.db").write_bytes(b"not a database" * 1000)
    assert log_release(home, ENTRY) is None
    assert capfd.readouterr() == ("", "")


def test_a_lock_that_is_not_freed_gives_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.tracking.LOCK_LIMIT", 0.1)
    (home / "private" / "locks").mkdir(parents=True)
    lock = home / "private" / "locks" / "mlflow.lock"
    with hold(lock, holder="other", limit=1, say=print):
        assert log_release(home, ENTRY) is None
    assert log_release(home, ENTRY) is not None
    assert holder_of(lock) is None


def test_logging_is_left_as_it_was(home: Path) -> None:
    levels = {name: logging.getLogger(name).level for name in ("alembic", "urllib3")}
    filters = list(warnings.filters)
    log_release(home, ENTRY)
    assert {name: logging.getLogger(name).level for name in levels} == levels
    assert warnings.filters == filters


def test_the_view_command_names_a_program_and_the_database(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *options = shlex.split(view_command(home))
    assert Path(program).is_file()
    assert f"sqlite:///{home}/views/mlflow/mlflow.db" in options
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example:5000")
    assert view_command(home) == "open http://mlflow.example:5000"
