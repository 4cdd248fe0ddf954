"""Whole releases on a cluster of real processes: the same as on one machine, also after deaths."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import Maker
from tests.e2e.test_leak import files_below, find_private
from tests.support.clusters import RealCluster, list_attacks
from tests.support.history import ADDED, TOKEN, History, first_rows
from tests.support.kills import check_published, check_tidy
from tests.support.scheduled_home import wait_until
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home

pytestmark = pytest.mark.slow

TABLES = ("audit.score", "audit.verdict", "ledger.charge", "ledger.entry")
RELEASE, FILES = "small-0002", ("data.parquet", "card.md", "report.html")


@dataclass(frozen=True)
class Outcome:
    """What a release left: published bytes, scores, verdict and ledger."""

    files: dict[str, bytes]
    tables: dict[str, list[Any]]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Small:
    """Return a release of one version, with one more record; tests copy its home and keys."""
    release = release_in(tmp_path_factory.mktemp("begun"), rows=first_rows()).write()
    assert release.run("", entry="prepared").exit_code == 0
    release.rows.append(ADDED)
    return release.write()


@pytest.fixture(scope="module")
def expected(begun: Small, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Return what a release on one machine leaves."""
    release = begun.copied_to(tmp_path_factory.mktemp("local") / "home")
    assert release.run().exit_code == 0
    return read_outcome(release)


def make_release(begun: Small, cluster: RealCluster, folder: Path) -> Small:
    """Return a copy of the release that runs on the cluster, with parts in a folder of its own."""
    release = begun.copied_to(folder / "copy")
    settings = cluster.settings
    names = ("kind", "address", "ca", "certificate", "private_key", "secret")
    release.content["engine"] = {name: getattr(settings, name) for name in names}
    release.content["engine"]["folder"] = str(folder / "parts")
    (folder / "parts").mkdir()
    return release.write()


def read_outcome(release: Small) -> Outcome:
    version = release.published / "0002"
    with Store(Home(release.home)).transaction("tests") as db:
        tables = {name: read_table(db, name) for name in TABLES}
    assert len(tables["audit.score"]) > 5
    return Outcome({name: (version / name).read_bytes() for name in FILES}, tables)


def read_table(db: Any, name: str) -> list[Any]:
    """Return the rows of a table, without times and seals, which differ in any two releases."""
    columns = [
        column
        for column, kind, *_ in db.execute(f"describe {name}").fetchall()
        if "TIME" not in kind and column not in ("mac", "seal")
    ]
    return sorted(db.execute(f"select {', '.join(columns)} from {name}").fetchall(), key=repr)


def check_same(release: Small, expected: Outcome) -> None:
    """The release is that of one machine, and no private part is left."""
    found = read_outcome(release)
    assert found.tables == expected.tables
    assert found.files == expected.files
    check_published(release)
    check_tidy(release)
    assert list((release.folder.parent / "parts").iterdir()) == []


def in_first_attack(cluster: RealCluster, names: tuple[str, ...] = ()) -> threading.Thread:
    """Kill workers as soon as one of them attacks; without names, the one that does."""

    def kill() -> None:
        wait_until(lambda: bool(list_attacks(cluster)), 240)
        for name in names or list(list_attacks(cluster))[:1]:
            cluster.kill(name)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_release_on_cluster_same_as_on_one_machine_and_nothing_private(
    begun: Small, expected: Outcome, cluster: RealCluster, tmp_path: Path
) -> None:
    release = make_release(begun, cluster, tmp_path)
    result = release.run("release", "--json")
    assert result.exit_code == 0, result
    check_same(release, expected)
    history = History(release)
    assert TOKEN.encode() in find_private(release.table.read_bytes(), history)
    for text in (result.stdout, result.stderr):
        assert find_private(text.encode(), history) == []
    views = release.home / "views"
    files = [*files_below(cluster.folder, views, Path(os.environ["PREFECT_HOME"]))]
    logs = {path.name for path in files if path.suffix == ".log"}
    assert {"scheduler.log", "one.log", "two.log"} <= logs
    assert any(path.name == "prefect.db" for path in files)
    for path in files:
        assert find_private(path.read_bytes(), history) == [], path


def test_release_worker_killed_same_as_on_one_machine(
    begun: Small, expected: Outcome, cluster: RealCluster, tmp_path: Path
) -> None:
    release = make_release(begun, cluster, tmp_path)
    killer = in_first_attack(cluster)
    result = release.run()
    killer.join()
    assert result.exit_code == 0, result
    assert sum(name in cluster.processes for name in ("one", "two")) == 1
    check_same(release, expected)


def test_release_unreachable_scheduler_bad_input_no_release_begun(
    begun: Small, cluster: RealCluster, tmp_path: Path
) -> None:
    release = make_release(begun, cluster, tmp_path)
    cluster.close()
    result = release.run()
    assert result.exit_code == 2, result
    assert f"No scheduler answers at {cluster.settings.address}." in " ".join(result.stderr.split())
    with Store(Home(release.home)).transaction("tests") as db:
        assert db.execute("select release_id from meta.run").fetchall() == [("small-0001",)]
    check_tidy(release)


def test_release_all_workers_lost_exit_5_then_published(
    begun: Small, expected: Outcome, cluster: RealCluster, tmp_path: Path
) -> None:
    release = make_release(begun, cluster, tmp_path)
    killer = in_first_attack(cluster, ("one", "two"))
    result = release.run()
    killer.join()
    assert result.exit_code == 5, result
    assert "All workers of the cluster" in " ".join(result.stderr.split())
    assert release.versions() == ["0001"]
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*.parquet")}
    assert parts
    cluster.start_worker("three")
    assert release.run().exit_code == 0
    check_same(release, expected)


def test_release_client_killed_next_run_same_and_no_attack_left(
    begun: Small, expected: Outcome, cluster: RealCluster, tmp_path: Path
) -> None:
    release = make_release(begun, cluster, tmp_path)
    command = release.start()
    wait_until(lambda: bool(list_attacks(cluster)), 240)
    attacks: list[psutil.Process] = [
        each for some in list_attacks(cluster).values() for each in some
    ]
    command.kill()
    command.wait()
    wait_until(
        lambda: not any(each in some for some in list_attacks(cluster).values() for each in attacks)
    )
    assert release.run().exit_code == 0
    check_same(release, expected)
    assert list_attacks(cluster) == {}
