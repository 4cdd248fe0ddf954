"""Withdrawals by command, in a copy of a home with two published versions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ppdm.cli.schema import build_schema
from tests.support.forkserver import Result
from tests.support.history import TOKEN, History
from tests.support.small_release import Small

NEWEST, REASON = "history-0003", "A column was too precise."


@pytest.fixture
def release(history: History, tmp_path: Path) -> Small:
    return history.release.copied_to(tmp_path / "copy")


def read_reply(name: str, result: Result) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(result.stdout)
    Draft202012Validator(build_schema(name)).validate(content)
    return content


def read_mlflow_tags(release: Small, release_id: str) -> dict[str, str]:
    from mlflow import MlflowClient

    database = release.home / "views" / "mlflow" / "mlflow.db"
    client = MlflowClient(tracking_uri=f"sqlite:///{database}")
    experiment = client.get_experiment_by_name(release.name)
    (run,) = client.search_runs([experiment.experiment_id], f"tags.release_id = '{release_id}'")
    return dict(run.data.tags)


@pytest.mark.slow
def test_withdraw_shown_by_every_command_nothing_refunded(release: Small) -> None:
    assert (release.published / "latest").readlink() == Path("0003")
    before = release.ask("ledger", release.name, "--json").stdout
    found = read_reply("withdraw", release.ask("withdraw", NEWEST, "--reason", REASON, "--json"))
    assert found["release"]["stage"] == "withdrawn"
    assert found["release"]["withdrawn"]["reason"] == REASON
    assert (release.published / "latest").readlink() == Path("0001")

    verified = release.ask("verify", NEWEST, "--json")
    reply = read_reply("verify", verified)
    assert verified.exit_code == 3 and reply["withdrawn"] == found["release"]["withdrawn"]
    words = release.ask("verify", NEWEST).stdout
    assert words.startswith(f"WITHDRAWN: {NEWEST}") and REASON in words and "NOT checked" in words
    assert release.ask("verify", "history/latest").exit_code == 0
    shown = " ".join(release.ask("show", NEWEST).stdout.replace("│", " ").split())
    assert "WITHDRAWN" in shown and REASON in shown and "Version 0001 is the latest" in shown
    runs = read_reply("status", release.ask("status", "--json"))["runs"]
    (run,) = [run for run in runs if run["release_id"] == NEWEST]
    assert run["stage"] == "withdrawn" and REASON in run["reason"]
    assert "withdrawn" in release.ask("history").stdout
    assert "1 published version, 1 withdrawn." in release.ask("history", "--verify").stdout

    assert release.ask("ledger", release.name, "--json").stdout == before
    tags = read_mlflow_tags(release, NEWEST)
    assert tags["outcome"] == "withdrawn" and tags["withdrawn"] == reply["withdrawn"]["at"]
    for path in (release.published / "0003").iterdir():
        assert TOKEN.encode() not in path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("history-0004", "--reason", "x"), "history-0004 is not published: it is 'refused'."),
        (("history-0099", "--reason", "x"), "There is no release 'history-0099'."),
        (("history-0001",), "Missing option '--reason'"),
        (("history-0001", "--reason", "two\nlines"), "--reason takes one line"),
        (("history-0001", "--reason", " "), "--reason takes one line"),
    ],
)
def test_withdraw_bad_input_one_sentence_nothing_changed(
    history: History, arguments: tuple[str, ...], sentence: str
) -> None:
    result = history.release.ask("withdraw", *arguments)
    assert result.exit_code == 2 and sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert history.release.versions() == ["0001", "0003"]


@pytest.mark.slow
def test_release_bytes_of_withdrawn_version_refused(small: Callable[..., Small]) -> None:
    release = small().write()
    assert release.run("", entry="prepared").stdout.split() == ["published"]
    assert release.ask("withdraw", "small-0001", "--reason", REASON).exit_code == 0
    assert release.run("", entry="prepared").stdout.split() == ["refused"]
    assert "those of small-0001, which was withdrawn" in release.ask("status").stdout
    assert release.ask("history", "--verify").exit_code == 0
