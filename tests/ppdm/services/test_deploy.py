from __future__ import annotations

from pathlib import Path

import pytest

from flows.config.release_file import load
from flows.release import is_no_surprise
from ppdm.services.deploy import check_together, deployment_of, serve_files
from ppdm_core.model.errors import BadInput
from tests.support.small_release import Small


@pytest.fixture
def file(tmp_path: Path) -> Path:
    release = Small(tmp_path, "weekly", {})
    release.content["schedule"] = {"cron": "0 3 * * 1", "timezone": "Europe/Berlin"}
    return release.write().file


def test_without_a_server_serve_says_how_to_start_one(file: Path) -> None:
    with pytest.raises(BadInput, match="No Prefect server is running") as problem:
        serve_files([file])
    assert problem.value.remedy == f"ppdm up --home {file.parent / '.ppdm'}"
    assert not (file.parent / ".ppdm").exists()


def test_a_bad_release_file_is_told_before_anything_is_served(file: Path) -> None:
    file.write_text(file.read_text().replace('"pca_laplace"', '"pca_laplac"'))
    with pytest.raises(BadInput, match="Unknown method 'pca_laplac'"):
        serve_files([file])


def test_files_that_cannot_be_served_together(file: Path, tmp_path: Path) -> None:
    other = Small(tmp_path / "other", "weekly", {}).write().file
    with pytest.raises(BadInput, match="same name"):
        serve_files([file, other])
    files = {"weekly": load(file), "other": load(other)}
    with pytest.raises(BadInput, match="2 homes"):
        check_together([file, other], files)


def test_a_deployment_says_all_that_the_file_says(file: Path) -> None:
    deployment = deployment_of("weekly", load(file))
    assert deployment.name == "weekly"
    assert deployment.entrypoint == "flows.release.release"
    timetable = deployment.schedules[0].schedule
    assert (timetable.cron, timetable.timezone) == ("0 3 * * 1", "Europe/Berlin")
    assert {"dataset:weekly", "method:pca_laplace"} <= set(deployment.tags)
    assert type(load(file)).model_validate(deployment.parameters["file"]) == load(file)


def test_a_file_without_a_schedule_is_started_by_hand(file: Path) -> None:
    text = file.read_text()
    file.write_text(text[: text.index("[schedule]")])
    assert deployment_of("weekly", load(file)).schedules == []


def test_a_deployment_may_name_a_file_instead(file: Path) -> None:
    assert type(load(file)).model_validate(str(file)) == load(file)
    with pytest.raises(BadInput, match="does not exist"):
        type(load(file)).model_validate(str(file.with_name("none.toml")))


def test_only_the_tracebacks_of_the_engine_are_kept_from_the_log() -> None:
    import logging

    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("prefect.flow_runs", logging.ERROR, "", 0, text, (), None)

    assert not is_no_surprise(record("Engine execution exited with unexpected exception"))
    assert is_no_surprise(record("Encountered an exception during execution"))
