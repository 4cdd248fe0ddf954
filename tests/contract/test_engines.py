from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import broken_engines, cases, checks_engines
from tests.support.clusters import RealCluster, open_inner_cluster
from warehouse.engines import ENGINES, Engine, EngineSettings
from warehouse.engines.dask import Dask
from warehouse.engines.local import Local

CHECKS = list(checks_engines.iterate_checks())


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Engine]]:
    """All engines, each with two workers; the cluster has TLS."""
    folder = tmp_path_factory.mktemp("cluster")
    with (
        open_inner_cluster(folder) as settings,
        Local(EngineSettings(**cases.ENGINES["local"])) as local,
        Dask(EngineSettings(**{**vars(settings), **cases.ENGINES["dask"]})) as dask,
    ):
        yield {"local": local, "dask": dask}


def test_engines_each_has_a_case():
    assert cases.ENGINES.keys() == ENGINES.keys()


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kind", ENGINES)
def test_engine_keeps_contract(check, kind: str, engines: dict[str, Engine], tmp_path: Path):
    assert engines[kind].name == kind
    check(engines[kind], tmp_path)


def test_local_dead_worker_replaced(engines: dict[str, Engine], tmp_path: Path):
    checks_engines.check_dead_worker_replaced(engines["local"], tmp_path)


@pytest.mark.slow
def test_dask_dead_worker_replaced(tmp_path: Path):
    cluster = RealCluster(tmp_path / "cluster")
    try:
        for name in ("one", "two"):
            cluster.start_worker(name)
        with Dask(cluster.settings) as engine:
            checks_engines.check_dead_worker_replaced(engine, tmp_path)
            assert engine.list_workers().keys() < {"Worker 'one'", "Worker 'two'"}
    finally:
        cluster.close()


BUGS = [
    (checks_engines.check_order_kept, broken_engines.ReversesParts),
    (checks_engines.check_order_kept, broken_engines.SkipsAPart),
    (checks_engines.check_captured_values_sent, broken_engines.SendsNamesOnly),
    (checks_engines.check_errors_without_values, broken_engines.QuotesErrors),
    (checks_engines.check_errors_without_values, broken_engines.HidesErrors),
    (checks_engines.check_trial_errors_without_values, broken_engines.QuotesErrors),
    (checks_engines.check_bad_input_passed_on, broken_engines.HidesErrors),
    (checks_engines.check_same_bytes, broken_engines.ReplacesTheKey),
    (checks_engines.check_same_bytes, broken_engines.MergesInAnyOrder),
    pytest.param(
        checks_engines.check_dead_worker_replaced,
        broken_engines.GivesUpAtDeath,
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("check", "broken"), BUGS)
def test_check_engine_planted_bug_found(check, broken, tmp_path: Path):
    with broken() as engine, pytest.raises(AssertionError):
        check(engine, tmp_path)


@pytest.mark.parametrize("check", CHECKS)
def test_check_engine_sound_engine_passes(check, tmp_path: Path):
    with broken_engines.InThisProcess() as engine:
        check(engine, tmp_path)


def test_checks_of_engines_each_has_a_bug():
    found = {*CHECKS, checks_engines.check_dead_worker_replaced}
    assert found == {bug.values[0] if hasattr(bug, "values") else bug[0] for bug in BUGS}
