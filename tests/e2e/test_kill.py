from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.history import marked
from tests.e2e.tables import Small, small_rows
from tests.forkserver import ROOT, Result
from warehouse.home import Home
from warehouse.manifest import verify
from warehouse.stages import ALLOWED
from warehouse.store import Store

Maker = Callable[..., Small]
PACKAGES = ("flows", "tasks", "warehouse", "ppdm_core")
NO_STEP = {"created", "abandoned"}  # stages that a run is put into as another one begins
# Only met by the run after one that was killed at the point on the right.
AFTER = {"leftover hidden": "folder renamed"}
# Points on the way to other endings than `published`, and what leads there.
ENDINGS = ("unchanged", "rehearsed", "refused", "rejected")


def points_in_code() -> set[str]:
    """The name of every checkpoint, from the code itself."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {name for path in files for name in points_in(path)}


def points_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "checkpoint":
            yield from names_of(node.args[0])


def names_of(argument: ast.expr) -> Iterator[str]:
    if isinstance(argument, ast.Constant):
        yield str(argument.value)
        return
    assert isinstance(argument, ast.JoinedStr), "a checkpoint has a name that can be read"
    for stage in ALLOWED.keys() - NO_STEP:
        parts = (part.value if isinstance(part, ast.Constant) else stage for part in argument.values)
        yield "".join(map(str, parts))


POINTS = sorted(points_in_code())


def kill(release: Small, point: str, *args: str) -> Result:
    return release.run(point, *(args or ("release",)), entry="killed")


@dataclass
class Chain:
    """A release that was killed at every point in turn, each time by a new command."""

    release: Small
    reached: list[str]  # by a run that nobody killed
    killed: list[str] = field(default_factory=list)
    outputs: list[Result] = field(default_factory=list)


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Chain:
    folder = tmp_path_factory.mktemp("unkilled")
    release = release_in(folder, "killed", marked(small_rows())).write()
    result = release.run(str(folder / "points"), "release", entry="noted")
    assert result.exit_code == 0, result
    return Chain(release, (folder / "points").read_text().splitlines())


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, release_in: Maker, unkilled: Chain) -> Chain:
    release = release_in(tmp_path_factory.mktemp("chain"), "killed", marked(small_rows())).write()
    chain = Chain(release, unkilled.reached)
    for point in unkilled.reached:
        strike(chain, point)
        for later, before in AFTER.items():
            if before == point:
                strike(chain, later)
    chain.outputs.append(release.run())
    return chain


def strike(chain: Chain, point: str) -> None:
    result = kill(chain.release, point)
    chain.outputs.append(result)
    if result.exit_code == -9:
        chain.killed.append(point)
    check_published(chain.release)


def check_published(release: Small) -> None:
    """Whoever looks at the published folder sees whole versions, or none."""
    for version in release.versions():
        verify(release.published / version)
    latest = release.published / "latest"
    if latest.is_symlink():
        verify(latest)


def check_same(release: Small, unkilled: Small) -> None:
    """The first version has the bytes that it would have had anyway, and nothing else is left."""
    assert "0001" in release.versions()
    for name in ("data.parquet", "card.md"):
        ours, theirs = (each.published / "0001" / name for each in (release, unkilled))
        assert ours.read_bytes() == theirs.read_bytes()
    assert release.versions() == ["0001"]
    assert {path.name for path in release.published.iterdir()} == {"0001", "latest"}
    assert (release.published / "latest").readlink() == Path("0001")
    check_published(release)
    check_tidy(release)


def check_tidy(release: Small) -> None:
    assert list((release.private / "work").iterdir()) == []
    assert [path.name for path in (release.private / "keys").iterdir()] == [f"{release.name}.key"]
    assert list((release.private / "tmp").iterdir()) == []
    left = {path.name for path in release.private.iterdir()}
    assert left == {"keys", "locks", "tmp", "work", "warehouse.duckdb"}
    assert orphans(release) == []


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


def runs(release: Small) -> dict[str, str]:
    with Store(Home(release.home)).transaction("tests") as db:
        return dict(db.execute("select release_id, stage from meta.run").fetchall())


def flow_states(release: Small) -> dict[str, list[str]]:
    """Names of the states of the release's flow runs and of their subflows, in Prefect."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterName,
        FlowRunFilterParentFlowRunId,
    )

    with get_client(sync_client=True) as client:
        named = FlowRunFilter(name=FlowRunFilterName(any_=[release.name]))
        parents = client.read_flow_runs(flow_run_filter=named, limit=200)
        ids = [run.id for run in parents]
        of_them = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=ids))
        children = client.read_flow_runs(flow_run_filter=of_them, limit=200)
    return {
        "release": [str(run.state_name) for run in parents],
        "subflows": [str(run.state_name) for run in children],
    }


