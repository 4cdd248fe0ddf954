"""The command with a Prefect server: a killed run goes on, and a check notices another verdict."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from ppdm.cli.app import main
from studies.reproduction import sampling
from studies.reproduction.registry import Claim
from tests.support.forkserver import start_cli

FAST = "P0.C3"
NOISE = "P0.C12"  # seven tables


@pytest.fixture
def home(tmp_path: Path, mlflow_template: Path) -> Path:
    target = tmp_path / "home" / "views" / "mlflow" / "mlflow.db"
    target.parent.mkdir(parents=True)
    shutil.copy(mlflow_template, target)
    return tmp_path / "home"


def reproduce(*arguments: str, home: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    """Run the command in this process; return its exit code and what it prints."""
    with pytest.raises(SystemExit) as end:
        main(["reproduce", *arguments, "--home", str(home), "--processes", "1", "--json"])
    assert isinstance(end.value.code, int)
    return end.value.code, json.loads(capsys.readouterr().out)


def is_any_left(mark: str) -> bool:
    """Return whether a process runs that was started with the mark in its environment."""
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in each.read_bytes():
                return True
        except OSError:  # it ended, or is of another user
            continue
    return False


@pytest.mark.slow
@pytest.mark.parametrize("verdict", ["holds", "does not hold"])
def test_check_with_a_committed_verdict_exits_3_if_it_is_another(
    verdict: str,
    home: Path,
    prefect_api: str,
    shared_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def choose(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
        return tuple(claim for claim in claims if claim.id == FAST)

    monkeypatch.setenv("PPDM_DATA", str(shared_data))
    monkeypatch.setattr(sampling, "choose_tenth", choose)
    monkeypatch.setattr(sampling, "read_committed_verdicts", lambda path: {FAST: verdict})
    code, reply = reproduce("--check", home=home, capsys=capsys)
    if verdict == "holds":
        assert code == 0
        return
    assert code == 3
    assert FAST in json.dumps(reply)


@pytest.mark.slow
def test_reproduce_after_a_kill_keeps_finished_measurements(
    home: Path, prefect_api: str, shared_data: Path
) -> None:
    arguments = ["reproduce", "--claim", NOISE, "--home", str(home), "--processes", "1", "--json"]
    mark = uuid.uuid4().hex
    env = {
        "PPDM_DATA": str(shared_data),
        "PREFECT_API_URL": prefect_api,
        "PPDM_TESTS_MARK": mark,
    }
    killed = start_cli(arguments, env=env)
    folder = home / "views" / "reproduction" / "results"
    deadline = time.monotonic() + 300
    while not list(folder.glob("measured_noise-*.parquet")):
        assert killed.is_running and time.monotonic() < deadline, killed.output()
        time.sleep(0.02)
    killed.kill()
    assert killed.wait().exit_code == -9
    while is_any_left(mark):  # a worker notices it within a second
        assert time.monotonic() < deadline
        time.sleep(0.1)
    before = {
        path.name: path.stat().st_mtime_ns for path in folder.glob("measured_noise-*.parquet")
    }
    assert 1 <= len(before) < 7
    assert not (folder / "findings.parquet").exists()
    again = start_cli(arguments, env=env).wait(600)
    assert again.exit_code == 0, again
    reply = json.loads(again.stdout)
    assert reply["kept"] == len(before)
    assert reply["measured"] == 7 - len(before)
    assert len(reply["claims"][0]["statements"]) == 7
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("measured_noise-*.parquet")}
    assert len(after) == 7
    assert before.items() <= after.items()
