from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.config.release_file import load
from flows.release import is_not_engine_exit
from ppdm.cli.serve import check_servable, serve_files
from ppdm.services.deploy import build_deployment, note_stop_signals, watch_runner
from ppdm_core.model.errors import BadInput, MachineTrouble
from tests.support.small_release import Small


@pytest.fixture
def file(tmp_path: Path) -> Path:
    release = Small(tmp_path, "weekly", {})
    release.content["schedule"] = {"cron": "0 3 * * 1", "timezone": "Europe/Berlin"}
    return release.write().file


def test_serve_without_server_names_the_command(file: Path) -> None:
    with pytest.raises(BadInput, match="No Prefect server is running") as problem:
        serve_files([file])
    assert problem.value.remedy == f"ppdm up --home {file.parent / '.ppdm'}"
    assert not (file.parent / ".ppdm").exists()


def test_serve_bad_release_file_raises_before_serving(file: Path) -> None:
    file.write_text(file.read_text().replace('"pca_laplace"', '"pca_laplac"'))
    with pytest.raises(BadInput, match="Unknown method 'pca_laplac'"):
        serve_files([file])


def test_serve_same_name_or_two_homes_raises(file: Path, tmp_path: Path) -> None:
    other = Small(tmp_path / "other", "weekly", {}).write().file
    with pytest.raises(BadInput, match="same name"):
        serve_files([file, other])
    files = {"weekly": load(file), "other": load(other)}
    with pytest.raises(BadInput, match="2 homes"):
        check_servable([file, other], files)


def test_build_deployment_scheduled_file_holds_all_settings(file: Path) -> None:
    deployment = build_deployment("weekly", load(file))
    assert deployment.name == "weekly"
    assert deployment.entrypoint == "flows.release.release"
    schedule = deployment.schedules[0].schedule
    assert (schedule.cron, schedule.timezone) == ("0 3 * * 1", "Europe/Berlin")
    assert {"dataset:weekly", "method:pca_laplace"} <= set(deployment.tags)
    assert type(load(file)).model_validate(deployment.parameters["file"]) == load(file)


def test_build_deployment_markup_in_audience_described_as_text(file: Path) -> None:
    file.write_text(file.read_text().replace('"partners"', '"# PASS <b>x</b> [y](z)"'))
    assert build_deployment("weekly", load(file)).description == (
        r"Releases weekly to \# PASS &lt;b&gt;x&lt;/b&gt; \[y\](z)."
    )


def test_build_deployment_without_schedule_has_none(file: Path) -> None:
    text = file.read_text()
    file.write_text(text[: text.index("[schedule]")])
    assert build_deployment("weekly", load(file)).schedules == []


def test_release_file_given_as_path_is_read(file: Path) -> None:
    assert type(load(file)).model_validate(str(file)) == load(file)
    with pytest.raises(BadInput, match="does not exist"):
        type(load(file)).model_validate(str(file.with_name("none.toml")))


def test_is_not_engine_exit_only_engine_traceback_is_false() -> None:
    import logging

    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("prefect.flow_runs", logging.ERROR, "", 0, text, (), None)

    assert not is_not_engine_exit(record("Engine execution exited with unexpected exception"))
    assert is_not_engine_exit(record("Encountered an exception during execution"))


@pytest.fixture
def handlers() -> Iterator[None]:
    """Start with default handlers, also below nohup; restore those that were there."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.usefixtures("handlers")
def test_watch_runner_signal_returns_and_child_can_be_waited_for(number: int) -> None:
    received = note_stop_signals()
    signalling = f"import os, time; os.kill(os.getppid(), {number}); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", signalling]) as child:
        watch_runner(child, "http://127.0.0.1:9/api", received)
        child.kill()
    assert received == [number]


@pytest.mark.usefixtures("handlers")
def test_watch_runner_runner_ended_machine_trouble() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as child,
        pytest.raises(MachineTrouble, match=r"ended \(exit code 3\)"),
    ):
        watch_runner(child, "http://127.0.0.1:9/api", note_stop_signals())
