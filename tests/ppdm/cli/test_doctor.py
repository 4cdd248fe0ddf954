from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from ppdm.cli.doctor import examine_home
from ppdm.cli.down import stop_services
from ppdm.cli.result import CommandResult
from ppdm.services import cluster
from ppdm.services.cluster import ClusterRecord
from ppdm.services.processes import ServerProcess, write_record
from ppdm_core.model.errors import BadInput
from tests.support.contexts import read_noise, start_run
from warehouse.database import Store, list_runs
from warehouse.home import CLUSTER_RECORD, Home
from warehouse.integrity.dataset_key import (
    backup_key,
    dataset_key_path,
    find_dataset_key,
    find_home_key,
)
from warehouse.locks import hold
from warehouse.stages import Stage

RESTART = "ppdm cluster down, then ppdm cluster up"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


@pytest.fixture
def store(home: Home) -> Store:
    """Return a home with one dataset, whose only run stopped right after its begin."""
    store = Store(home)
    start_run(
        store,
        dataset="wine",
        owner="cellar",
        source_digest="s",
        file_digest="f",
        code_version="c",
        pid=os.getpid(),
        flow_run_id=None,
    )
    read_noise(store, "wine")
    return store


def list_remedies(result: CommandResult) -> list[str]:
    return [remark["remedy"] for remark in result.payload["remarks"] if remark["remedy"]]


