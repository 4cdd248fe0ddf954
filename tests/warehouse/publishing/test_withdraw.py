"""The withdrawal of a version: files, `latest`, record, and what a kill leaves."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ppdm.release_folder import verify
from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.withdrawal import NOTICE_NAME
from tests.support.sealed_home import begin as begin_run
from tests.support.sealed_home import check, judge, new_store, publish
from warehouse import checkpoints
from warehouse.database import Store
from warehouse.home import Home
from warehouse.integrity.dataset_key import export_public_key
from warehouse.integrity.published_folders import check_published
from warehouse.publishing.publish import check_not_withdrawn, find_latest_version
from warehouse.publishing.version_folders import open_to_readers
from warehouse.publishing.withdraw import (
    complete_withdrawals,
    find_withdrawal,
    keep_folder,
    withdraw_version,
)

REASON = "The wrong table was released."


@pytest.fixture(scope="module")
def cellar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of two versions of a dataset."""
    store = new_store(tmp_path_factory.mktemp("cellar"))
    publish(store)
    publish(store)
    return store.home.root


@pytest.fixture
def store(cellar: Path, tmp_path: Path) -> Store:
    return Store(Home(shutil.copytree(cellar, tmp_path / "home", symlinks=True)))


def read_tree(store: Store) -> dict[str, Any]:
    """Return what recipients see, and the stage of every run."""
    wine = store.home.published / "wine"
    files = {str(path.relative_to(wine)): path.read_bytes() for path in wine.glob("*/*")}
    names = {path.name for path in wine.iterdir()}
    link = os.readlink(wine / "latest") if (wine / "latest").is_symlink() else None
    with store.transaction("tests") as db:
        stages = dict(db.execute("select release_id, stage from meta.run").fetchall())
    return {"files": files, "names": names, "latest": link, "stages": stages}


def check_home(store: Store) -> None:
    check(store)
    with store.transaction("tests") as db:
        check_published(db)


@pytest.mark.extended
def test_withdraw_newest_version_notice_in_its_place_latest_steps_back(store: Store) -> None:
    before = read_tree(store)
    withdraw_version(store, "wine-0002", REASON)
    after = read_tree(store)
    assert after["names"] == {"0001", "0002", "latest"}
    assert after["latest"] == "0001"
    assert after["stages"] == {"wine-0001": "published", "wine-0002": "withdrawn"}
    assert {name for name in after["files"] if name.startswith("0002")} == {f"0002/{NOTICE_NAME}"}
    kept = store.home.withdrawn / "wine-0002"
    for path in kept.iterdir():
        assert path.read_bytes() == before["files"][f"0002/{path.name}"]
    assert store.home.withdrawn.parent == store.home.private
    check_home(store)


def test_withdraw_older_version_latest_stays(store: Store) -> None:
    withdraw_version(store, "wine-0001", REASON)
    assert read_tree(store)["latest"] == "0002"
    check_home(store)


@pytest.mark.extended
def test_withdraw_all_versions_latest_removed_next_version_is_latest(store: Store) -> None:
    withdraw_version(store, "wine-0002", REASON)
    withdraw_version(store, "wine-0001", REASON)
    assert read_tree(store)["latest"] is None
    with store.transaction("tests") as db:
        assert find_latest_version(db, "wine") is None
    check_home(store)
    assert publish(store).name == "0003"
    check_home(store)


def test_notice_steward_key_signature_checked(store: Store, tmp_path: Path) -> None:
    withdraw_version(store, "wine-0002", REASON)
    key, folder = tmp_path / "steward.pem", store.home.published / "wine" / "0002"
    key.write_bytes(export_public_key(store))
    with store.transaction("tests") as db:
        found = find_withdrawal(db, "wine-0002")
    assert found is not None
    with pytest.raises(Refused, match=f"wine-0002 was withdrawn on {found.at[:10]}") as refusal:
        verify(folder, key)
    assert REASON in refusal.value.message
    other = tmp_path / "other.pem"
    other.write_bytes(export_public_key(new_store(tmp_path / "other")))
    with pytest.raises(Refused, match="signed with another key"):
        verify(folder, other)


def test_notice_names_no_person(store: Store) -> None:
    withdraw_version(store, "wine-0002", REASON)
    body = json.loads((store.home.published / "wine" / "0002" / NOTICE_NAME).read_bytes())
    fields = {"release_id", "withdrawn", "reason", "manifest", "signature", "digest"}
    assert set(body) == fields


CHANGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "reason": (
        lambda path: path.write_bytes(path.read_bytes().replace(b"wrong", b"right")),
        "was changed",
    ),
    "file added": (
        lambda path: path.with_name("data.parquet").write_bytes(b"x"),
        "lies beside a notice",
    ),
    "moved": (
        lambda path: shutil.copytree(path.parent, path.parent.with_name("0009")),
        "holds another version",
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("change", CHANGES)
def test_verify_changed_notice_refused(store: Store, change: str) -> None:
    withdraw_version(store, "wine-0002", REASON)
    wine = store.home.published / "wine"
    CHANGES[change][0](wine / "0002" / NOTICE_NAME)
    folder = wine / ("0009" if change == "moved" else "0002")
    with pytest.raises(Refused, match=CHANGES[change][1]):
        verify(folder)


@pytest.mark.extended
@pytest.mark.parametrize("change", ["reason", "file added"])
def test_check_published_changed_notice_refused(store: Store, change: str) -> None:
    withdraw_version(store, "wine-0002", REASON)
    CHANGES[change][0](store.home.published / "wine" / "0002" / NOTICE_NAME)
    complete_withdrawals(store)
    with pytest.raises(Refused, match="does not hold the notice alone"):
        check_home(store)


def test_complete_restored_folder_or_lost_notice_withdrawn_again(store: Store) -> None:
    withdraw_version(store, "wine-0002", REASON)
    after, wine = read_tree(store), store.home.published / "wine"
    shutil.rmtree(wine / "0002")
    complete_withdrawals(store)
    assert read_tree(store) == after
    shutil.rmtree(wine / "0002")
    shutil.copytree(store.home.withdrawn / "wine-0002", wine / "0002")
    complete_withdrawals(store)
    assert read_tree(store) == after
    assert not list(wine.glob(".*"))


def test_withdraw_not_published_bad_input(store: Store) -> None:
    run = begin_run(store)
    judge(store, run)
    for release_id, what in ((run.release_id, "it is 'refused'"), ("wine-0009", "no release")):
        with pytest.raises(BadInput, match=what):
            withdraw_version(store, release_id, REASON)
    assert not store.home.withdrawn.exists()


def test_withdraw_repeated_same_reason_accepted_other_refused(store: Store) -> None:
    first = withdraw_version(store, "wine-0002", REASON)
    assert withdraw_version(store, "wine-0002", REASON) == first
    with pytest.raises(BadInput, match="already, for another reason"):
        withdraw_version(store, "wine-0002", "Another one.")
    check_home(store)


@pytest.mark.parametrize("name", ["wine", "wine/0002"])
def test_withdraw_link_in_place_of_folder_refused(store: Store, name: str) -> None:
    path = store.home.published / name
    path.symlink_to(path.rename(path.with_name("moved")).name)
    with pytest.raises(Refused, match=f"published/{name} is a link"):
        withdraw_version(store, "wine-0002", REASON)
    assert read_tree(store)["stages"]["wine-0002"] == "published"


def test_publish_bytes_of_withdrawn_version_refused(store: Store) -> None:
    run = begin_run(store)
    with store.transaction("tests") as db:
        check_not_withdrawn(db, run, "d")
    withdraw_version(store, "wine-0001", REASON)
    with store.transaction("tests") as db, pytest.raises(Refused, match="those of wine-0001"):
        check_not_withdrawn(db, run, "d")


def test_keep_folder_other_disk_copied(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, kept = store.home.published / "wine" / "0002", tmp_path / "kept" / "wine-0002"
    kept.parent.mkdir()
    content = {path.name: path.read_bytes() for path in folder.iterdir()}
    rename = Path.rename

    def rename_on_one_disk(path: Path, target: Path) -> Path:
        if path.parent != target.parent:
            raise OSError(18, "Invalid cross-device link")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", rename_on_one_disk)
    keep_folder(folder, kept)
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == content
    assert not folder.exists()


@pytest.mark.parametrize(
    ("published", "found"), [(0o2775, (0o2775, 0o664)), (0o2770, (0o2770, 0o660))]
)
def test_open_to_readers_made_for_group_mode_of_published(
    store: Store, published: int, found: tuple[int, int]
) -> None:
    store.home.published.chmod(published)
    folder = store.home.published / "wine" / "0001"
    folder.chmod(0o2770)
    (folder / "card.md").chmod(0o660)
    open_to_readers(store.home, folder)
    modes = tuple(path.stat().st_mode & 0o7777 for path in (folder, folder / "card.md"))
    assert modes == found


class Killed(BaseException):
    pass


def list_points(store: Store) -> list[str]:
    """Return the checkpoints that a withdrawal passes."""
    points: list[str] = []
    checkpoints.LISTENERS.append(points.append)
    try:
        withdraw_version(store, "wine-0002", REASON)
    finally:
        checkpoints.LISTENERS.remove(points.append)
    return points


@pytest.mark.extended
def test_withdraw_stopped_at_every_point_completed_or_nothing_happened(
    store: Store, cellar: Path, tmp_path: Path
) -> None:
    whole = Store(Home(shutil.copytree(cellar, tmp_path / "whole", symlinks=True)))
    before, points = read_tree(whole), list_points(whole)
    after = read_tree(whole)
    assert len(points) >= 7
    for number in range(len(points)):
        root = shutil.copytree(cellar, tmp_path / f"copy{number}", symlinks=True)
        stopped = Store(Home(root))
        seen: list[str] = []

        def stop(name: str, seen: list[str] = seen, number: int = number) -> None:
            seen.append(name)
            if len(seen) == number + 1:
                raise Killed

        checkpoints.LISTENERS.append(stop)
        try:
            with pytest.raises(Killed):
                withdraw_version(stopped, "wine-0002", REASON)
        finally:
            checkpoints.LISTENERS.remove(stop)
        complete_withdrawals(stopped)
        found = read_tree(stopped)
        is_recorded = found["stages"]["wine-0002"] == "withdrawn"
        expected = after if is_recorded else before
        for what in ("names", "latest", "stages"):
            assert found[what] == expected[what], points[number]
        assert found["files"].keys() == expected["files"].keys()
        check_home(stopped)
