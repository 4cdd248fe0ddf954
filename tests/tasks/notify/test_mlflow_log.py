from __future__ import annotations

import json
import logging
import math
import re
import shutil
import time
import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ppdm.services.processes import open_listener
from ppdm_core.metrics import METRICS
from ppdm_core.model.policy import Attacker, Limit, Policy
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import Score
from ppdm_core.model.shown_text import show_line
from ppdm_core.model.verdict import Finding, Verdict
from tasks.notify.mlflow_addresses import LoggedRun, find_pages, name_run_pages
from tasks.notify.mlflow_entry import NOTE, SCORE_PARTS, ReleaseEntry
from tasks.notify.mlflow_log import log_to_mlflow
from tests.support.forkserver import ROOT, Result, run_cli, start_cli
from tests.support.hostile_text import HOSTILE, is_safe_line, list_structure, read_text
from warehouse.home import Home
from warehouse.locks import hold, read_holder

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
    worst_group=0.07,
    group="sex = Female",
    victims=0.3,
    sentence="An insider recovers 4.0 % of the records.",
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
    sentence="Five neighbours classify 91.0 % correctly.",
)
LINKED = replace(
    BREACH,
    name="record_linkage.rate",
    value=0.01,
    worst_decile=None,
    worst_group=None,
    group=None,
    victims=None,
    sentence="It finds 1.0 %.",
)
LIMITS = {
    "known_pairs.breach_rate": Limit(0.1, "DPO", "a line"),
    "amplification.record": Limit(1100, "DPO", "a bound"),
}
POLICY = Policy(("known_pairs",), LIMITS, Attacker(known_records=40))
FINDINGS = (
    Finding("required.known_pairs", "PASS", "It ran to its end."),
    Finding("amplification.record", "PASS", "The limit is 1,100.", "665", "at most 1,100"),
    Finding(BREACH.name, "PASS", BREACH.sentence, "0.04", "at most 0.1 above the baseline"),
)
STARTED = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
PAGE = ROOT / "docs" / "mlflow.md"
ENTRY = ReleaseEntry(
    dataset="wdbc",
    number=1,
    release_id="wdbc-0001",
    started=STARTED,
    outcome="published",
    outcome_sentence="wdbc-0001 was approved and published as version 0001.",
    method="pca_laplace",
    parameters={"components": 2, "b": 0.3},
    policy=POLICY,
    verdict=Verdict("PASS", FINDINGS, POLICY.digest, "e" * 64, "0.1.0"),
    scores=(ACCURACY, BREACH, LINKED),
    guarantee=Guarantee("bounded_given_basis", 2.0, 3.0, 6.5),
    code_version="0.1.0",
    flow_run_id="2f1c8a52-0000-4000-8000-000000000000",
    card="# wdbc-0001\n\nPublished.\n",
    report="<!DOCTYPE html>\n<title>wdbc-0001</title>\n",
)


