"""Withdrawals in a home that several users of one group share."""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ppdm_core.model.withdrawal import NOTICE_NAME
from tests.support.forkserver import Result, run_cli
from tests.support.sealed_home import check, new_store, publish
from warehouse.database import Store
from warehouse.integrity.published_folders import check_published

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act for other users")

OTHER, THIRD, GROUP, OTHER_GROUP = 1, 2, 12, 13


@pytest.fixture
def store() -> Iterator[Store]:
    """Two versions that root published, in a folder where others may look."""
    before = os.umask(0o022)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        made = new_store(Path(folder) / "home")
        publish(made)
        publish(made)
        yield made
    os.umask(before)


def share(store: Store) -> None:
    """Do what docs/verdict.md tells the owner of a home to do once."""
    home = store.home
    for path in (home.root, *home.root.rglob("*")):
        os.chown(path, 0, GROUP, follow_symlinks=False)
    for part, folder_mode in ((home.private, 0o2770), (home.published, 0o2775)):
        for path in (part, *part.rglob("*")):
            if path.is_symlink():
                continue
            if path.is_dir():
                path.chmod(folder_mode)
            elif part == home.private:
                path.chmod(0o660)


def withdraw(store: Store, user: int, release_id: str, group: int = GROUP) -> Result:
    given = [str(user), str(group), str(store.home.root), release_id, "A test."]
    env = {"TMPDIR": None}
    return run_cli(given, env=env, entry="tests.support.entries:withdrawn_in_a_group")


@pytest.mark.slow
def test_withdraw_home_shared_by_group_members_withdraw_each_others_versions(
    store: Store,
) -> None:
    wine = store.home.published / "wine"
    share(store)
    outside = withdraw(store, OTHER, "wine-0002", OTHER_GROUP)
    assert outside.exit_code != 0 and (wine / "0002" / "manifest.json").is_file()
    for user, number in ((OTHER, "0002"), (THIRD, "0001")):  # the second after another member
        result = withdraw(store, user, f"wine-{number}")
        assert result.stdout == f"{pwd.getpwuid(user).pw_name}\n", result
        notice = wine / number / NOTICE_NAME
        assert [path.name for path in notice.parent.iterdir()] == [NOTICE_NAME]
        assert notice.stat().st_mode & stat.S_IROTH  # recipients read it
        assert notice.parent.stat().st_mode & 0o005 == 0o005
        kept = store.home.withdrawn / f"wine-{number}"
        assert sorted(path.name for path in kept.iterdir()) == ["card.md", "manifest.json"]
    assert not (wine / "latest").is_symlink()
    assert store.home.withdrawn.stat().st_mode & 0o7777 == 0o2770
    check(store)
    with store.transaction("tests") as db:
        check_published(db)


def test_withdraw_home_of_one_user_others_refused(store: Store) -> None:
    result = withdraw(store, OTHER, "wine-0002")
    assert result.exit_code != 0
    assert (store.home.published / "wine" / "0002" / "manifest.json").is_file()