def test_doctor_no_home_raises(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no home"):
        examine_home(tmp_path)


def test_doctor_new_home_has_no_remedy(home: Home) -> None:
    result = examine_home(home.root)
    assert (result.exit_code, result.error, list_remedies(result)) == (0, None, [])
    assert "not running" in result.text and "none is held" in result.text


def test_doctor_dead_server_reported_until_down(home: Home) -> None:
    with subprocess.Popen(["sleep", "0"]) as process:
        gone = ServerProcess(process.pid, str(home.root), 4200, "/api/health")
    write_record(home.up_record("prefect"), gone)
    result = examine_home(home.root)
    assert result.exit_code == 5 and list_remedies(result) == ["ppdm up"]
    assert f"has died (pid {gone.pid})" in result.text
    assert stop_services(home.root, now=False).payload["stopped"] == []
    assert list_remedies(examine_home(home.root)) == []


@pytest.mark.parametrize(
    ("dead", "text", "remedies"),
    [
        ((), "tls://127.0.0.1:1, 2 workers", []),
        (("scheduler",), "its scheduler has died", [RESTART]),
        (("two",), "1 of 2 workers have died", [RESTART]),
    ],
)
def test_doctor_cluster_shown(
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    dead: tuple[str, ...],
    text: str,
    remedies: list[str],
) -> None:
    pids = {"scheduler": 11, "one": 12, "two": 13}
    record = ClusterRecord("tls://127.0.0.1:1", 11, (12, 13))
    home.cluster.mkdir()
    (home.cluster / CLUSTER_RECORD).write_text(json.dumps(asdict(record)))
    living = {pid for name, pid in pids.items() if name not in dead}
    monkeypatch.setattr(
        cluster, "find_process", lambda pid: [SimpleNamespace(pid=pid)] if pid in living else []
    )
    result = examine_home(home.root)
    assert list_remedies(result) == remedies
    assert result.exit_code == (5 if remedies else 0)
    assert text in " ".join(result.text.split())


def test_doctor_record_of_other_processes_cluster_died(home: Home) -> None:
    """The numbers of dead processes may be those of others by now."""
    record = ClusterRecord("tls://127.0.0.1:1", os.getpid(), (os.getppid(),))
    home.cluster.mkdir()
    (home.cluster / CLUSTER_RECORD).write_text(json.dumps(asdict(record)))
    assert list_remedies(examine_home(home.root)) == [RESTART]


def test_doctor_no_cluster_no_remark(home: Home) -> None:
    assert "cluster" not in [each["about"] for each in examine_home(home.root).payload["remarks"]]


def test_doctor_held_lock_names_holder(home: Home) -> None:
    with hold(home.dataset_lock("wine"), holder="a release of wine", limit=1, say=print):
        assert f"a release of wine (pid {os.getpid()})" in examine_home(home.root).text


def test_doctor_readable_folder_suggests_chmod(home: Home) -> None:
    home.private.chmod(0o755)
    assert list_remedies(examine_home(home.root)) == [f"chmod 700 {home.private}"]


@pytest.fixture
def own_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_doctor_shared_folder_is_accepted(home: Home, own_umask: None) -> None:
    home.private.chmod(0o2770)
    assert list_remedies(examine_home(home.root)) == []
    home.create()
    assert home.private.stat().st_mode & 0o7777 == 0o2770
    home.private.chmod(0o2775)
    assert list_remedies(examine_home(home.root)) == [f"chmod 700 {home.private}"]
    home.create()
    assert home.private.stat().st_mode & 0o777 == 0o700


def test_doctor_awaiting_review_suggests_decide(store: Store) -> None:
    with store.transaction() as db:
        (run,) = list_runs(db)
    for stage in ("raw", "validated", "sanitized", "audited", "awaiting_review"):
        with store.advance(run, Stage(stage)):
            pass
    result = examine_home(store.home.root)
    assert (result.exit_code, result.error) == (0, None)
    (remedy,) = [each for each in list_remedies(result) if "decide" in each]
    assert remedy.startswith("To decide: ppdm decide wine-0001 --approve")


def test_doctor_defect_report_is_listed(home: Home) -> None:
    (home.private / "defects").mkdir()
    (home.private / "defects" / "20260101-000000.txt").write_text("code")
    assert "20260101-000000.txt" in examine_home(home.root).text


def test_doctor_run_without_process_is_reported(store: Store) -> None:
    assert any(
        "it continues, to the same bytes" in remedy
        for remedy in list_remedies(examine_home(store.home.root))
    )
    lock = store.home.dataset_lock("wine")
    with hold(lock, holder="a release of wine", limit=1, say=print):
        assert "none left behind" in examine_home(store.home.root).text


def lose_key(store: Store) -> None:
    dataset_key_path(store.home, "wine").unlink()


def replace_key(store: Store) -> None:
    dataset_key_path(store.home, "wine").write_text("ab" * 32)


@pytest.mark.parametrize(
    ("damage", "words"),
    [(lose_key, "its key is missing"), (replace_key, "is not the one that its earlier")],
)
def test_doctor_missing_or_wrong_key_is_reported(
    damage: Callable[[Store], None], words: str, store: Store
) -> None:
    damage(store)
    result = examine_home(store.home.root)
    assert result.exit_code == 5 and words in result.text
    assert "ab" * 32 not in result.text


def test_doctor_backed_up_key_is_accepted(store: Store, tmp_path: Path) -> None:
    before = examine_home(store.home.root)
    urgent = [each for each in before.payload["remarks"] if each["remedy"] and each["is_urgent"]]
    assert [each["about"] for each in urgent] == ["run"]  # a missing backup is only advice
    assert "OPEN  key" in before.text and "never backed up" in before.text
    backup_key(store, find_dataset_key(store, "wine"), tmp_path / "wine.key.json")
    found = examine_home(store.home.root).text
    assert "wine: present, and backed up once" in found
    assert "of the home: present, never backed up" in found
    assert f"ppdm key backup --out FILE --home {store.home.root}" in found
    backup_key(store, find_home_key(store), tmp_path / "home.key.json")
    assert "of the home: present, and backed up once" in examine_home(store.home.root).text


def test_doctor_edited_history_is_reported(store: Store) -> None:
    assert "history  complete, up to event 1" in examine_home(store.home.root).text
    with store.transaction() as db:
        db.execute("update meta.event set kind = 'x'")
    result = examine_home(store.home.root)
    assert result.exit_code == 5
    assert "LOOK  history  Event 1 (wine-0001, x) was changed" in result.text
