"""Published folders against the record of the warehouse: links, rollbacks, forged folders."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import Refused
from ppdm_core.model.manifest import NAME
from tests.support.sealed_home import begin, check, new_store, publish
from warehouse.database import Store, list_runs
from warehouse.home import Home
from warehouse.integrity.published_folders import check_published
from warehouse.publishing.publish import find_latest_version, repair_latest


@pytest.fixture(scope="module")
def cellar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of three versions of a dataset, and one of another."""
    store = new_store(tmp_path_factory.mktemp("cellar"))
    for dataset in ("wine", "wine", "wine", "beer"):
        publish(store, dataset)
    return store.home.root


@pytest.fixture
def store(cellar: Path, tmp_path: Path) -> Store:
    return Store(Home(shutil.copytree(cellar, tmp_path / "home", symlinks=True)))


def count_published(store: Store) -> int:
    with store.transaction("tests") as db:
        return check_published(db)


def point(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


@pytest.mark.extended
def test_check_published_untouched_folders_counted(store: Store) -> None:
    check(store)
    assert count_published(store) == 4


LINKS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "older": (lambda link: point(link, "0001"), "points to 0001"),
    "elsewhere": (lambda link: point(link, "../beer/0001"), r"points to \.\./beer/0001"),
    "nowhere": (lambda link: point(link, "0009"), "points to 0009"),
    "by a longer way": (lambda link: point(link, "../wine/0003"), r"points to \.\./wine/0003"),
    "gone": (Path.unlink, "is no link"),
    "a copy": (
        lambda link: (link.unlink(), shutil.copytree(link.parent / "0001", link)),
        "is no link",
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("what", LINKS)
def test_check_published_moved_latest_refused(store: Store, what: str) -> None:
    move, found = LINKS[what]
    move(store.home.published / "wine" / "latest")
    with pytest.raises(Refused, match=f"`latest` of wine {found}, and the newest version is 0003"):
        count_published(store)
    check(store)  # publishing is not blocked: the next run repairs the link


def test_check_published_withdrawn_version_passes(store: Store) -> None:
    wine = store.home.published / "wine"
    shutil.rmtree(wine / "0003")
    assert count_published(store) == 3  # the link may dangle
    point(wine / "latest", "0002")
    assert count_published(store) == 3
    point(wine / "latest", "0001")
    with pytest.raises(Refused, match="the newest version is 0002"):
        count_published(store)
    shutil.rmtree(wine)
    assert count_published(store) == 1


@pytest.mark.extended
def test_check_published_ten_thousandth_version_is_newest(store: Store) -> None:
    with store.transaction("tests") as db:
        db.execute("update meta.run set number = 9999 where release_id = 'wine-0003'")
    folder = publish(store)
    assert folder.name == "10000"
    assert count_published(store) == 5


def test_repair_latest_moved_link_reported(store: Store) -> None:
    point(store.home.published / "wine" / "latest", "0001")
    with store.transaction("tests") as db:
        version = find_latest_version(db, "wine")
    assert repair_latest(store.home, "wine", version)
    assert not repair_latest(store.home, "wine", version)
    assert count_published(store) == 4


def replace_by_link(path: Path) -> None:
    target = path.rename(path.with_name(f"{path.name}.moved"))
    path.symlink_to(target.name)


@pytest.mark.parametrize("name", ["wine", "wine/0002"])
def test_check_published_link_in_place_of_folder_refused(store: Store, name: str) -> None:
    replace_by_link(store.home.published / name)
    with pytest.raises(Refused, match=f"published/{name} is a link"):
        count_published(store)


def test_check_published_forged_version_of_refused_run_refused(store: Store) -> None:
    """A folder for a run that exists and never published anything."""
    begin(store)
    wine = store.home.published / "wine"
    shutil.copytree(wine / "0001", wine / "0004")
    with pytest.raises(Refused, match="The folder of wine-0004 is published, and no version"):
        count_published(store)


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("{}")])
def test_check_published_other_manifest_refused(
    store: Store, change: Callable[[Path], Any]
) -> None:
    change(store.home.published / "wine" / "0002" / NAME)
    with pytest.raises(Refused, match="manifest of wine-0002 is not the one that was signed"):
        count_published(store)


@pytest.mark.extended
def test_check_history_folder_of_killed_run_passes(store: Store) -> None:
    publish(store, is_recorded=False)
    check(store)
    begin(store)  # the next run goes on
    with pytest.raises(Refused, match="wine-0004 is published, and no version is recorded"):
        count_published(store)


def go_back(store: Store, work: Callable[[], Any]) -> None:
    """Put the copy of `private` from before the work in its place."""
    saved = store.home.root / "saved"
    shutil.copytree(store.home.private, saved)
    work()
    shutil.rmtree(store.home.private)
    saved.rename(store.home.private)


@pytest.mark.extended
def test_begin_run_older_private_folder_refused(store: Store) -> None:
    go_back(store, lambda: publish(store))
    wine = store.home.published / "wine"
    for _ in range(2):  # trying again does not remove the evidence
        with pytest.raises(Refused, match="wine-0004 is published, and the history does not know"):
            begin(store)
    assert (wine / "0004" / NAME).is_file()
    with store.transaction("tests") as db:
        assert len(list_runs(db, "wine")) == 3
    with pytest.raises(Refused, match="wine-0004 is published"):
        check(store)


@pytest.mark.extended
def test_check_history_number_used_again_after_going_back_refused(store: Store) -> None:
    """The number of the lost version belongs to a run again, but not its manifest."""
    kept = store.home.root / "kept"
    go_back(store, lambda: publish(store))
    wine = store.home.published / "wine"
    (wine / "0004").rename(kept)
    begin(store)
    check(store)
    kept.rename(wine / "0004")
    with pytest.raises(Refused, match="wine-0004 is published, and the history does not know"):
        check(store)
