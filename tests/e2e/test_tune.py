"""`ppdm tune` as a steward uses it: command, files, a kill, and the release that follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from tests.support.forkserver import Result
from tests.support.kills import IN_TUNE, kill, orphans
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.integrity.history import check_history
from warehouse.tunes import BEGUN, ENDED, list_tune_events

Maker = Callable[..., Small]
WEAKER = "settings: chosen on the data, 3 tried"


def tune(release: Small, *args: str) -> Result:
    return release.run("tune", "--settings", "3", *args)


def read_reply(result: Result) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(result.stdout)
    return reply


def list_kinds(release: Small) -> list[str]:
    with Store(Home(release.home)).transaction("tests") as db:
        check_history(db)
        return [kind for kind, _ in list_tune_events(db, release.name)]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--utility", "accuracy"), "There is no utility 'accuracy'"),
        (("--utility", "clusters=0"), "must be a number above 0"),
        (("--methods", "pca"), "pca"),
        (("--settings", "0"), "1 to 200 settings"),
        (("--report", "page.pdf"), "written as HTML"),
        (("--out", "/tmp/elsewhere.toml"), "must be in the folder of small.toml"),
    ],
)
def test_tune_bad_option_one_sentence(small: Maker, args: tuple[str, ...], words: str) -> None:
    result = small().write().run("tune", *args)
    assert result.exit_code == 2
    (line,) = [each for each in result.stderr.splitlines() if each.startswith("ppdm: ")]
    assert words in line
    assert "Traceback" not in result.stderr


def test_tune_no_label_one_sentence(small: Maker) -> None:
    release = small()
    release.content["columns"]["mood"] = {"role": "exclude"}
    for name in ("label.rate", "knn_accuracy"):
        del release.content["limits"][name]
    result = release.write().run("tune", "--utility", "best_accuracy")
    assert result.exit_code == 2
    assert "needs a label column" in result.stderr


def test_tune_policy_forbids_one_sentence(small: Maker) -> None:
    release = small()
    release.content["audit"]["tuning"] = False
    result = release.write().run("tune")
    assert result.exit_code == 2
    assert "The policy forbids to choose settings on the data" in result.stderr


def test_tune_shared_policy_forbids_release_file_cannot_allow(small: Maker, tmp_path: Path) -> None:
    limits = {"record_linkage.rate": {"value": 0.2, "set_by": "DPO", "reason": "r"}}
    release = small()
    attacker, audit = (release.content[name] for name in ("attacker", "audit"))
    policy = {"attacker": attacker, "audit": {**audit, "tuning": False}, "limits": limits}
    (tmp_path / "policy.toml").write_text(tomlkit.dumps(policy))
    release.content = {"policy": "policy.toml", **release.content}
    result = release.write().run("tune")
    assert result.exit_code == 2
    assert "The policy forbids" in result.stderr
    release.content["audit"]["tuning"] = True
    result = release.write().run("tune")
    assert result.exit_code == 2
    assert "'tuning' key of [audit] is weaker" in result.stderr


def test_tune_existing_file_refused_before_anything_is_measured(small: Maker) -> None:
    release = small().write()
    (release.folder / "small_tuned.toml").write_text("")
    result = release.run("tune")
    assert result.exit_code == 2
    assert "small_tuned.toml exists already" in result.stderr


@pytest.mark.slow
def test_tune_killed_and_continued_then_released_with_weaker_promise(small: Maker) -> None:
    release = small().write()
    killed = kill(release, IN_TUNE[0], "tune", "--settings", "3")
    assert killed.exit_code == -9
    (progress,) = (release.private / "tunes").glob("*.jsonl")
    assert len(progress.read_bytes().splitlines()) == 1
    assert list_kinds(release) == [BEGUN]
    result = tune(release, "--json")
    assert result.exit_code == 0, result.stderr
    assert "1 trials are done already" in result.stderr
    reply = read_reply(result)
    assert (reply["tried"], len(reply["settings"])) == (3, 3)
    assert list_kinds(release) == [BEGUN, ENDED]
    assert not progress.exists()
    assert orphans(release) == []
    assert release.versions() == []
    page = Path(reply["page"]).read_text()
    assert page.startswith("<!DOCTYPE html>") and "ppdm release small_tuned.toml" in page
    assert reply["file"] == str(release.folder / "small_tuned.toml")
    check_tuned_release(release, reply)


def check_tuned_release(release: Small, reply: dict[str, Any]) -> None:
    """The proposed file is a release file; what it publishes says that settings were chosen."""
    written = tomlkit.parse(Path(reply["file"]).read_text()).unwrap()
    assert written["sanitizer"] == {
        "method": reply["proposed"]["method"],
        **reply["proposed"]["parameters"],
    }
    assert {**written, "sanitizer": None} == {**release.content, "sanitizer": None}
    release.content = written
    release.write()
    assert release.run().exit_code == 0
    folder = release.published / "0001"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert any(WEAKER in each for each in manifest["guarantee"]["assumptions"])
    assert manifest["guarantee"]["kind"] == "bounded_given_basis"
    for name in ("card.md", "report.html"):
        assert WEAKER in (folder / name).read_text()


@pytest.mark.slow
def test_tune_after_refusal_does_not_clear_it_and_report_quotes_it(small: Maker) -> None:
    release = small().strict().write()
    assert release.run().exit_code == 3
    release.content = small().content
    release.write()
    result = tune(release, "--json")
    assert result.exit_code == 0, result.stderr
    reply = read_reply(result)
    assert "small-0001 did not pass" in reply["obstacles"][0]
    release.content = tomlkit.parse(Path(reply["file"]).read_text()).unwrap()
    assert release.write().run().exit_code == 4  # a reviewer decides
    page = release.folder / "report.html"
    assert release.ask("report", "small-0001", "--out", str(page)).exit_code == 0
    assert "small tune 1" in page.read_text()


@pytest.mark.slow
def test_tune_no_setting_keeps_the_policy_exit_3_and_no_file(small: Maker) -> None:
    release = small().strict().write()
    result = tune(release, "--json")
    assert result.exit_code == 3, result.stderr
    reply = read_reply(result)
    assert (reply["ok"], reply["error"]["kind"], reply["file"]) == (False, "refused", None)
    assert not (release.folder / "small_tuned.toml").exists()
    named = {each["check"]: each for each in reply["trade_offs"]}
    broken = set.intersection(*(set(each["did_not_pass"]) for each in reply["settings"]))
    assert {"amplification.record", "known_pairs.breach_rate"} <= broken <= set(named)
    for check in broken:
        assert named[check]["sentence"].startswith(f"No setting tried keeps {check} ")
    offer = named["amplification.record"]["offers"][0]
    assert offer["needed"] == "with a waiver for random_rotation (no bound)"
    assert "ppdm release" not in Path(reply["page"]).read_text()


@pytest.mark.slow
def test_tune_runs_nested_in_mlflow(small: Maker) -> None:
    from mlflow import MlflowClient

    release = small().write()
    assert tune(release).exit_code == 0
    client = MlflowClient(f"sqlite:///{release.home}/views/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("small")
    runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    assert len(parents) == 1
    assert len(runs) == 4
    children = [run for run in runs if run is not parents[0]]
    for run in children:
        assert run.data.tags["mlflow.parentRunId"] == parents[0].info.run_id
        assert "privacy/record_linkage.rate" in run.data.metrics
        assert run.data.params["method"] == "pca_laplace"
    # Killed before it wrote the file: the same command writes it, and nothing is logged twice.
    tuned = release.folder / "small_tuned.toml"
    written = tuned.read_text()
    tuned.unlink()
    assert tune(release).exit_code == 0
    assert tuned.read_text() == written
    assert list_kinds(release) == [BEGUN, ENDED]
    assert len(client.search_runs([experiment.experiment_id])) == 4
