"""What the tests share: one Prefect server, one MLflow database to copy, the data folder."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ppdm.services.prefect_server import ServerHandle
from tasks.environment import set_library_defaults
from tests.support import rare_collection, servers, shared_files

if TYPE_CHECKING:
    from tests.support.clusters import RealCluster

ROOT = Path(__file__).resolve().parents[1]
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
# Workers of pytest-xdist inherit the environment of the process that starts them.
if not IS_WORKER:
    os.environ[shared_files.HOME] = tempfile.mkdtemp(prefix="ppdm-tests-")
SESSION_HOME = Path(os.environ[shared_files.HOME])

# What a developer has set must not reach the tests; what libraries write must stay in one place.
FOREIGN = ("PREFECT_API_URL", "PREFECT_HOME", "MLFLOW_TRACKING_URI", "PPDM_HOME", "PYTHONPATH")
for name in [*FOREIGN, *(each for each in os.environ if each.startswith(("AWS_", "PG")))]:
    os.environ.pop(name, None)
set_library_defaults(SESSION_HOME)
# As in an attack process. There is a process for each core already.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

assert rare_collection
_server: ServerHandle | None = None


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _start_server() -> ServerHandle:
    global _server
    if _server is None:
        _server = ServerHandle(SESSION_HOME, _say)
        # Only tests that ask for the server may use it.
        os.environ.pop("PREFECT_API_URL", None)
    return _server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with tests that need no server, while one starts; then what takes longest.

    Tests that use all cores by themselves come last.
    """
    order = {"contract": 0, "e2e": 1, "test_contributing.py": 3}
    items.sort(key=lambda item: order.get(item.path.relative_to(ROOT / "tests").parts[0], 2))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file stay in one process, and so do all files that look at one history."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "history" if looks_at_history(file) else file

    return Together(config, log)


@cache
def looks_at_history(file: str) -> bool:
    return "history: History" in (ROOT / file).read_text()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Slow starters begin while the first tests run, if a collected test needs them."""
    if session.config.option.collectonly:
        return
    if any("prefect_api" in getattr(item, "fixturenames", ()) for item in session.items):
        _start_server()
    if "tests.support.forkserver" in sys.modules:
        sys.modules["tests.support.forkserver"].warm()


def pytest_unconfigure() -> None:
    if "tests.support.forkserver" in sys.modules:
        sys.modules["tests.support.forkserver"].cool()
    if _server is not None:
        _server.close()
    if not IS_WORKER:
        shutil.rmtree(SESSION_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def _prefect_server() -> str:
    return _start_server().wait()


@pytest.fixture
def prefect_api(_prefect_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the one Prefect server of this test run, in PREFECT_API_URL too."""
    monkeypatch.setenv("PREFECT_API_URL", _prefect_server)
    _refresh_prefect()
    yield _prefect_server
    monkeypatch.delenv("PREFECT_API_URL")
    _refresh_prefect()


def _refresh_prefect() -> None:
    if "prefect.context" in sys.modules:
        sys.modules["prefect.context"].refresh_global_settings_context()


@pytest.fixture(scope="session")
def prefect_template(_prefect_server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Prefect database with its tables: copied to a home, it saves 10 s of the first start."""
    target = tmp_path_factory.mktemp("prefect") / "prefect.db"
    source = SESSION_HOME / "views" / "prefect" / "prefect.db"
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        live.backup(copy)
    return target


@pytest.fixture(scope="session")
def mlflow_template() -> Path:
    """An MLflow database with its tables, to copy to ``<home>/views/mlflow/mlflow.db``."""

    def make(path: Path) -> None:
        from mlflow import MlflowClient

        MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()

    return shared_files.make_once("mlflow.db", make)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[servers.Postgresql]:
    """A PostgreSQL server of this process."""
    with servers.start_postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def buckets() -> Iterator[servers.Buckets]:
    """An S3-compatible server of this process, which checks keys and rights."""
    with servers.start_buckets() as server:
        yield server


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    """A scheduler and two workers, each in a process of its own."""
    from tests.support.clusters import RealCluster

    made = RealCluster(tmp_path / "cluster")
    try:
        for name in ("one", "two"):
            made.start_worker(name)
        yield made
    finally:
        made.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of data sets that are not part of the project."""
    folder = Path(os.environ.get("PPDM_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no data folder: set PPDM_DATA")
    return folder
