"""A week in a few minutes: servers started once, a release that ticks by itself, and its pages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.kills import orphans
from tests.support.scheduled_home import ROOT, Schedule, chromium, wait_until
from tests.support.small_release import ROWS, Small, small_rows, write_csv

pytestmark = pytest.mark.slow
AUTOMATION = ROOT / "examples" / "automation.yaml"


def is_named(*words: str) -> Any:
    return lambda run: all(word in run["name"].split() for word in words)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory, release_in: Any) -> Small:
    made: Small = release_in(tmp_path_factory.mktemp("schedule"), "weekly")
    made.content["schedule"] = {"cron": "* * * * *", "timezone": "Europe/Berlin"}
    return made.write()


@pytest.fixture(scope="module")
def schedule(release: Small) -> Iterator[Schedule]:
    schedule = Schedule(release)
    try:
        schedule.up()
        command = [sys.executable, "-m", "prefect", "automation", "create", "--from-file"]
        api = {**os.environ, "PREFECT_API_URL": f"{schedule.pages['prefect']}/api"}
        subprocess.run([*command, str(AUTOMATION)], check=True, capture_output=True, env=api)
        schedule.serve()
        yield schedule
    finally:
        schedule.close()


@pytest.fixture(scope="module")
def ticks(schedule: Schedule, release: Small) -> list[dict[str, Any]]:
    """Published, published with other data, refused because the data are spoiled."""
    first = schedule.wait_for(is_named("weekly-0001"))
    release.rows = small_rows(ROWS + 20)
    write_csv(release.table, release.rows)
    second = schedule.wait_for(
        lambda run: "outcome:published" in run["tags"] and run["id"] != first["id"]
    )
    release.rows[3]["pulse"] = "much too fast"
    write_csv(release.table, release.rows)
    return [first, second, schedule.wait_for(is_named("weekly", "REJECTED"))]


def test_up_called_twice_same_pages(schedule: Schedule) -> None:
    again = schedule.run("up", "--json")
    assert json.loads(again.stdout)["pages"] == schedule.pages
    assert set(schedule.pages) == {"prefect", "mlflow"}


def test_prefect_server_foreign_origin_or_host_refused(schedule: Schedule) -> None:
    """A page in the steward's browser could else start releases with limits of its own."""
    api = f"{schedule.pages['prefect']}/api"
    asked = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    preflight = urllib.request.Request(f"{api}/flows/filter", headers=asked, method="OPTIONS")
    code, headers = refusal(preflight)
    assert code == 400 and "access-control-allow-origin" not in headers
    renamed = urllib.request.Request(f"{api}/health", headers={"Host": "elsewhere.example"})
    assert refusal(renamed)[0] == 400


def refusal(request: urllib.request.Request) -> tuple[int, Any]:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    with refused.value as answer:
        return answer.code, answer.headers


def test_scheduled_runs_published_have_names_tags_and_artifacts(
    schedule: Schedule, ticks: list[dict[str, Any]]
) -> None:
    for run in ticks[:2]:
        assert run["state"]["name"] == "Completed"
        assert "PUBLISHED" in run["name"]
        assert run["auto_scheduled"]
        wanted = {"dataset:weekly", "method:pca_laplace", "outcome:published"}
        assert wanted <= set(run["tags"])
        artifacts = schedule.artifacts(run)
        assert {"weekly-verdict", "weekly-card", "weekly-mlflow", "weekly-report"} <= set(artifacts)
        assert schedule.pages["mlflow"] in artifacts["weekly-mlflow"]["data"]
    deployment = schedule.deployment()
    timetable = deployment["schedules"][0]["schedule"]
    assert (timetable["cron"], timetable["timezone"]) == ("* * * * *", "Europe/Berlin")


def list_compared(names: Iterable[str]) -> set[str]:
    """Return the names of scores; details of a score may be missing where no record counts."""
    return {name for name in names if not name.startswith("zoom/")}


