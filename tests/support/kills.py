"""Where a release can be killed, and what must be so afterwards."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.forkserver import ROOT, Result
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.publishing.manifest import verify
from warehouse.stages import ALLOWED

NAMES = ("checkpoint", "on_step")  # functions that are called at such a point
PACKAGES = ("flows", "tasks", "warehouse", "ppdm_core")
NO_STEP = {"created", "abandoned"}  # stages that a run is put into as another one begins
# Only met by the run after one that was killed at the point on the right.
AFTER = {"leftover hidden": "folder renamed"}
# In the order of a withdrawal of the only version.
IN_WITHDRAWAL = (
    "before commit of withdrawn",
    "events committed",
    "after commit of withdrawn",
    "version moved away",
    "notice written",
    "notice in place",
    "latest removed",
)
# In the order of an approval that publishes; "events committed" is met twice.
IN_APPROVAL = (
    "before commit of a decision",
    "events committed",
    "after commit of a decision",
    "publishing begun",
    "data written",
    "folder complete",
    "folder renamed",
    "before commit of published",
    "after commit of published",
    "before latest",
)
IN_TUNE = ("setting measured",)
# In the order of a release with further files and sinks on servers.
IN_DELIVERY = (
    "further file written",
    "object staged",
    "rows staged",
    "rows moved",
    "delivery changed",
)
# In a withdrawal from a database and a bucket.
IN_REMOVAL = ("rows removed", "notice of a sink written", "manifest of a sink removed")
IN_REJECTION = ("before commit of refused", "events committed", "after commit of refused")
# In a common release of several sites; see tests/e2e/test_common_release.py.
IN_COMMON_RELEASE = (
    "message stored",
    "message sent",
    "message accepted",
    "moments recorded",
    "pool begun",
    "pool stored",
    "pool attacked",
    "before commit of part_judged",
    "after commit of part_judged",
    "end recorded",
)
# In the order of a release; the others are tried one by one, which takes longer.
IN_CHAIN = (
    "home key written",
    "events committed",
    "run begun",
    "key written",
    "after commit of validated",
    "candidate drawn",
    "before commit of sanitized",
    "attack asked",
    "before commit of approved",
    "data written",
    "folder complete",
    "folder renamed",
    "leftover hidden",
    "after commit of published",
    "before latest",
)


def points_in_code() -> set[str]:
    """The name of every checkpoint, from the code itself."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {name for path in files for name in points_in(path)}


def points_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in NAMES:
            yield from names_of(node.args[0])


def names_of(argument: ast.expr) -> Iterator[str]:
    if isinstance(argument, ast.Constant):
        yield str(argument.value)
        return
    assert isinstance(argument, ast.JoinedStr), "a checkpoint has a name that can be read"
    for stage in ALLOWED.keys() - NO_STEP:
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else stage for part in argument.values
        )


@dataclass
class Chain:
    """A release that was killed at many points in turn, each time by a new command."""

    release: Small
    killed: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)


# Killed as a command; at the others its steps are, without Prefect, which is quicker.
BY_COMMAND = ("run begun", "attack asked", "folder renamed", "after commit of published")


def make_chain(release: Small) -> Chain:
    chain = Chain(release)
    for point in IN_CHAIN:
        by_command = point in BY_COMMAND
        result = kill(release, point) if by_command else kill_step(release, point)
        chain.results.append(result)
        if result.exit_code == -9:
            chain.killed.append(point)
        check_published(release)
    chain.results.append(release.run())
    return chain


def kill(release: Small, point: str, *args: str) -> Result:
    return release.run(point, *(args or ("release",)), entry="killed")


def kill_step(release: Small, point: str) -> Result:
    return release.run(point, "", entry="killed_steps")


def check_published(release: Small) -> None:
    """Check that the published folder holds only complete versions, or none."""
    for version in release.versions():
        verify(release.published / version)
    latest = release.published / "latest"
    if latest.is_symlink():
        verify(latest)


def check_same(release: Small, unkilled: Small) -> None:
    """The first version has the bytes that it would have had anyway, and nothing else is left."""
    check_same_bytes(release, unkilled)
    check_tidy(release)


def check_same_bytes(release: Small, unkilled: Small) -> None:
    assert release.versions() == ["0001"]
    for name in ("data.parquet", "card.md", "report.html"):
        ours, theirs = (each.published / "0001" / name for each in (release, unkilled))
        assert ours.read_bytes() == theirs.read_bytes()
    left = {path.name for path in release.published.iterdir()}
    assert left == {"0001", "latest"}, left
    assert (release.published / "latest").readlink() == Path("0001")
    check_published(release)


def check_tidy(release: Small) -> None:
    assert list((release.private / "work").iterdir()) == []
    assert list((release.private / "tmp").iterdir()) == []
    keys = {path.name for path in (release.private / "keys").iterdir()}
    assert keys == {f"{release.name}.key", "home-seal.key"}
    left = {path.name for path in release.private.iterdir()}
    folders = {"candidates", "keys", "locks", "tmp", "work"}
    assert left == {*folders, "warehouse.duckdb", "history.head"}, left
    candidates = {path.stem for path in (release.private / "candidates").iterdir()}
    assert candidates == list_pending(release)  # only a person who decides still needs one
    assert orphans(release) == []


def list_pending(release: Small) -> set[str]:
    """Return the ids of the releases that await a review."""
    with Store(Home(release.home)).transaction("tests") as db:
        query = "select release_id from meta.run where stage = 'awaiting_review'"
        return {release_id for (release_id,) in db.execute(query).fetchall()}


def orphans(release: Small) -> list[str]:
    """Processes that a command of this release started and left behind."""
    mark = f"PPDM_TESTS_MARK={release.env['PPDM_TESTS_MARK']}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.name != str(os.getpid()) and mark in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text())
        except OSError:
            continue
    return found
