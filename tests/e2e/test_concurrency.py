from __future__ import annotations

import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.test_ledger import charges
from tests.support.forkserver import Result
from tests.support.kills import check_published, orphans
from tests.support.small_release import Small, small_rows
from warehouse.database import Store
from warehouse.home import Home

Maker = Callable[..., Small]
# The names of two of them start alike, as the names of their tables then do.
DATASETS = ("one", "one_0001", "two", "three")
LOCK_TEXT = re.compile(r"\block|conflict|IO Error|database is locked|Traceback", re.IGNORECASE)
WAITING = re.compile(r"Waiting for '\w+': .* \(pid \d+\) holds it\.")


@pytest.mark.slow
def test_release_two_processes_per_dataset_all_published(small: Maker) -> None:
    names, count = DATASETS, len(DATASETS)
    releases = [small(name, small_rows(seed=seed)).write() for seed, name in enumerate(names)]
    commands = [release.start("release", "--json") for release in releases * 2]
    looks: list[Result] = []
    while any(command.is_running for command in commands):
        time.sleep(1)
        if releases[0].private.joinpath("warehouse.duckdb").exists():
            looks.append(releases[0].ask("status", "--json"))
    results = [command.wait() for command in commands]
    assert [result.exit_code for result in (*results, *looks)] == [0] * (2 * count + len(looks))
    assert len(looks) >= 2
    for result in (*results, *looks):
        assert not LOCK_TEXT.search(result.stdout)
        assert not LOCK_TEXT.search(WAITING.sub("", result.stderr))
    endings = Counter(json.loads(result.stdout)["release"]["stage"] for result in results)
    assert endings == {"published": count, "no_change": count}
    check_outcome(releases)


def check_outcome(releases: list[Small]) -> None:
    names = [release.name for release in releases]
    for release in releases:
        assert release.versions() == ["0001"]
        assert {path.name for path in release.published.iterdir()} == {"0001", "latest"}
        check_published(release)
        assert orphans(release) == []
    assert list((releases[0].private / "work").iterdir()) == []
    with Store(Home(releases[0].home)).transaction("tests") as db:
        runs = db.execute("select release_id, stage from meta.run order by release_id").fetchall()
        tables = db.execute(
            "select table_name from information_schema.tables where table_schema = 'raw'"
        ).fetchall()
    assert runs == sorted(
        (f"{name}-{number:04d}", stage)
        for name in names
        for number, stage in ((1, "published"), (2, "no_change"))
    )
    # The raw table of the last run of each dataset is stored.
    assert sorted(tables) == sorted((f"{name}_0002",) for name in names)


ROOM = 3  # draws of one record


@pytest.mark.slow
def test_release_many_processes_one_dataset_within_limit(tmp_path: Path, release_in: Maker) -> None:
    """Each brings the table with some records changed in its own way, and all want to leave now."""
    count, fitting = 8, ROOM - 1
    first = limit_draws(release_in(tmp_path / "first"))
    assert first.write().run().exit_code == 0
    others = []
    for number in range(count):
        other = limit_draws(release_in(tmp_path / str(number)))
        other.env["PPDM_HOME"] = str(first.home)
        for row in other.rows[:5]:
            row["iron"] = repr(float(row["iron"]) + 0.01 * (1 + number))
        others.append(other.write().start("release", "--json"))
    results = [command.wait(600) for command in others]
    assert Counter(result.exit_code for result in results) == Counter(
        {0: fitting, 3: count - fitting}
    )
    assert len(first.versions()) == 1 + fitting
    check_published(first)
    spent = Counter(record for _, record in charges(first.home).elements())
    assert max(spent.values()) == 1 + fitting


def limit_draws(release: Small) -> Small:
    gamma = math.exp(1 / release.content["sanitizer"]["b"])
    limit = {"value": 1.01 * gamma**ROOM, "set_by": "tests", "reason": "three draws"}
    release.content["limits"]["ledger.record"] = limit
    return release


@pytest.mark.slow
def test_prefect_server_many_clients_no_locked_database(small: Maker) -> None:
    """Prefect's connections to SQLite would block each other for a minute at a time."""
    release = small()
    log = Path(os.environ["PREFECT_HOME"]).parents[1] / "private" / "server.log"
    before = log.read_text()
    commands = [release.start("3", entry="many_flows") for _ in range(6)]
    assert {command.wait(180).exit_code for command in commands} == {0}
    assert "database is locked" not in log.read_text().removeprefix(before)


def test_lock_text_lock_messages_matched() -> None:
    assert LOCK_TEXT.search("IOException: Could not set lock on file: Conflicting lock is held")
    assert LOCK_TEXT.search("sqlite3.OperationalError: database is locked")
    assert not LOCK_TEXT.search('{"message": "blocked clockwork"}')
