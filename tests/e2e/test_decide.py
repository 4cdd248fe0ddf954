"""A release that the gate leaves to people, by commands of different operating-system users."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.forkserver import Result, run_cli
from tests.support.namespaces import DISGUISE, run_python, skip_without_namespaces
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.publishing.manifest import verify

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act for other users")

OTHER, THIRD = 1, 2  # users that every system has
GROUP = 12
ID = "small-0001"


def decide(release: Small, user: int, *args: str) -> Result:
    env = {**release.env, "PPDM_HOME": str(release.home)}
    given = [str(user), "decide", ID, *args, "--json"]
    return run_cli(given, env=env, entry="tests.support.entries:as_user", timeout=240)


def parse_output(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["exit_code"] == result.exit_code
    return found


def query_warehouse(release: Small, query: str) -> list[tuple[Any, ...]]:
    with Store(Home(release.home)).transaction("tests") as db:
        return db.execute(query).fetchall()


@pytest.mark.slow
def test_decide_two_other_users_approve_published(
    waiting: Small, tmp_path: Path, prefect_api: str
) -> None:
    release = waiting.copied_to(tmp_path / "copy")
    tick = release.run("release", "--json")  # as a schedule would
    found = parse_output(tick)
    assert (tick.exit_code, found["error"]["kind"]) == (4, "undecided")
    assert found["release"]["stage"] == "awaiting_review"
    assert found["release"]["approvals_missing"] == 2
    assert f"ppdm decide {ID} --approve" in found["error"]["remedy"]
    assert query_warehouse(release, "select count(*) from audit.verdict") == [
        (1,)
    ]  # nothing was redone
    own = decide(release, os.getuid(), "--approve", "--note", "It is mine.")
    assert (own.exit_code, parse_output(own)["error"]["kind"]) == (3, "refused")
    for _ in range(2):  # a person counts once
        half = decide(release, OTHER, "--approve", "--note", "I looked.", "--by", "Dr. Other")
        assert (half.exit_code, parse_output(half)["release"]["approvals_missing"]) == (4, 1)
        assert release.versions() == []
    whole = decide(release, THIRD, "--approve", "--note", "I looked, too.")
    assert whole.exit_code == 0, whole
    assert release.versions() == ["0001"]
    check_published_approvals(release)


def test_waiting_release_panel_and_status_name_the_decision(waiting: Small) -> None:
    panel = waiting.ask("show", "latest").stdout
    assert panel.splitlines()[0].startswith("╭─  WAITS FOR REVIEW  small-0001")
    assert f"ppdm decide {ID} --approve" in panel and "Approvals: 0 of 2" in panel
    (run,) = json.loads(waiting.ask("status", "--waiting", "--json").stdout)["runs"]
    assert (run["release_id"], run["method"], run["verdict"]) == (ID, "pca_laplace", "REVIEW")
    assert run["reason"] and f"ppdm decide {ID} --approve" in run["next_step"]
    assert f"ppdm decide {ID}" in waiting.ask("status", "--waiting").stdout


def check_published_approvals(release: Small) -> None:
    folder = release.published / "latest"
    manifest = verify(folder).manifest
    assert manifest["verdict"]["outcome"] == "REVIEW"
    names = [(one["by"], one["name"]) for one in manifest["approvals"]]
    other, third = (pwd.getpwuid(uid).pw_name for uid in (OTHER, THIRD))
    assert names == [(other, "Dr. Other"), (third, "")]
    card = (folder / "card.md").read_text()
    assert "| REVIEW | `knn_accuracy` |" in card and "Decided by review: Dr. Other, " in card
    texts = [path.read_bytes() for path in folder.iterdir()]
    assert not any(b"I looked" in text for text in texts)  # the note is not for outsiders
    shown = release.ask("show", ID, "--all").stdout
    assert f"approve by {other} (Dr. Other)" in shown and "I looked, too." in shown


@pytest.mark.slow
def test_decide_author_in_user_namespace_refused(waiting: Small, tmp_path: Path) -> None:
    skip_without_namespaces()
    release = waiting.copied_to(tmp_path / "copy")
    command = ["decide", ID, "--approve", "--note", "It is mine.", "--json"]
    code = f"import ppdm.cli.app\nppdm.cli.app.main({command!r})"
    env = {"PPDM_HOME": str(release.home)}
    found = json.loads(run_python(DISGUISE, code, env, exit_code=3))
    assert "a user namespace hides the real user" in found["error"]["message"]
    assert query_warehouse(release, "select * from audit.decision") == []


@pytest.mark.extended
def test_decide_rejection_refused(waiting: Small, tmp_path: Path, prefect_api: str) -> None:
    release = waiting.copied_to(tmp_path / "copy")
    rejected = decide(release, OTHER, "--reject", "--note", "Too close.")
    found = parse_output(rejected)
    assert (rejected.exit_code, found["release"]["stage"]) == (0, "refused")
    late = decide(release, THIRD, "--approve", "--note", "I like it.")
    assert (late.exit_code, parse_output(late)["error"]["kind"]) == (2, "bad_input")
    assert release.versions() == []


@pytest.mark.slow
def test_release_rejected_or_published_no_new_review(waiting: Small, tmp_path: Path) -> None:
    rejected, published = (waiting.copied_to(tmp_path / name) for name in ("one", "two"))
    assert decide(rejected, OTHER, "--reject", "--note", "Too close.").exit_code == 0
    assert rejected.run("", entry="prepared").stdout == "refused\n"
    for user in (OTHER, THIRD):
        approved_by(published, user)
    assert published.versions() == ["0001"]
    assert published.run("", entry="prepared").stdout == "no_change\n"


BAD = {
    "nothing": (),
    "both": ("--approve", "--reject", "--note", "x"),
    "no note": ("--approve",),
    "an empty note": ("--approve", "--note", " "),
}


@pytest.mark.extended
@pytest.mark.parametrize("what", BAD)
def test_decide_invalid_decision_bad_input(what: str, waiting: Small, tmp_path: Path) -> None:
    release = waiting.copied_to(tmp_path / "copy")
    result = decide(release, OTHER, *BAD[what])
    assert (result.exit_code, parse_output(result)["error"]["kind"]) == (2, "bad_input")
    assert query_warehouse(release, "select * from audit.decision") == []


def approved_by(release: Small, user: int, point: str = "none") -> Result:
    return release.run(str(user), point, ID, entry="approved_by")


@pytest.mark.slow
@pytest.mark.parametrize("point", ["publishing begun", "folder renamed"])
def test_decide_killed_while_publishing_next_run_publishes(
    waiting: Small, tmp_path: Path, point: str
) -> None:
    release = waiting.copied_to(tmp_path / "copy")
    assert approved_by(release, OTHER).stdout == "awaiting_review\n"
    assert approved_by(release, THIRD, point).exit_code == -9
    assert query_warehouse(release, "select stage from meta.run") == [("awaiting_review",)]
    assert release.run("", entry="prepared").stdout == "published\n"
    assert release.versions() == ["0001"]
    verify(release.published / "latest")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["source", "file"])
def test_release_changed_while_waiting_new_review(
    waiting: Small, tmp_path: Path, what: str
) -> None:
    release = waiting.copied_to(tmp_path / "copy")
    assert approved_by(release, OTHER).stdout == "awaiting_review\n"
    if what == "source":
        release.rows = release.rows[:-1]
    else:
        release.content["review"]["approvals"] = 1
    assert release.write().run("", entry="prepared").stdout == "awaiting_review\n"
    stages = query_warehouse(release, "select release_id, stage from meta.run order by number")
    assert stages == [(ID, "abandoned"), ("small-0002", "awaiting_review")]
    assert release.versions() == []


@pytest.mark.slow
def test_release_dry_run_review_needed_none_requested(
    waiting: Small, tmp_path: Path, prefect_api: str
) -> None:
    release = waiting.copied_to(tmp_path / "copy")
    looked = release.run("release", "--dry-run", "--json")
    assert (looked.exit_code, parse_output(looked)["release"]["stage"]) == (4, "awaiting_review")
    release.rows = release.rows[:-1]
    tried = release.write().run("release", "--dry-run", "--json")
    assert (tried.exit_code, parse_output(tried)["release"]["stage"]) == (4, "dry_run_passed")


@pytest.mark.slow
def test_decide_home_shared_by_group_member_approves(waiting: Small) -> None:
    """Two users who are not root: one made it, the other belongs to the group."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # where others may look
        release = waiting.copied_to(Path(folder) / "copy")
        for path in (Path(folder), release.folder):
            path.chmod(0o755)
        alone = release.run(str(OTHER), str(GROUP), ID, entry="approved_in_a_group")
        assert (
            alone.exit_code != 0 and query_warehouse(release, "select * from audit.decision") == []
        )
        for path in (release.private, *release.private.rglob("*")):
            os.chown(path, 0, GROUP)
            path.chmod(0o2770 if path.is_dir() else 0o660)
        shared = release.run(str(OTHER), str(GROUP), ID, entry="approved_in_a_group")
        assert (shared.exit_code, shared.stdout) == (0, "1\n"), shared
        assert approved_by(release, THIRD).stdout == "published\n"  # the owner can go on
