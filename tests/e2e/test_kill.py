from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ppdm_core.model.withdrawal import NOTICE_NAME
from tests.support.forkserver import Result
from tests.support.history import History, first_rows
from tests.support.kills import (
    AFTER,
    BY_COMMAND,
    IN_APPROVAL,
    IN_CHAIN,
    IN_COMMON_RELEASE,
    IN_DELIVERY,
    IN_REMOVAL,
    IN_TUNE,
    IN_WITHDRAWAL,
    Chain,
    check_published,
    check_same,
    check_tidy,
    kill,
    kill_step,
    orphans,
    points_in_code,
)
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

Maker = Callable[..., Small]
POINTS = sorted(points_in_code())
ENDINGS = ("no_change", "dry_run_passed", "refused", "awaiting_review", "rejected")
DECISION = ("before commit of a decision", "after commit of a decision")
ELSEWHERE = {
    *IN_WITHDRAWAL,
    *IN_DELIVERY,
    *IN_REMOVAL,
    *IN_TUNE,
    *IN_COMMON_RELEASE,
}  # tried elsewhere
OTHERS = {*ELSEWHERE, *DECISION} - {*IN_CHAIN}
RELEASE_POINTS = [name for name in POINTS if not name.endswith(ENDINGS) and name not in OTHERS]


def runs(release: Small) -> dict[str, str]:
    with Store(Home(release.home)).transaction("tests") as db:
        return dict(db.execute("select release_id, stage from meta.run").fetchall())


def base_of(run: FlowRun) -> str | None:
    """Folder of the release that a flow run is about, if it is about one."""
    return run.parameters.get("file", {}).get("base")


def read_flow_states(release: Small) -> list[str]:
    """Return the names of the states of the release's flow runs in Prefect."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(limit=200, sort="START_TIME_DESC")
    ours = [run for run in found if base_of(run) == str(release.folder)]
    assert all(run.parent_task_run_id is None for run in ours)  # one flow run per release
    return [str(run.state_name) for run in ours]


def test_kill_points_in_code_include_chain() -> None:
    assert len(POINTS) >= 12 and len(IN_CHAIN) >= 12
    assert set(IN_CHAIN) < set(POINTS)


def test_kill_points_known_points_all_tried(history: History) -> None:
    endings = {f"{when} commit of {stage}" for stage in ENDINGS for when in ("before", "after")}
    tried = {*history.points, *AFTER, *ELSEWHERE, *IN_APPROVAL, *endings}
    assert tried == set(POINTS)


def test_release_killed_at_every_point_same_result(chain: Chain, history: History) -> None:
    assert chain.killed == list(IN_CHAIN)
    assert chain.results[-1].exit_code == 0
    check_same(chain.release, history.release)
    # Killed after its last step, the run was complete: the next one had nothing new to publish.
    assert runs(chain.release) == {"history-0001": "published", "history-0002": "no_change"}


def test_prefect_runs_killed_processes_marked_crashed(chain: Chain, prefect_api: str) -> None:
    states = read_flow_states(chain.release)
    assert sorted(states) == ["Completed", *["Crashed"] * len(BY_COMMAND)]


def test_orphans_sleeping_process_found(small: Maker) -> None:
    release = small().write()
    command = release.start("60", entry="asleep")
    command.wait_for("asleep")
    assert len(orphans(release)) == 1
    command.kill()
    assert len(orphans(release)) == 1
    os.kill(int(command.output()[0].split()[0]), signal.SIGKILL)
    command.wait()


@pytest.mark.slow
@pytest.mark.parametrize("point", RELEASE_POINTS)
def test_release_killed_once_next_run_same_result(
    point: str, small: Maker, history: History
) -> None:
    release = small("history", first_rows()).write()
    if point in AFTER:
        assert kill(release, AFTER[point]).exit_code == -9
    die = kill_step if point in set(IN_CHAIN) - set(BY_COMMAND) else kill
    assert die(release, point).exit_code == -9
    check_published(release)
    assert release.run().exit_code == 0
    check_same(release, history.release)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_release_killed_at_other_ending_next_run_same_ending(
    ending: str, when: str, small: Maker
) -> None:
    release = small("ending").write()
    published = [] if ending in ("refused", "awaiting_review") else ["0001"]
    if published:
        assert release.run("", entry="prepared").exit_code == 0
    result = die_before(release, ending, when)
    assert result.exit_code == {"refused": 3, "awaiting_review": 4, "rejected": 2}.get(ending, 0)
    assert list(runs(release).values())[-1] == ending
    assert release.versions() == published
    check_tidy(release)


def die_before(release: Small, ending: str, when: str) -> Result:
    """Lead the next release to this ending, kill it there, and run it again."""
    command = ["release"]
    if ending == "dry_run_passed":
        command.append("--dry-run")
    if ending == "refused":
        release.strict().write()
    if ending == "awaiting_review":
        release.undecided(approvals=1).write()
    if ending == "rejected":
        release.rows[3]["iron"] = "none"
        release.write()
    assert kill(release, f"{when} commit of {ending}", *command).exit_code == -9
    check_published(release)
    return release.run(*command)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Small:
    """Return a release with one version; tests copy it."""
    release = release_in(tmp_path_factory.mktemp("published")).write()
    assert release.run("", entry="prepared").exit_code == 0
    return release


@pytest.mark.slow
@pytest.mark.parametrize("point", IN_WITHDRAWAL)
def test_withdraw_killed_next_command_completes_or_nothing_happened(
    point: str, published: Small, tmp_path: Path
) -> None:
    release = published.copied_to(tmp_path / "copy")
    release_id = f"{release.name}-0001"
    ask = ("withdraw", release_id, "--reason", "Killed.")
    assert release.ask(point, *ask, entry="killed").exit_code == -9
    stage = json.loads(release.ask("show", release_id, "--json").stdout)["release"]["stage"]
    left = {path.name for path in release.published.iterdir()}
    if point == IN_WITHDRAWAL[0]:
        assert stage == "published" and left == {"0001", "latest"}
        check_published(release)
    else:
        assert stage == "withdrawn" and left == {"0001"}
        assert [path.name for path in (release.published / "0001").iterdir()] == [NOTICE_NAME]
    assert release.ask("history", "--verify").exit_code == 0
    assert release.ask(*ask).exit_code == 0
    assert release.ask("verify", release_id).exit_code == 3
    assert release.ask("history", "--verify").exit_code == 0