def test_the_points_are_many_and_known() -> None:
    assert len(POINTS) >= 12
    assert {"door opened", "folder renamed", "before commit of published"} <= set(POINTS)


def test_every_point_is_tried(unkilled: Chain) -> None:
    endings = {f"{when} commit of {stage}" for stage in ENDINGS for when in ("before", "after")}
    assert set(unkilled.reached) | set(AFTER) | endings == set(POINTS)


def test_killed_at_every_point_a_release_still_ends_as_if_nothing_had_happened(
    chain: Chain, unkilled: Chain
) -> None:
    expected = [*unkilled.reached]
    for later, before in AFTER.items():
        expected.insert(expected.index(before) + 1, later)
    assert chain.killed == expected
    assert chain.outputs[-1].exit_code == 0
    check_same(chain.release, unkilled.release)
    # Killed after its last step, the run was complete; the next one found nothing new to publish.
    assert runs(chain.release)["killed-0001"] == "published"
    assert set(list(runs(chain.release).values())[1:]) == {"unchanged"}


def test_the_flow_runs_of_killed_processes_are_marked_as_crashed(
    chain: Chain, unkilled: Chain, prefect_api: str
) -> None:
    states = flow_states(chain.release)
    # The run that nobody killed has the same name.
    assert states["release"].count("Crashed") == len(chain.killed)
    assert sorted(set(states["release"])) == ["Crashed", "Published", "Unchanged"]
    assert set(states["subflows"]) <= {"Crashed", "Completed"}


def prepare(release: Small, ending: str) -> tuple[str, ...]:
    """Lead the next release to this ending; returns its command."""
    if ending == "refused":
        release.strict().write()
    if ending == "rejected":
        release.rows[3]["iron"] = "none"
        release.write()
    return ("release", "--dry-run") if ending == "rehearsed" else ("release",)


def try_ending(release: Small, ending: str, when: str) -> Result:
    """Publish, then die on the way to another ending, then go there."""
    assert ending == "refused" or release.run("", entry="prepared").exit_code == 0
    command = prepare(release, ending)
    assert kill(release, f"{when} commit of {ending}", *command).exit_code == -9
    check_published(release)
    return release.run(*command)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_killed_on_the_way_to_another_ending(
    ending: str, when: str, small: Maker, prefect_api: str
) -> None:
    release = small("ending").write()
    result = try_ending(release, ending, when)
    assert result.exit_code == {"refused": 3, "rejected": 2}.get(ending, 0)
    assert list(runs(release).values())[-1] == ending
    assert release.versions() == ([] if ending == "refused" else ["0001"])
    check_tidy(release)


@pytest.mark.slow
@pytest.mark.parametrize("point", [name for name in POINTS if not name.endswith(ENDINGS)])
def test_killed_once_and_run_again(point: str, small: Maker, unkilled: Chain) -> None:
    release = small("killed", marked(small_rows())).write()
    if point in AFTER:
        assert kill(release, AFTER[point]).exit_code == -9
    assert kill(release, point).exit_code == -9
    check_published(release)
    assert release.run().exit_code == 0
    check_same(release, unkilled.release)
