"""Decisions that are killed: nothing is half decided, and the next command completes the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.key_files import name_key
from tests.support.kills import IN_APPROVAL, IN_REJECTION, check_published
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home

ID = "small-0001"
PUBLISHED = IN_APPROVAL.index("before commit of published")  # all later points follow the commit


def read_state(release: Small) -> tuple[str, list[str], list[str]]:
    """Return the stage of the release, its decisions, and the events about them."""
    with Store(Home(release.home)).transaction("tests") as db:
        ((stage,),) = db.execute("select stage from meta.run").fetchall()
        made = db.execute("select choice from audit.decision").fetchall()
        events = db.execute("select kind from meta.event where kind = 'decision'").fetchall()
    return stage, [choice for (choice,) in made], [kind for (kind,) in events]


def check_links(release: Small) -> None:
    """Check that `latest`, if it exists, is the only version, and complete."""
    check_published(release)
    link = release.published / "latest"
    if link.is_symlink():
        assert link.readlink() == Path("0001") and release.versions() == ["0001"]


def check_end(release: Small) -> None:
    assert release.ask("history", "--verify").exit_code == 0
    reply = json.loads(release.ask("show", ID, "--json").stdout)["release"]
    assert [one["by"] for one in reply["approvals"]] == ["rita"]
    assert release.versions() == ["0001"]
    check_links(release)
    assert (release.published / "latest").is_symlink()


@pytest.mark.slow
@pytest.mark.parametrize("point", IN_APPROVAL)
def test_approve_killed_next_approval_publishes(point: str, signed: Small, tmp_path: Path) -> None:
    release = signed.copied_to(tmp_path / "copy")
    key = name_key(release, "rita")
    assert release.run(key, point, ID, entry="approved_with_key").exit_code == -9
    stage, made, events = read_state(release)
    is_recorded = point != IN_APPROVAL[0]
    assert (made, events) == ((["approve"], ["decision"]) if is_recorded else ([], []))
    is_published = IN_APPROVAL.index(point) > PUBLISHED
    assert stage == ("published" if is_published else "awaiting_review")
    check_links(release)
    if is_published:  # only `latest` is left to do
        assert release.run("", entry="prepared").stdout == "no_change\n"
    else:
        again = release.run(key, "none", ID, entry="approved_with_key")
        assert again.stdout == "published\n", again
    check_end(release)


@pytest.mark.slow
@pytest.mark.parametrize("point", IN_APPROVAL[1:PUBLISHED])
def test_approve_killed_next_run_publishes(point: str, signed: Small, tmp_path: Path) -> None:
    release = signed.copied_to(tmp_path / "copy")
    assert release.run(name_key(release, "rita"), point, ID, entry="approved_with_key").exit_code
    assert release.run("", entry="prepared").stdout == "published\n"
    check_end(release)


@pytest.mark.slow
@pytest.mark.parametrize("point", IN_REJECTION)
def test_reject_killed_nothing_or_all_happened(
    point: str, signed: Small, tmp_path: Path, prefect_api: str
) -> None:
    release = signed.copied_to(tmp_path / "copy")
    command = ("decide", ID, "--reject", "--note", "Too close.", "--key", name_key(release, "rita"))
    assert release.ask(point, *command, entry="killed").exit_code == -9
    stage, made, _ = read_state(release)
    is_recorded = point != IN_REJECTION[0]
    expected = ("refused", ["reject"]) if is_recorded else ("awaiting_review", [])
    assert (stage, made) == expected
    assert release.ask(*command).exit_code == (2 if is_recorded else 0)
    assert read_state(release)[:2] == ("refused", ["reject"])
    assert release.versions() == []
    assert release.ask("history", "--verify").exit_code == 0
    assert release.run("", entry="prepared").stdout == "refused\n"
