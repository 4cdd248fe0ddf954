from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ppdm.cli.doctor import examine_home
from ppdm.cli.result import CommandResult
from ppdm.services.local_servers import stop_services
from ppdm.services.processes import ServerProcess, read_identity, write_record
from ppdm_core.model.errors import BadInput
from tasks.keys import HOME, backup_key, dataset_noise, key_path
from warehouse.database import Store, list_runs
from warehouse.home import Home
from warehouse.locks import hold
from warehouse.runs import begin_run
from warehouse.stages import Stage


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


@pytest.fixture
def store(home: Home) -> Store:
    """A home with one dataset, whose only run stopped right after its begin."""
    store = Store(home)
    begin_run(
        store,
        dataset="wine",
        owner="cellar",
        source_digest="s",
        file_digest="f",
        code_version="c",
        pid=os.getpid(),
        flow_run_id=None,
    )
    dataset_noise(store, "wine")
    return store


def remedies(answer: CommandResult) -> list[str]:
    return [remark["remedy"] for remark in answer.payload["remarks"] if remark["remedy"]]


def test_no_home(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no home"):
        examine_home(tmp_path)


def test_a_fresh_home_is_fine(home: Home) -> None:
    answer = examine_home(home.root)
    assert (answer.exit_code, answer.error, remedies(answer)) == (0, None, [])
    assert "not running" in answer.text and "nobody holds one" in answer.text


def test_a_dead_service_is_found_and_down_forgets_it(home: Home) -> None:
    with subprocess.Popen(["sleep", "0"]) as process:
        identity = read_identity(process.pid)
    assert identity is not None
    gone = ServerProcess(
        process.pid, identity[0], 4200, "ppdm.services.prefect_process", "/api/health"
    )
    write_record(home.up_record("prefect"), gone)
    answer = examine_home(home.root)
    assert answer.exit_code == 5 and remedies(answer) == ["ppdm up"]
    assert f"has died (pid {gone.pid})" in answer.text
    assert stop_services(home.root, now=False).payload["stopped"] == []
    assert remedies(examine_home(home.root)) == []


def test_who_holds_a_lock(home: Home) -> None:
    with hold(home.dataset_lock("wine"), holder="a release of wine", limit=1, say=print):
        assert f"a release of wine (pid {os.getpid()})" in examine_home(home.root).text


def test_a_folder_that_others_can_read(home: Home) -> None:
    home.private.chmod(0o755)
    assert remedies(examine_home(home.root)) == [f"chmod 700 {home.private}"]


@pytest.fixture
def own_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_folder_that_a_group_shares(home: Home, own_umask: None) -> None:
    home.private.chmod(0o2770)
    assert remedies(examine_home(home.root)) == []
    home.create()
    assert home.private.stat().st_mode & 0o7777 == 0o2770
    home.private.chmod(0o2775)
    assert remedies(examine_home(home.root)) == [f"chmod 700 {home.private}"]
    home.create()
    assert home.private.stat().st_mode & 0o777 == 0o700


def test_what_waits_for_people_is_told(store: Store) -> None:
    with store.transaction() as db:
        (run,) = list_runs(db)
    for stage in ("raw", "validated", "sanitized", "audited", "awaiting_review"):
        with store.advance(run, Stage(stage)):
            pass
    (remedy,) = [each for each in remedies(examine_home(store.home.root)) if "decide" in each]
    assert remedy.startswith("To decide: ppdm decide wine-0001 --approve")


def test_defects_are_listed(home: Home) -> None:
    (home.private / "defects").mkdir()
    (home.private / "defects" / "20260101-000000.txt").write_text("code")
    assert "20260101-000000.txt" in examine_home(home.root).text


def test_a_run_without_a_process_is_an_orphan(store: Store) -> None:
    assert any(
        "goes on, to the same bytes" in remedy for remedy in remedies(examine_home(store.home.root))
    )
    lock = store.home.dataset_lock("wine")
    with hold(lock, holder="a release of wine", limit=1, say=print):
        assert "none left behind" in examine_home(store.home.root).text


def lose(store: Store) -> None:
    key_path(store.home, "wine").unlink()


def swap(store: Store) -> None:
    key_path(store.home, "wine").write_text("ab" * 32)


@pytest.mark.parametrize(
    ("damage", "words"), [(lose, "its key is missing"), (swap, "is not the one that its earlier")]
)
def test_a_key_that_is_not_there(damage: Callable[[Store], None], words: str, store: Store) -> None:
    damage(store)
    answer = examine_home(store.home.root)
    assert answer.exit_code == 5 and words in answer.text
    assert "ab" * 32 not in answer.text


def test_a_key_counts_as_backed_up_once_it_was(store: Store, tmp_path: Path) -> None:
    assert "never backed up" in examine_home(store.home.root).text
    backup_key(store, "wine", tmp_path / "wine.key.json")
    found = examine_home(store.home.root).text
    assert "wine: present, and backed up once" in found
    assert "of the home: present, never backed up" in found
    assert f"ppdm key backup --out FILE --home {store.home.root}" in found
    backup_key(store, HOME, tmp_path / "home.key.json")
    assert "of the home: present, and backed up once" in examine_home(store.home.root).text


def test_a_touched_history_needs_a_look(store: Store) -> None:
    assert "history    whole, up to event 1" in examine_home(store.home.root).text
    with store.transaction() as db:
        db.execute("update meta.event set kind = 'x'")
    answer = examine_home(store.home.root)
    assert answer.exit_code == 5
    assert "LOOK  history    Event 1 (wine-0001, x) was changed" in answer.text