def test_mlflow_two_scheduled_runs_same_metrics(
    release: Small, ticks: list[dict[str, Any]]
) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{release.home}/views/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("weekly")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id], order_by=["attributes.start_time"])
    runs = [run for run in found if "release_id" in run.data.tags]
    assert len(runs) >= 2
    names = [list_compared(run.data.metrics) for run in runs[:2]]
    assert names[0] == names[1] and "utility/knn_accuracy" in names[0]
    logged = {run.data.tags["prefect_flow_run_id"] for run in runs}
    assert {tick["id"] for tick in ticks[:2]} <= logged


def test_scheduled_run_rejected_latest_unchanged_and_reported(
    schedule: Schedule, release: Small, ticks: list[dict[str, Any]]
) -> None:
    refused = ticks[2]
    assert (refused["state"]["type"], refused["state"]["name"]) == ("FAILED", "Failed")
    assert "'pulse'" in refused["state"]["message"]
    verdict = schedule.artifacts(refused)["weekly-verdict"]
    assert "'pulse'" in verdict["description"] and "latest" in verdict["description"]
    second = ticks[1]["name"].split()[0]
    assert os.readlink(release.published / "latest") == second.rpartition("-")[2]
    wanted = {"ppdm.release.approved", "ppdm.release.refused"}
    wait_until(lambda: wanted <= {event["event"] for event in schedule.events()})
    assert "much too fast" not in json.dumps([refused, verdict, schedule.events()])


def test_automation_rejected_run_pauses_schedule(
    schedule: Schedule, ticks: list[dict[str, Any]]
) -> None:
    wait_until(lambda: schedule.deployment()["paused"])


def test_deployment_run_with_form_parameters_releases(schedule: Schedule, release: Small) -> None:
    write_csv(release.table, small_rows(ROWS + 30))
    deployment = schedule.deployment()
    parameters = {**deployment["parameters"], "dry_run": True}
    path = f"deployments/{deployment['id']}/create_flow_run"
    made = schedule.prefect(path, {"parameters": parameters, "state": {"type": "SCHEDULED"}})
    run = schedule.wait_for(lambda run: run["id"] == made["id"])
    assert "DRY RUN PASSED" in run["name"], run["state"]["message"]


def test_deployment_run_with_wrong_method_rejected(schedule: Schedule) -> None:
    deployment = schedule.deployment()
    parameters = json.loads(json.dumps(deployment["parameters"]))
    parameters["file"]["sanitizer"]["method"] = "pca_laplac"
    path = f"deployments/{deployment['id']}/create_flow_run"
    made = schedule.prefect(path, {"parameters": parameters, "state": {"type": "SCHEDULED"}})
    run = schedule.wait_for(lambda run: run["id"] == made["id"])
    assert run["state"]["name"] == "Failed" and "REJECTED" in run["name"]
    assert "Did you mean 'pca_laplace'?" in run["state"]["message"]


def test_deployment_form_every_field_described(schedule: Schedule) -> None:
    schema = schedule.deployment()["parameter_openapi_schema"]["definitions"]
    fields = schema["ReleaseFile"]["properties"]
    assert {"dataset", "source", "columns", "sanitizer", "audit", "limits"} <= set(fields)
    for model in schema.values():
        for name, field in model.get("properties", {}).items():
            model_of_it = schema.get(field.get("$ref", "").rpartition("/")[2], {})
            assert field.get("description") or model_of_it.get("description"), name


PAGES = {
    "approved": ("/runs/flow-run/{published}", "PUBLISHED"),
    "refused": ("/runs/flow-run/{rejected}", "REJECTED"),
    "form": ("/deployments/deployment/{deployment}/run", "What is released, by whom, for whom."),
}


@pytest.mark.parametrize("page", PAGES)
def test_prefect_page_shows_expected_text(
    page: str, schedule: Schedule, ticks: list[dict[str, Any]], pictures: Path
) -> None:
    path, words = PAGES[page]
    ids = {
        "published": ticks[1]["id"],
        "rejected": ticks[2]["id"],
        "deployment": schedule.deployment()["id"],
    }
    take(schedule.pages["prefect"] + path.format(**ids), words, pictures / f"prefect_{page}.png")


