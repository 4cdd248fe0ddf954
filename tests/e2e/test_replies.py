"""Replies of real commands on a real home: they match their schemas, and panels fit a terminal."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from ppdm.cli.outcome import read_outcome
from ppdm.cli.panels import render_outcome
from ppdm.cli.schema import build_schema
from tests.support.forkserver import Result
from tests.support.history import History
from warehouse.database import Store, get_run
from warehouse.home import Home

OUTCOMES = {"approved": "PUBLISHED", "refused": "REFUSED", "dry run": "DRY RUN PASSED"}


def check_reply(name: str, result: Result) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(result.stdout)
    Draft202012Validator(build_schema(name)).validate(content)
    return content


@pytest.mark.parametrize("what", ["approved", "dry run", "changed", "refused", "waiting"])
def test_release_reply_matches_schema_figures_are_numbers(history: History, what: str) -> None:
    found = check_reply("release", history.results[what])["release"]
    judged = {each["check"]: each for each in found["findings"]}
    linked = judged["record_linkage.rate"]
    assert 0 <= linked["low"] <= linked["observed"] <= linked["high"] <= 1
    assert linked["limit"] == pytest.approx(linked["baseline"] + 0.2)
    assert {score["metric"] for score in found["scores"]} >= {"rate", "breach_rate"}


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("show", ("history-0001",)),
        ("show", ("latest",)),
        ("status", ()),
        ("status", ("--dataset", "history", "--waiting")),
        ("ledger", ("history",)),
        ("history", ()),
        ("history", ("--verify",)),
        ("verify", ("history/latest",)),
        ("verify", ("history-0001",)),
        ("doctor", ()),
        ("show", ("history-0099",)),
        ("methods", ()),
        ("methods", ("membership",)),
        ("schema", ("show",)),
    ],
)
def test_home_reply_matches_schema(history: History, name: str, arguments: tuple[str, ...]) -> None:
    check_reply(name, history.release.ask(name, *arguments, "--json"))


def test_status_states_method_verdict_reason_and_next_step(history: History) -> None:
    runs = check_reply("status", history.release.ask("status", "--json"))["runs"]
    refused = next(run for run in runs if run["stage"] == "refused")
    assert (refused["method"], refused["verdict"]) == ("random_rotation", "FAIL")
    assert refused["reason"] and refused["release_id"] in refused["next_step"]
    unknown = history.release.ask("status", "--dataset", "histori")
    assert unknown.exit_code == 2 and "'history'" in unknown.stderr


@pytest.mark.parametrize("what", OUTCOMES)
@pytest.mark.parametrize("columns", [80, 120])
def test_panel_outcome_first_and_within_the_terminal(
    history: History, what: str, columns: int
) -> None:
    release_id = json.loads(history.results[what].stdout)["release"]["release_id"]
    with Store(Home(history.release.home)).transaction("tests") as db:
        outcome = read_outcome(db, get_run(db, release_id))
    out = StringIO()
    Console(file=out, width=columns).print(render_outcome(outcome))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= min(columns, 100)
    assert OUTCOMES[what] in lines[0] and release_id in lines[0]
    assert len(outcome.risks) <= 8 and len(lines) <= 40
    for words in ("with the", "without", "limit", "Utility", "Bound", "Ledger", "Next", "--all"):
        assert words in out.getvalue()


def test_show_all_has_every_check_and_score(history: History) -> None:
    found = json.loads(history.results["refused"].stdout)["release"]
    text = history.release.ask("show", found["release_id"], "--all").stdout
    assert all(each["check"] in text for each in found["findings"])
    assert all(score["metric"] in text for score in found["scores"])
