from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ppdm_core.audit.draws import ShadowDraws
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.release import PublicParameters, Released
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.scaling import Scaling
from tasks.audit import attack_process
from tasks.audit.attack_process import SPARE_PROCESSES, AttackProcess, start_spare_process
from tasks.audit.release_job import ReleaseJob
from warehouse.parquet_parts import write_parts


@pytest.fixture
def job(tmp_path: Path) -> ReleaseJob:
    Y = np.random.default_rng(1).random((12, 1))
    schema = Schema((Numeric("x", 0.0, 1.0),))
    public = PublicParameters(method="none", space="original", columns=("x",), centre=np.zeros(1))
    policy = Policy(required=(), limits={}, attacker=Attacker(), shadow_draws=1, time_limit=60.0)
    rows = write_parts(ArrayRows(schema, Y).blocks(), schema, tmp_path / "rows")
    scaling = Scaling("none", np.zeros(1), np.ones(1))
    shadows = ShadowDraws((Released(rows, public, atom=0.0),), (), ())
    return ReleaseJob(policy, bytes(32), rows, scaling, shadows, row_aligned=True)


@pytest.mark.extended
def test_attack_process_first_message_uses_spare_process(job: ReleaseJob) -> None:
    with start_spare_process():
        (spare,) = SPARE_PROCESSES
        with AttackProcess(job) as process:
            reply = process.ask("distance_loss", 60.0)
            assert process.process is spare and not SPARE_PROCESSES
            assert reply.error is None
        assert spare.poll() is not None


def test_start_spare_process_unused_is_ended() -> None:
    with start_spare_process():
        (spare,) = SPARE_PROCESSES
        assert spare.poll() is None
    assert spare.poll() is not None and not SPARE_PROCESSES


def test_take_process_dead_spare_is_replaced() -> None:
    with start_spare_process():
        (spare,) = SPARE_PROCESSES
        spare.kill()
        spare.wait()
        taken = attack_process.take_process()
        assert taken is not spare and taken.poll() is None
        attack_process.end(taken)


def test_start_spare_process_error_ends_process() -> None:
    def fail() -> None:
        with start_spare_process():
            spares.extend(SPARE_PROCESSES)
            raise RuntimeError

    spares: list[attack_process.Process] = []
    with pytest.raises(RuntimeError):
        fail()
    assert spares[0].poll() is not None and not SPARE_PROCESSES