def test_mlflow_compare_page_shows_metric(
    schedule: Schedule, release: Small, ticks: list[dict[str, Any]], pictures: Path
) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{release.home}/views/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("weekly")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id], order_by=["attributes.start_time"])
    runs = [run for run in found if "release_id" in run.data.tags]
    chosen = json.dumps([run.info.run_id for run in runs[:2]])
    path = f"/#/compare-runs?runs={chosen}&experiments=[%22{experiment.experiment_id}%22]"
    first = min(runs[0].data.metrics)  # the page has only the rows that are on the screen
    take(schedule.pages["mlflow"] + path, first, pictures / "mlflow_compare.png")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the pictures go: PPDM_PICTURES keeps them."""
    if chromium() is None:
        pytest.skip("no Chromium on this machine: install Debian's package chromium")
    pytest.importorskip("playwright")
    given = os.environ.get("PPDM_PICTURES")
    folder = Path(given) if given else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def take(address: str, words: str, picture: Path) -> None:
    """The page as a person sees it, once it shows the words."""
    with browser_page(1000) as page:
        page.goto(address)
        page.get_by_text(words).first.wait_for(timeout=90_000)
        page.wait_for_timeout(3_000)
        for button in page.locator('button[aria-label="Close"]').all():  # MLflow's assistant
            button.click()
        page.wait_for_timeout(1_000)
        page.screenshot(path=picture)
    assert picture.stat().st_size > 20_000


@contextmanager
def browser_page(height: int) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=quiet)
        yield browser.new_page(viewport={"width": 1280, "height": height})
        browser.close()


def test_prefect_form_submitted_publishes(
    schedule: Schedule, release: Small, pictures: Path
) -> None:
    write_csv(release.table, small_rows(ROWS + 40))
    before = {run["id"] for run in schedule.releases()}
    deployment = schedule.deployment()["id"]
    with browser_page(6000) as page:  # all of the form at once
        page.goto(f"{schedule.pages['prefect']}/deployments/deployment/{deployment}/run")
        page.get_by_role("button", name="Submit").click(timeout=60_000)
        page.wait_for_url("**/deployments/deployment/*?tab=Runs")
    run = schedule.wait_for(lambda run: run["id"] not in before)
    assert "PUBLISHED" in run["name"], run["state"]["message"]


POOL = ("work-pool create ppdm --type process", "deploy --all --no-prompt")


def test_work_pool_worker_run_publishes(schedule: Schedule, release: Small) -> None:
    """`prefect.yaml` as it stands, in a folder where the demo was run."""
    folder = release.folder / "pool"
    pooled = Small(folder / "demo", "wdbc_pca_laplace", release.env).write()
    shutil.copy(ROOT / "prefect.yaml", folder)
    environment = {
        **os.environ,
        "PWD": str(folder),
        "PYTHONPATH": str(ROOT),
        "PREFECT_API_URL": f"{schedule.pages['prefect']}/api",
        "PPDM_TESTS_MARK": str(release.env["PPDM_TESTS_MARK"]),
    }
    name = "release/wdbc_pca_laplace"
    worker = "worker start --pool ppdm --run-once"
    for command in (*POOL, f"deployment run {name}", worker):
        line = [sys.executable, "-m", "prefect", *command.split()]
        done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done
    wanted = is_named("wdbc_pca_laplace-0001", "PUBLISHED")
    assert schedule.wait_for(wanted)["state"]["name"] == "Completed"
    assert pooled.versions() == ["0001"]


def test_down_serve_running_refused_then_stops_all(schedule: Schedule, release: Small) -> None:
    busy = schedule.run("down")
    assert busy.exit_code == 5 and "ppdm serve weekly" in busy.stderr
    doctor = schedule.run("doctor")
    assert "ppdm serve weekly" in doctor.stdout and "ppdm key backup weekly" in doctor.stdout
    served = schedule.stop_serving()
    assert served.exit_code == 0, served
    assert "Traceback" not in served.stderr
    assert "was approved and published" in served.stderr
    down = schedule.run("down")
    assert (down.exit_code, down.stdout) == (0, "Stopped: Prefect, MLflow.\n")
    assert orphans(release) == []
    assert schedule.run("down").stdout == "Nothing was running.\n"
