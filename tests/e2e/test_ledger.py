"""The ledger of real processes: killed, at the same time, and as people read it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.forkserver import Command, Result, start_cli
from tests.support.history import History
from tests.support.kills import Chain
from tests.support.ledger_entries import ROOM
from tests.support.small_release import ROWS, Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.integrity.history import check_history


def start(folder: Path, value: float, point: str = "") -> Command:
    env = {"PPDM_HOME": str(folder / "home"), "TMPDIR": None}
    entry = "tests.support.ledger_entries:changing"
    return start_cli([str(folder), str(value), point], env=env, entry=entry)


def parse_output(result: Result) -> list[object]:
    assert result.exit_code == 0, result.stderr
    found: list[object] = json.loads(result.stdout)
    return found


def charges(home: Path) -> Counter[tuple[str, int]]:
    """How many things were drawn of each record, by release; and the history is whole."""
    with Store(Home(home)).transaction("tests") as db:
        check_history(db)
        rows = db.execute(
            "select e.release_id, c.record, count(*) from ledger.charge c "
            "join ledger.entry e on e.number = c.entry group by all"
        ).fetchall()
    return Counter({(release_id, record): count for release_id, record, count in rows})


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_ledger_killed_at_verdict_charged_once(tmp_path: Path, when: str) -> None:
    assert start(tmp_path, 0.25, f"{when} commit of refused").wait().exit_code == -9
    done = sum(charges(tmp_path / "home").values())
    assert done == (0 if when == "before" else 12)
    again = parse_output(start(tmp_path, 0.25).wait())
    assert again == ["charged", 12 - done]
    assert sorted(charges(tmp_path / "home").values()) == [1] * 12


def release_at_once(folder: Path, count: int) -> list[list[object]]:
    """Each changes one record in its own way, and all want to be released now."""
    first = parse_output(start(folder, 0.0).wait())
    assert first == ["charged", 12]
    commands = [start(folder, 0.01 * (1 + i)) for i in range(count)]
    results = [parse_output(command.wait(300)) for command in commands]
    spent = Counter(record for _, record in charges(folder / "home").elements())
    assert max(spent.values()) == min(ROOM, 1 + count)
    assert sorted(spent.values())[:-1] == [1] * 11
    return results


@pytest.mark.slow
def test_ledger_two_processes_both_charged(tmp_path: Path) -> None:
    assert release_at_once(tmp_path, 2) == [["charged", 1]] * 2


@pytest.mark.slow
def test_ledger_eight_processes_within_limit(tmp_path: Path) -> None:
    kinds = Counter(kind for kind, _ in release_at_once(tmp_path, 8))
    assert kinds == {"charged": ROOM - 1, "refused": 9 - ROOM}


def entries(release: Small) -> list[tuple[str, str, int]]:
    with Store(Home(release.home)).transaction("tests") as db:
        query = "select release_id, kind, records from ledger.entry order by number"
        return db.execute(query).fetchall()


def test_ledger_history_has_entry_per_verdict(history: History) -> None:
    found = entries(history.release)
    assert [(name, kind) for name, kind, _ in found] == [
        (f"history-{number:04d}", "charged") for number in (1, 2, 3, 4, 5)
    ]
    everybody, rehearsed, changed, rotated, waiting = (records for _, _, records in found)
    # The one record that was added is charged to the dry run, and free when it is released.
    assert (rehearsed, changed) == (1, 0)
    assert 0.7 * ROWS < everybody < ROWS  # without those set aside
    assert rotated == waiting == everybody + 1


def test_ledger_release_killed_often_charged_once(chain: Chain, history: History) -> None:
    own, theirs = (charges(each.release.home) for each in (chain, history))
    first = {key: count for key, count in theirs.items() if key[0] == "history-0001"}
    assert own == first and set(own.values()) == {1}
    assert entries(chain.release)[1][2] == 0


@pytest.mark.extended
def test_ledger_command_history_text_plot_and_json(history: History, tmp_path: Path) -> None:
    picture = tmp_path / "ledger.svg"
    shown = history.release.ask("ledger", "history", "--plot", str(picture))
    assert shown.exit_code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[1].split() == ["spent", "unbounded"]
    assert re.search(r"history-0001 .* pca_laplace +3\d\d +", shown.stdout)
    ElementTree.parse(picture)
    payload = json.loads(history.release.ask("ledger", "history", "--json").stdout)
    (account,) = payload["accounts"]
    assert account["ln_spent"] is None and account["draws_spent"] == 1
    assert [entry["records"] for entry in payload["entries"]] == [
        records for _, _, records in entries(history.release)
    ]
    for row in history.release.rows:
        assert row["person"] not in shown.stdout and row["iron"] not in picture.read_text()


def test_ledger_command_bad_arguments_bad_input(history: History, tmp_path: Path) -> None:
    unknown = history.release.ask("ledger", "histori")
    assert unknown.exit_code == 2
    assert "no dataset 'histori'" in unknown.stderr and "'history'" in unknown.stderr
    there = tmp_path / "there.svg"
    there.write_text("mine")
    result = history.release.ask("ledger", "history", "--plot", str(there))
    assert result.exit_code == 2 and there.read_text() == "mine"
