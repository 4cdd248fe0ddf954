"""Claims in MLflow: one run of a reproduction, and a nested run for each claim."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from studies.reproduction.decision import decide_claim
from studies.reproduction.registry import select_claims
from tasks.notify.mlflow_entry import NOTE
from tasks.reproduce.mlflow_runs import EXPERIMENT, log_claim_runs
from tasks.reproduce.plan import Reproduction
from tasks.tune.mlflow_runs import PARENT

WHEN = datetime(2030, 1, 2, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, mlflow_template: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    target = tmp_path / ".ppdm" / "views" / "mlflow" / "mlflow.db"
    target.parent.mkdir(parents=True)
    shutil.copy(mlflow_template, target)
    return tmp_path / ".ppdm"


def list_runs(home: Path) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{home}/views/mlflow/mlflow.db")
    ids = [each.experiment_id for each in client.search_experiments() if EXPERIMENT in each.name]
    return list(client.search_runs(ids))


def test_log_claim_runs_of_two_claims_nests_a_run_for_each(home: Path, tmp_path: Path) -> None:
    (gamma,), (examples,) = select_claims(id="P0.C3"), select_claims(id="P3.C26")
    findings = (
        decide_claim(gamma, {"gamma/b=0.3/wine": [28.03]}),
        decide_claim(examples, {"wrong order/place=1": [5.0], "pruned/place=1": [-833.0]}),
    )
    found = Reproduction(findings, {}, tmp_path / "page.md", 2, 0, 1.0)
    assert log_claim_runs(home, found, WHEN)
    runs = {run.info.run_name: run for run in list_runs(home)}
    assert runs.keys() == {EXPERIMENT, "P0.C3", "P3.C26"}
    parent = runs[EXPERIMENT].info.run_id
    for finding in findings:
        run = runs[finding.claim.id]
        assert run.data.tags[PARENT] == parent
        assert run.data.tags["verdict"] == str(finding.verdict)
        assert run.data.tags["paper"] == finding.claim.paper
        assert run.data.tags[NOTE]
        assert run.info.status == "FINISHED"
    assert runs["P0.C3"].data.metrics["value"] == pytest.approx(28.03)
    assert runs["P3.C26"].data.metrics["statements/true"] == 1
    assert runs["P3.C26"].data.metrics["statements/false"] == 1
