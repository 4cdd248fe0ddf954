"""The work area of a release holds formats that execute nothing when they are read."""

from __future__ import annotations

import pickle
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.policy import Policy
from tasks.audit.attack_inputs import make_job, read_inputs
from tests.support.contexts import open_run
from tests.support.pickled_files import find_pickles, is_pickle
from tests.support.stewards import Steward, numbers
from warehouse.checkpoints import LISTENERS


@contextmanager
def listening(seen: dict[str, list[str]], private: Path) -> Iterator[None]:
    """Record at every checkpoint which files the work area has, and that none is a pickle."""

    def look(name: str) -> None:
        assert find_pickles(private) == [], name
        work = private / "work"
        seen[name] = [path.suffix for path in work.rglob("*") if path.is_file()]

    LISTENERS.append(look)
    try:
        yield
    finally:
        LISTENERS.remove(look)


@pytest.mark.extended
@pytest.mark.parametrize("method", ["additive_noise", "kde_resample"])
def test_steps_work_files_are_parquet(method: str, tmp_path: Path) -> None:
    policy = Policy((), {}, shadow_draws=2, splits=1)
    parameters = {"b": 0.5} if method == "additive_noise" else {}
    steward = Steward(tmp_path, numbers(60), method=method, parameters=parameters, policy=policy)
    seen: dict[str, list[str]] = {}
    private = tmp_path / "home" / "private"
    with listening(seen, private):
        steward.release()
        context = steward.build_context()
        store, run = open_run(context, "people-0001")
        work = store.home.work("people-0001")
        with store.transaction() as db:
            inputs = read_inputs(db, context, run, work)
        job = make_job(context, run, inputs)
    assert set(seen["candidate drawn"]) == {".parquet"}
    drawn = [path for path in work.rglob("*") if path.is_file()]
    assert len(job.shadows.shadows) == 2 and len(drawn) > 3
    assert {path.suffix for path in drawn} == {".parquet"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in drawn} == {0o600}
    assert find_pickles(private) == []


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_is_pickle_every_protocol_found(protocol: int, tmp_path: Path) -> None:
    (tmp_path / "job.parquet").write_bytes(pickle.dumps({"X": np.zeros(3)}, protocol))
    assert find_pickles(tmp_path) == ["job.parquet"]
    assert not any(map(is_pickle, (b"", b"{}", b"PAR1", b'{"a": 1}\n', b"0" * 64 + b"\n")))
