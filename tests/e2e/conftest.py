from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.history import History, first_rows, make_history
from tests.support.key_files import enrol_team
from tests.support.kills import Chain, make_chain
from tests.support.small_release import Row, Small

Maker = Callable[..., Small]


@pytest.fixture(scope="session")
def release_in(_prefect_server: str, mlflow_template: Path) -> Maker:
    """Makes a release in a folder, with an MLflow database in place and the tests' server."""

    def make(folder: Path, name: str = "small", rows: list[Row] | None = None) -> Small:
        env = {
            "PREFECT_API_URL": _prefect_server,
            "TMPDIR": None,  # the home's own
            "PPDM_TESTS_MARK": uuid.uuid4().hex,  # finds processes that were left behind
        }
        release = Small(folder, name, env, rows)
        database = release.home / "views" / "mlflow" / "mlflow.db"
        if not database.exists():
            database.parent.mkdir(parents=True)
            shutil.copyfile(mlflow_template, database)
        return release

    return make


@pytest.fixture
def small(tmp_path: Path, release_in: Maker, prefect_api: str) -> Maker:
    """Makes releases that share one home."""
    return lambda name="small", rows=None: release_in(tmp_path, name, rows)


@pytest.fixture(scope="session")
def _stories(
    tmp_path_factory: pytest.TempPathFactory, release_in: Maker
) -> tuple[Future[History], Future[Chain]]:
    """Both at once: each leaves half of the machine idle."""
    homes = (tmp_path_factory.mktemp(name) for name in ("history", "chain"))
    story, again = (release_in(home, "history", first_rows()).write() for home in homes)
    pool = ThreadPoolExecutor(2)
    started = pool.submit(make_history, story), pool.submit(make_chain, again)
    pool.shutdown(wait=False)
    return started


@pytest.fixture(scope="session")
def history(_stories: tuple[Future[History], Future[Chain]]) -> History:
    """A home after releases that ended in every way; tests look at it and change nothing."""
    return _stories[0].result()


@pytest.fixture(scope="session")
def chain(_stories: tuple[Future[History], Future[Chain]]) -> Chain:
    """The first release of the history in another home, killed again and again."""
    return _stories[1].result()


@pytest.fixture(scope="session")
def signed(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Small:
    """Return a release by Sam that awaits one approval, in a home with keys; tests copy it."""
    release = release_in(tmp_path_factory.mktemp("signed")).undecided(approvals=1)
    enrol_team(release.write())
    assert release.run("judge", entry="prepared").exit_code == 0
    return release


@pytest.fixture(scope="session")
def waiting(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Small:
    """Return a release that awaits two approvals and has no decision yet; tests copy it."""
    release = release_in(tmp_path_factory.mktemp("waiting")).undecided(approvals=2)
    assert release.write().run("judge", entry="prepared").exit_code == 0
    return release