@pytest.fixture
def home(tmp_path: Path, mlflow_template: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    target = tmp_path / ".ppdm" / "views" / "mlflow" / "mlflow.db"
    target.parent.mkdir(parents=True)
    shutil.copy(mlflow_template, target)
    return tmp_path / ".ppdm"


def release(number: int, **changes: Any) -> ReleaseEntry:
    """The same every week."""
    started = STARTED + timedelta(weeks=number - 1)
    entry = replace(ENTRY, number=number, release_id=f"wdbc-{number:04}", started=started)
    return replace(entry, **changes)


def refused(number: int) -> ReleaseEntry:
    found = replace(LINKED, value=1.0)
    why = f"{found.sentence} Limit: at most 0.05 above the baseline."
    return release(
        number,
        outcome="refused",
        outcome_sentence=f"wdbc-{number:04} was refused and nothing was published. {why}",
        method="random_rotation",
        parameters={"scale": "minmax"},
        verdict=replace(
            ENTRY.verdict, outcome="FAIL", findings=(Finding(found.name, "FAIL", why),)
        ),
        guarantee=Guarantee("empirical", math.inf, math.inf, math.inf),
        scores=(found,),
    )


def client(home: Path) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{home}/views/mlflow/mlflow.db")


def list_runs(home: Path, dataset: str) -> list[Any]:
    """Return the runs of releases, without the run of all of them."""
    experiment = client(home).get_experiment_by_name(dataset)
    found = client(home).search_runs([experiment.experiment_id])
    return [run for run in found if "series" not in run.data.tags]


def test_log_to_mlflow_release_one_run_all_figures(home: Path) -> None:
    logged = log_to_mlflow(home, ENTRY)
    (run,) = list_runs(home, "wdbc")
    assert logged == LoggedRun(run.info.experiment_id, run.info.run_id)
    assert run.info.run_name == "wdbc-0001 published"
    assert run.info.status == "FINISHED"
    assert run.data.metrics == {
        "privacy/known_pairs.breach_rate": 0.04,
        "privacy/record_linkage.rate": 0.01,
        "utility/knn_accuracy": 0.91,
        "worst_case/amplification.component.ln": 2.0,
        "worst_case/amplification.attribute.ln": 3.0,
        "worst_case/amplification.record.ln": 6.5,
        "zoom/known_pairs.breach_rate.low": 0.02,
        "zoom/known_pairs.breach_rate.high": 0.07,
        "zoom/known_pairs.breach_rate.baseline": 0.03,
        "zoom/known_pairs.breach_rate.worst": 0.05,
        "zoom/known_pairs.breach_rate.worst_decile": 0.06,
        "zoom/known_pairs.breach_rate.worst_group": 0.07,
        "zoom/known_pairs.breach_rate.victims": 0.3,
        "zoom/record_linkage.rate.low": 0.02,
        "zoom/record_linkage.rate.high": 0.07,
        "zoom/record_linkage.rate.baseline": 0.03,
        "zoom/record_linkage.rate.worst": 0.05,
        "zoom/knn_accuracy.low": 0.88,
        "zoom/knn_accuracy.high": 0.94,
        "zoom/knn_accuracy.baseline": 0.63,
        "zoom/knn_accuracy.worst": 0.9,
        "zoom/knn_accuracy.original": 0.97,
    }
    assert run.data.params == {
        "method": "pca_laplace",
        "method/components": "2",
        "method/b": "0.3",
        "gamma/component": "7.39",
        "gamma/attribute": "20",
        "gamma/record": "665",
        "gamma/worst_case": "no useful bound",
        "limit/amplification.record": "at most 1,100",
        "limit/known_pairs.breach_rate": "at most 0.1 above the baseline",
        "attacker/known_records": "40",
        "attacker/sample_share": "0.0",
        "attacker/epsilon": "0.1",
    }
    tags = {name: text for name, text in run.data.tags.items() if not name.startswith("mlflow.")}
    assert tags == {
        "dataset": "wdbc",
        "release_id": "wdbc-0001",
        "version": "0001",
        "method": "pca_laplace",
        "outcome": "published",
        "verdict": "PASS",
        "guarantee": "bounded_given_basis",
        "policy_digest": POLICY.digest,
        "code_version": "0.1.0",
        "prefect_flow_run_id": "2f1c8a52-0000-4000-8000-000000000000",
    }
    assert run.data.tags["mlflow.note.content"] == (
        "wdbc-0001 was approved and published as version 0001. "
        "Gamma: component 7.39, attribute 20, record 665 (no useful worst-case bound). "
        "An insider recovers 4.0 % of the records."
    )


def test_log_to_mlflow_refused_release_failed_run_same_metrics(home: Path) -> None:
    log_to_mlflow(home, refused(1))
    (run,) = list_runs(home, "wdbc")
    assert run.info.run_name == "wdbc-0001 refused"
    assert run.info.status == "FAILED"
    assert run.data.metrics["privacy/record_linkage.rate"] == 1.0
    gammas = {name: text for name, text in run.data.params.items() if name.startswith("gamma/")}
    assert gammas.pop("gamma/worst_case") == "no useful bound"
    assert gammas == dict.fromkeys(
        ("gamma/component", "gamma/attribute", "gamma/record"), "unbounded"
    )
    assert "version" not in run.data.tags
    note = run.data.tags["mlflow.note.content"]
    assert note.count(LINKED.sentence) == 1  # it is part of the reason already


def test_log_to_mlflow_logged_late_ordered_by_release(home: Path) -> None:
    for number in (3, 1, 2):
        log_to_mlflow(home, release(number))
    runs = list_runs(home, "wdbc")  # the newest first
    assert [run.data.tags["version"] for run in runs] == ["0003", "0002", "0001"]
    assert runs[-1].info.start_time == STARTED.timestamp() * 1000
    (point,) = client(home).get_metric_history(runs[0].info.run_id, "utility/knn_accuracy")
    assert point.step == 3


def test_metrics_judged_scores_first_details_last() -> None:
    names = list(ENTRY.metrics())
    assert names[0] == "privacy/known_pairs.breach_rate"
    main = [name for name in names if not name.startswith("zoom/")]
    assert names[: len(main)] == main
    assert max(main) < "zoom/"  # also where MLflow sorts


@pytest.mark.parametrize("what", HOSTILE)
def test_tags_and_params_hostile_text_shown_as_text(what: str) -> None:
    text = HOSTILE[what]
    finding = replace(FINDINGS[2], limit=text)
    entry = replace(
        ENTRY,
        outcome_sentence=f"wdbc-0001 was refused. {text}",
        parameters={"refit_waiver": text},
        verdict=replace(ENTRY.verdict, findings=(finding,)),
        scores=(replace(BREACH, sentence=text),),
    )
    assert all(map(is_safe_line, (*entry.tags().values(), *entry.params().values())))
    assert list_structure(entry.tags()[NOTE]) == list_structure("x")
    assert " ".join(show_line(text).split()) in read_text(entry.tags()[NOTE])


def test_params_small_gamma_useful_bound() -> None:
    small = replace(ENTRY, guarantee=Guarantee("bounded", 1.0, 1.0, math.log(99)))
    assert small.params()["gamma/worst_case"] == "useful bound"


def test_metrics_values_rounded_to_six_digits() -> None:
    exact = replace(ENTRY, scores=(replace(BREACH, value=2 / 3, low=1.23456789e-10),))
    assert exact.metrics()["privacy/known_pairs.breach_rate"] == 0.666667
    assert exact.metrics()["zoom/known_pairs.breach_rate.low"] == 1.23457e-10


def test_log_to_mlflow_card_artifact_inside_home(home: Path) -> None:
    logged = log_to_mlflow(home, ENTRY)
    assert logged is not None
    artifacts = home / "views" / "mlflow" / "artifacts" / "wdbc" / logged.run_id / "artifacts"
    card = artifacts / "card.md"
    assert card.read_text() == ENTRY.card
    assert (artifacts / "report.html").read_text() == ENTRY.report


def test_log_to_mlflow_series_one_run_with_a_step_per_release(home: Path) -> None:
    for number in (1, 2):
        log_to_mlflow(home, release(number))
    log_to_mlflow(home, release(2))  # logged again
    experiment = client(home).get_experiment_by_name("wdbc")
    (run,) = client(home).search_runs([experiment.experiment_id], "tags.series = 'wdbc'")
    points = client(home).get_metric_history(run.info.run_id, "privacy/known_pairs.breach_rate")
    assert sorted((point.step, point.value) for point in points) == [(1, 0.04), (2, 0.04)]
    assert not any(name.startswith("zoom/") for name in run.data.metrics)
    columns = json.loads(experiment.tags["mlflow.sharedViewState.ppdm"])["selectedColumns"]
    assert "tags.`outcome`" in columns and "metrics.`privacy/known_pairs.breach_rate`" in columns


def test_log_to_mlflow_infinite_values_logged_as_text(home: Path) -> None:
    nan = replace(BREACH, value=math.nan, worst=math.inf)
    guarantee = Guarantee("empirical", math.inf, math.inf, math.inf)
    log_to_mlflow(home, replace(ENTRY, guarantee=guarantee, scores=(nan,), flow_run_id=None))
    (run,) = list_runs(home, "wdbc")
    assert run.data.params["gamma/record"] == "unbounded"
    assert run.data.params["privacy/known_pairs.breach_rate"] == "not a finite number"
    assert set(run.data.metrics) == {
        f"zoom/known_pairs.breach_rate.{part}"
        for part in ("low", "high", "baseline", "worst_decile", "worst_group", "victims")
    }
    assert "prefect_flow_run_id" not in run.data.tags


@pytest.mark.extended
def test_log_to_mlflow_logged_again_run_replaced(home: Path) -> None:
    first = log_to_mlflow(home, ENTRY)
    other = log_to_mlflow(home, release(2))
    second = log_to_mlflow(home, refused(1))
    assert first and other and second and first != second
    runs = {run.info.run_id: run for run in list_runs(home, "wdbc")}
    assert set(runs) == {other.run_id, second.run_id}
    assert runs[second.run_id].data.params["method/scale"] == "minmax"
    assert "method/b" not in runs[second.run_id].data.params
    assert runs[second.run_id].data.tags["verdict"] == "FAIL"


@pytest.mark.extended
def test_log_to_mlflow_two_datasets_own_experiments_also_if_deleted(home: Path) -> None:
    log_to_mlflow(home, ENTRY)
    log_to_mlflow(home, replace(ENTRY, dataset="iris", release_id="iris-0001"))
    assert [len(list_runs(home, dataset)) for dataset in ("wdbc", "iris")] == [1, 1]
    client(home).delete_experiment(client(home).get_experiment_by_name("iris").experiment_id)
    assert log_to_mlflow(home, replace(ENTRY, dataset="iris", release_id="iris-0002")) is not None


def test_log_to_mlflow_experiment_note_lists_directions(home: Path) -> None:
    log_to_mlflow(home, ENTRY)
    note = client(home).get_experiment_by_name("wdbc").tags["mlflow.note.content"]
    up, down = note.split("Lower is better: ")
    for metric in METRICS.values():
        assert re.search(rf"\b{metric.name}\b", up if metric.better == "up" else down)


def test_log_to_mlflow_many_parameters_all_logged(home: Path) -> None:
    parameters = {f"c{number:03}": number for number in range(250)}
    log_to_mlflow(home, replace(ENTRY, parameters=parameters))
    (run,) = list_runs(home, "wdbc")
    assert {f"method/{name}" for name in parameters} <= set(run.data.params)


def log_one(args: list[str]) -> int:
    home, release_id = args
    return 1 if log_to_mlflow(Path(home), replace(ENTRY, release_id=release_id)) is None else 0


@pytest.mark.slow
def test_log_to_mlflow_two_processes_one_database(tmp_path: Path) -> None:
    entry = "tests.tasks.notify.test_mlflow_log:log_one"
    commands = [start_cli([str(tmp_path), f"wdbc-000{n}"], entry=entry) for n in (1, 2)]
    assert [command.wait() for command in commands] == [Result(0, "", "")] * 2
    assert len(list_runs(tmp_path, "wdbc")) == 2


def test_log_to_mlflow_silent_address_none(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    start = time.monotonic()
    assert log_to_mlflow(home, ENTRY) is None
    assert time.monotonic() - start < 10
    assert capfd.readouterr() == ("", "")


def test_log_to_mlflow_damaged_database_none(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "views" / "mlflow" / "mlflow.db").write_bytes(b"not a database" * 1000)
    assert log_to_mlflow(home, ENTRY) is None
    assert capfd.readouterr() == ("", "")


def test_log_to_mlflow_held_lock_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.notify.mlflow_log.LOCK_LIMIT", 0.1)
    (home / "private" / "locks").mkdir(parents=True)
    lock = home / "private" / "locks" / "mlflow.lock"
    with hold(lock, holder="other", limit=1, say=print):
        assert log_to_mlflow(home, ENTRY) is None
    assert log_to_mlflow(home, ENTRY) is not None
    assert read_holder(lock) is None


def test_log_to_mlflow_logging_settings_unchanged(home: Path) -> None:
    levels = {name: logging.getLogger(name).level for name in ("alembic", "urllib3")}
    filters = list(warnings.filters)
    log_to_mlflow(home, ENTRY)
    assert {name: logging.getLogger(name).level for name in levels} == levels
    assert warnings.filters == filters


def test_find_pages_without_server_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = LoggedRun("3", "ab12")
    assert find_pages(home, run) is None
    record = Home(home).up_record("mlflow")
    record.parent.mkdir(parents=True, exist_ok=True)
    with open_listener(0) as listener:
        port = listener.getsockname()[1]
        record.write_text(f'{{"port": {port}}}')
        assert find_pages(home, run) == name_run_pages(f"http://127.0.0.1:{port}", run)
    assert find_pages(home, run) is None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example:5000")
    assert find_pages(home, run) == name_run_pages("http://mlflow.example:5000", run)


def test_run_page_address_with_password_removed() -> None:
    run = LoggedRun("3", "ab12")
    page = "/#/experiments/3/runs/ab12?workflowType=machine_learning"
    for address, shown in (
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("https://me:word@mlflow.example/", "https://mlflow.example"),
    ):
        pages = name_run_pages(address, run)
        assert pages.run == f"{shown}{page}"
        assert pages.report == f"{shown}{page.replace('?', '/artifacts/report.html?')}"


def run_the_query(args: list[str]) -> int:
    """Return the Python code of the page, as a reader would copy it."""
    (query,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(query, str(PAGE), "exec"), {})
    return 0


@pytest.mark.extended
def test_documented_query_lists_risk_and_accuracy(home: Path) -> None:
    weeks = range(1, 7)
    for n in weeks:
        found, accuracy = replace(LINKED, value=n / 100), replace(ACCURACY, value=0.9 - n / 1000)
        log_to_mlflow(home, release(n, scores=(found, BREACH, accuracy)))
    log_to_mlflow(home, refused(7))
    result = run_cli([], cwd=home.parent, entry="tests.tasks.notify.test_mlflow_log:run_the_query")
    assert (result.exit_code, result.stderr) == (0, "")
    head, *rows, last = [line.split() for line in result.stdout.splitlines()]
    assert head == ["release", "outcome", "method", "gamma", "found", "recovered", "accuracy"]
    same = ["published", "pca_laplace", "665"]
    assert rows == [
        [f"wdbc-000{n}", *same, f"{n / 100}", "0.04", f"{0.9 - n / 1000:.3f}"] for n in weeks[-5:]
    ]
    assert last == ["wdbc-0007", "refused", "random_rotation", "unbounded", "1.00", "NaN", "NaN"]
    assert [path.name for path in home.parent.iterdir()] == [".ppdm"]


def test_documentation_every_logged_name_explained() -> None:
    """Whatever is logged: its section, its part of a score, its tag."""
    text = PAGE.read_text()
    for name in (*ENTRY.metrics(), *ENTRY.params()):
        assert f"`{name.split('/')[0]}" in text
    assert [part for part in SCORE_PARTS if f"`.{part}`" not in text] == []
    tags = [tag for tag in ENTRY.tags() if not tag.startswith("mlflow.")]
    assert [tag for tag in tags if f"`{tag}`" not in text] == []
