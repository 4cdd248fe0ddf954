"""Workers that differ from the client, or that come and go."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ppdm_core.model.errors import BadInput, MachineTrouble
from tests.support.clusters import RealCluster, open_inner_cluster, write_keys
from tests.support.scheduled_home import wait_until
from warehouse.engines import EngineSettings
from warehouse.engines._worker_check import check_worker, describe_process
from warehouse.engines.dask import Dask


@pytest.fixture(scope="module")
def inner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineSettings]:
    """Return a cluster whose workers are threads of this process."""
    with open_inner_cluster(tmp_path_factory.mktemp("cluster")) as settings:
        yield settings


def test_check_worker_other_version_named_with_remedy():
    here = describe_process()
    check_worker("Worker 'a'", here, here)
    there = (("code version", "old"), *here[1:])
    with pytest.raises(BadInput, match=r"Worker 'a' has another code version: old.* Install"):
        check_worker("Worker 'a'", there, here)
    with pytest.raises(BadInput, match=r"Worker 'a' computes other digits"):
        check_worker("Worker 'a'", (*here[:-1], ("known block", "x")), here)
    with pytest.raises(BadInput, match="unknown"):
        check_worker("Worker 'a'", None, here)
    other = dict(here) | {"version of Python": "3.8"}
    with pytest.raises(BadInput, match=r"another version of Python: 3\.8, here 3\..* same version"):
        check_worker("Worker 'a'", tuple(other.items()), here)


def test_describe_process_version_of_python_included():
    found = dict(describe_process())["version of Python"]
    assert found == f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.slow
def test_dask_other_kernel_turned_away_by_name(cluster: RealCluster):
    cluster.start_worker("old", {"OPENBLAS_CORETYPE": "Sandybridge"})
    with pytest.raises(BadInput, match=r"Worker 'old' has another BLAS kernel: .*OPENBLAS_CORET"):
        Dask(cluster.settings).__enter__()


@pytest.mark.slow
def test_dask_other_cluster_key_refused(cluster: RealCluster, tmp_path: Path):
    other = write_keys(tmp_path / "other").secret
    with pytest.raises(BadInput, match="different cluster keys"):
        Dask(replace(cluster.settings, secret=other)).__enter__()


@pytest.mark.slow
def test_dask_folder_that_workers_do_not_see_refused(
    cluster: RealCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The path leads to another folder in each process, as that of a disk that is not mounted."""
    monkeypatch.chdir(tmp_path)
    folder = Path("/proc/self/cwd/parts")
    folder.mkdir()
    with Dask(cluster.settings) as engine:
        with pytest.raises(BadInput, match=r"Worker '(one|two)' does not see the folder"):
            engine.check_folder(folder)
        assert list(folder.iterdir()) == []
        engine.check_folder(tmp_path / "parts")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"OPENBLAS_CORETYPE": "Sandybridge"}, r"Worker 'late' has another BLAS kernel"),
        ({"PPDM_CLUSTER_KEY_FILE": "/nowhere"}, r"nowhere does not exist"),
    ],
)
def test_dask_worker_that_comes_later_differs_machine_trouble(
    cluster: RealCluster, environment: dict[str, str], message: str
):
    """The release has begun: it is not bad input, and its parts stay."""
    with Dask(cluster.settings) as engine:
        for name in ("one", "two"):
            cluster.kill(name)
        cluster.start_worker("late", environment)
        with pytest.raises(MachineTrouble, match=message):
            list(engine.run(abs, [-1, -2]))


def test_list_workers_client_refreshes_its_own_list_never_empty(
    inner: EngineSettings, monkeypatch: pytest.MonkeyPatch
):
    """Every two seconds the client replaces its list by one without workers."""
    with Dask(inner) as engine:
        client = engine.client
        assert client is not None
        refresh = client._update_scheduler_info

        async def refresh_twice(n_workers: int = 0) -> None:
            await refresh(n_workers=n_workers)
            await refresh()

        monkeypatch.setattr(client, "_update_scheduler_info", refresh_twice)
        assert client.scheduler_info()["workers"] == {}
        assert len(engine.list_workers()) == 2
        assert list(engine.ask_all(abs, -1).values()) == [1, 1]
        monkeypatch.undo()


def test_ask_all_no_workers_refused(tmp_path: Path):
    with (
        open_inner_cluster(tmp_path / "cluster", workers=0) as settings,
        pytest.raises(BadInput, match="has no workers"),
    ):
        Dask(settings).__enter__()


def test_ask_all_scheduler_does_not_answer_machine_trouble(
    inner: EngineSettings, monkeypatch: pytest.MonkeyPatch
):
    async def fail(**given: object) -> None:
        raise OSError("in the middle of a message")

    with Dask(inner) as engine:
        assert engine.client is not None
        monkeypatch.setattr(engine.client, "scheduler", SimpleNamespace(identity=fail))
        with pytest.raises(MachineTrouble, match="stopped answering"):
            engine.ask_all(abs, -1)
        monkeypatch.undo()


def test_ask_all_busy_workers_answer(inner: EngineSettings, tmp_path: Path):
    """Attacks of another release may take hours."""
    go_on = tmp_path / "go on"
    with Dask(inner) as engine:
        assert engine.client is not None
        busy = engine.client.map(lambda _: wait_until(go_on.exists), range(4), pure=False)
        assert len(engine.ask_all(abs, -1)) == 2
        assert not any(each.done() for each in busy)
        go_on.touch()
        wait_until(lambda: all(each.done() for each in busy))
