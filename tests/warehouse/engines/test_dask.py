"""Real schedulers and workers, which are killed while they work."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput, MachineTrouble
from ppdm_core.model.rows import BLOCK, ArrayRows, Block
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.support.clusters import RealCluster, write_keys
from tests.support.pickled_files import find_pickles
from tests.support.tables import fit_sanitizer, make_table, read_bytes, scale_rows
from warehouse.engines import EngineSettings, dask
from warehouse.engines._connection import check_connection
from warehouse.engines._sealing import read_cluster_key, seal, unseal
from warehouse.engines._worker_check import check_worker, describe_process
from warehouse.engines.dask import Dask
from warehouse.engines.engine_rows import EngineRows, identify
from warehouse.parquet_parts import write_parts

CANARY_KEY = b"canary key of thirty-two bytes.."
CANARY_CELL = 4711.81508150815
SCHEMA = Schema((Numeric("x", 0.0, 1e4),))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    made = RealCluster(tmp_path / "cluster")
    try:
        for name in ("one", "two"):
            made.start_worker(name)
        yield made
    finally:
        made.close()


def write_table(folder: Path, blocks: int = 6) -> ArrayRows:
    """Write a table in which every cell is the canary."""
    rows = ArrayRows(SCHEMA, np.full((blocks * BLOCK, 1), CANARY_CELL))
    write_parts(rows.blocks(), rows.schema, folder / "rows")
    return rows


def make_waiting_step(started: Path) -> Callable[[Block], Block]:
    """Return a step that takes some time, and writes a file when it begins."""

    def wait(block: Block) -> Block:
        started.touch()
        time.sleep(0.5)
        return replace(block, X=block.X + block.start)

    return wait


def kill_later(cluster: RealCluster, name: str, started: Path) -> threading.Thread:
    """Kill a process of the cluster as soon as a step has begun."""

    def kill() -> None:
        deadline = time.monotonic() + 120
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        cluster.kill(name)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.parametrize("what", ["map", "reduce"])
def test_dask_worker_killed_same_result(cluster: RealCluster, tmp_path: Path, what: str):
    rows, started = write_table(tmp_path), tmp_path / "started"

    wait = make_waiting_step(started)
    with Dask(replace(cluster.settings, part_blocks=1)) as engine:
        spread = EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows"))
        killer = kill_later(cluster, "one", started)
        if what == "map":
            assert read_bytes(spread.map(wait, SCHEMA)) == read_bytes(rows.map(wait, SCHEMA))
        else:
            found = (
                each.reduce(lambda block: wait(block).X.sum(axis=0), np.add)
                for each in (spread, rows)
            )
            assert len({total.tobytes() for total in found}) == 1
        killer.join()
        assert list(engine.list_workers()) == ["Worker 'two'"]


@pytest.mark.slow
def test_dask_message_given_up_runs_again(cluster: RealCluster, tmp_path: Path):
    """A worker may die with a reply that the scheduler counts as finished."""
    rows, started = write_table(tmp_path), tmp_path / "started"

    wait = make_waiting_step(started)
    with Dask(replace(cluster.settings, part_blocks=1)) as engine:
        sent, submit = [], engine.submit
        engine.submit = lambda *given, **more: sent.append(submit(*given, **more)) or sent[-1]

        def give_up() -> None:
            while not started.exists():
                time.sleep(0.05)
            engine.client.cancel(sent[-2:], force=True)

        thread = threading.Thread(target=give_up)
        thread.start()
        spread = EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows"))
        assert read_bytes(spread.map(wait, SCHEMA)) == read_bytes(rows.map(wait, SCHEMA))
        thread.join()
        assert len(sent) > 6  # there are six parts


@pytest.mark.slow
def test_dask_everything_killed_next_run_continues(
    cluster: RealCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dask, "MAX_SECONDS_WITHOUT_WORKERS", 2.0)
    rows, folder = write_table(tmp_path), tmp_path / "runs"
    folder.mkdir()

    def step(block: Block) -> Block:
        (folder / f"{block.start}-{time.time_ns()}").touch()
        time.sleep(0.5)
        return replace(block, X=block.X + block.start)

    settings = replace(cluster.settings, part_blocks=1)
    for name in ("workers", "scheduler"):
        with Dask(settings) as engine:
            spread = EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows", name))

            def wait_and_kill(name: str = name) -> None:
                count = len(list(folder.iterdir()))
                while len(list(folder.iterdir())) < count + 3:
                    time.sleep(0.05)
                for each in ["one", "two"] if name == "workers" else ["scheduler"]:
                    cluster.kill(each)

            killer = threading.Thread(target=wait_and_kill)
            killer.start()
            message = "All workers" if name == "workers" else "stopped answering"
            with pytest.raises(MachineTrouble, match=message):
                spread.map(step, SCHEMA)
            killer.join()
        if name == "scheduler":
            for each in ("one", "two"):
                cluster.kill(each)
            cluster.start_scheduler()
        for each in ("one", "two"):
            cluster.start_worker(each)
        before = len(list(folder.iterdir()))
        settings = replace(cluster.settings, part_blocks=1)
        with Dask(settings) as engine:
            spread = EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows", name))
            made = spread.map(step, SCHEMA)
        assert len(list(folder.iterdir())) - before < 6, "it began again from the first part"
        assert read_bytes(made) == read_bytes(
            rows.map(lambda block: replace(block, X=block.X + block.start), SCHEMA)
        )


@pytest.mark.slow
def test_dask_any_parts_and_workers_same_bytes(tmp_path: Path):
    rows = make_table(65 * BLOCK + 5, 2)
    write_parts(rows.blocks(), rows.schema, tmp_path / "rows")
    sanitizer = PcaLaplace(components=1, b=0.3, basis="private", noise_shape="per_component")

    def release(each):
        fitted = fit_sanitizer(sanitizer, each)
        released = sanitizer.sanitize(scale_rows(each, fitted), Noise(CANARY_KEY), fitted)
        return fitted, read_bytes(released.rows), released.counts

    expected = release(rows)
    cluster = RealCluster(tmp_path / "cluster")
    try:
        for workers, blocks in ((1, 64), (2, 7), (3, 1), (4, 64)):
            cluster.start_worker(f"w{workers}")
            with Dask(replace(cluster.settings, part_blocks=blocks)) as engine:
                assert engine.workers == workers
                name = identify(workers, blocks)
                found = release(EngineRows(rows.schema, tmp_path / "rows", engine, name))
            assert found == expected, (workers, blocks)
    finally:
        cluster.close()


@pytest.mark.slow
def test_dask_canaries_in_no_log_name_dump_or_spilled_file(cluster: RealCluster, tmp_path: Path):
    write_table(tmp_path)
    noise = Noise(CANARY_KEY)
    subkey = noise.subkey("rank", "canary")

    def step(block: Block) -> Block:
        return replace(block, X=block.X + (noise.ranks(block.key, "canary")[:, None] > 2**63))

    def fail(block: Block) -> float:
        raise ValueError(f"{block.X[0, 0]!r} {noise.subkey('rank', 'canary')!r}")

    with Dask(replace(cluster.settings, part_blocks=1)) as engine:
        spread = EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows"))
        spread.map(step, SCHEMA)
        spread.reduce(lambda block: block.X[:10], lambda a, b: a)
        with pytest.raises(Exception, match="A defect of ppdm: ValueError"):
            spread.reduce(fail, max)
        assert engine.client is not None
        running = engine.submit(b"x", b"y")
        engine.client.dump_cluster_state(str(tmp_path / "dump"), format="yaml")
        shown = repr(engine.client.story(running)) + repr(engine.client.scheduler_info())
        logs = repr(engine.client.get_scheduler_logs()) + repr(engine.client.get_worker_logs())
    dump = next(tmp_path.glob("dump*"))
    texts = {path: path.read_bytes() for path in cluster.folder.rglob("*") if path.is_file()}
    texts |= {dump: dump.read_bytes(), Path("story"): shown.encode(), Path("logs"): logs.encode()}
    assert len(dump.read_bytes()) > 1000
    canaries = [CANARY_KEY, subkey, subkey.hex().encode(), CANARY_KEY.hex().encode()]
    canaries += [np.float64(CANARY_CELL).tobytes(), b"4711.815"]
    canaries += [repr(each)[2:-1].encode() for each in (CANARY_KEY, subkey)]
    for path, text in texts.items():
        assert [each for each in canaries if each in text] == [], path
    assert find_pickles(tmp_path) == []


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
    (tmp_path / "parts").mkdir()
    with Dask(cluster.settings) as engine:
        engine.check_folder(tmp_path / "parts")
        monkeypatch.setattr(engine, "ask_all", lambda step, part: {"Worker 'one'": None})
        with pytest.raises(BadInput, match=r"Worker 'one' does not see the folder"):
            engine.check_folder(tmp_path / "parts")
    assert list((tmp_path / "parts").iterdir()) == []


@pytest.mark.slow
def test_dask_certificate_of_another_authority_refused(cluster: RealCluster, tmp_path: Path):
    other = write_keys(tmp_path / "other")
    with pytest.raises(BadInput, match="certificate of the scheduler is not one of the authority"):
        check_connection(replace(other, address=cluster.settings.address))
    mixed = replace(other, address=cluster.settings.address, ca=cluster.settings.ca)
    with pytest.raises(BadInput, match="certificate of this client is not one of the authority"):
        check_connection(mixed)


def test_check_connection_nothing_listens_refused(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = replace(write_keys(tmp_path / "k"), address=f"tls://127.0.0.1:{port}")
    with pytest.raises(BadInput, match="No scheduler answers at tls://127"):
        check_connection(settings)


def test_check_connection_no_tls_refused(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection = server.accept()[0]
            connection.sendall(b"220 hello, this is no TLS\r\n")
            connection.close()

        thread = threading.Thread(target=greet)
        thread.start()
        address = f"tls://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BadInput, match="has no TLS"):
            check_connection(replace(write_keys(tmp_path / "k"), address=address))
        thread.join()


def test_check_connection_key_that_others_can_read_refused(tmp_path: Path):
    settings = replace(write_keys(tmp_path / "k"), address="tls://127.0.0.1:1")
    Path(settings.private_key).chmod(0o644)
    with pytest.raises(BadInput, match=r"Others than its owner may read private\.key"):
        check_connection(settings)
    with pytest.raises(BadInput, match=r"ca\.pem does not exist"):
        check_connection(replace(settings, ca=str(tmp_path / "ca.pem")))


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


def test_read_cluster_key_readable_by_others_or_missing_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = Path(write_keys(tmp_path / "k").secret)
    key = read_cluster_key(str(path))
    assert unseal(key, seal(key, b"data")) == b"data"
    assert b"data" not in seal(key, b"data")
    with pytest.raises(BadInput, match="different cluster keys"):
        unseal(bytes(32), seal(key, b"data"))
    path.chmod(0o640)
    with pytest.raises(BadInput, match="Others than its owner"):
        read_cluster_key(str(path))
    monkeypatch.delenv("PPDM_CLUSTER_KEY", raising=False)
    monkeypatch.delenv("PPDM_CLUSTER_KEY_FILE", raising=False)
    with pytest.raises(BadInput, match="no cluster key"):
        read_cluster_key()
    monkeypatch.setenv("PPDM_CLUSTER_KEY", key.hex())
    assert read_cluster_key() == key


def test_engine_settings_default_is_local():
    assert EngineSettings().kind == "local"
